import { groupBy, OctavoError } from "@octavo/protocol";
import type { EvalCase } from "../../cases/eval-case.js";
import type { TestBed } from "../test-bed.js";
import type { Observation } from "../observation.js";
import { readSpans } from "../../spans/read-spans.js";
import { byTime } from "../judging/time-blocks.js";
import { replayedTag } from "./replayed.js";
import type { TrafficDriftSettings } from "./settings.js";
import { samplingOf } from "../collecting/collect-cases.js";
import { observeSent } from "../collecting/observe-sent.js";
import { type ScheduledCase, sendOpenLoop } from "../collecting/open-loop.js";

/**
 * Replays a recording: cases at the times at which production's requests came, under their tenants, with as many tokens of
 * output; of the cases the one whose prompt is nearest in length to the recorded one. What was recorded is the other side.
 * What a replay copies is marked as copied, and is not judged.
 * Without a recording there is nothing to collect, and the check says so.
 */
export async function collectTrafficDrift(
  bed: TestBed,
  settings: TrafficDriftSettings,
): Promise<readonly Observation[]> {
  const { recording, speedup, mostRequests, evaluation } = settings;
  if (recording === undefined) return [];
  const recorded = await readRecording(recording, settings.production, mostRequests);
  const beginMs = recorded[0]!.scheduledEpochMs;
  const cases = new CasesByLength(bed.cases, await tokensByCharacters(bed));
  const schedule = recorded.map((seen): ScheduledCase => {
    const evalCase = cases.nearest(seen.promptTokens);
    return {
      evalCase,
      atMs: (seen.scheduledEpochMs - beginMs) / speedup,
      ...(seen.tenant === undefined ? {} : { tenant: seen.tenant }),
      extraBody: {
        ...samplingOf(evalCase, bed.seed),
        ...(seen.completionTokens === undefined ? {} : { max_tokens: Math.max(1, seen.completionTokens) }),
      },
    };
  });
  let done = 0;
  const sent = await sendOpenLoop(bed.candidate, schedule, {
    signal: bed.signal,
    onAnswer: () => bed.onProgress?.({ done: ++done, total: schedule.length }),
  });
  const replayed = await observeSent(
    sent.map((one) => ({ ...one, condition: evaluation, tags: [replayedTag] })),
    bed,
  );
  // the replay was as many times as fast: its rate is held against production's in the replay's time
  return [
    ...recorded.map((seen) => ({
      ...seen,
      scheduledEpochMs: beginMs + (seen.scheduledEpochMs - beginMs) / speedup,
    })),
    ...replayed,
  ];
}

/** The first requests of a recording, in the order of time; not more than can be replayed are kept. */
async function readRecording(
  path: string,
  condition: string,
  mostRequests: number,
): Promise<readonly Observation[]> {
  const seen: Observation[] = [];
  for await (const observation of readSpans(path, { condition, side: "server" })) {
    seen.push(observation.condition === condition ? observation : { ...observation, condition });
    // files are in the order in which requests ended: somewhat more than is kept are read
    if (seen.length >= 2 * mostRequests + 1000) break;
  }
  if (seen.length === 0)
    throw new OctavoError("dataset_invalid", `${path}: there are no spans of model calls in it`, {
      param: path,
    });
  return byTime(seen).slice(0, mostRequests);
}

/** Cases by how many tokens their prompts are taken to have. */
class CasesByLength {
  readonly #groups: readonly { readonly tokens: number; readonly cases: readonly EvalCase[]; next: number }[];

  constructor(cases: readonly EvalCase[], tokensOf: (characters: number) => number) {
    this.#groups = [...groupBy(cases, charactersOf)].map(([characters, own]) => ({
      tokens: tokensOf(characters),
      cases: own,
      next: 0,
    }));
  }

  /** Cases of the same length take turns. */
  nearest(promptTokens = 0): EvalCase {
    const group = this.#groups.reduce((best, one) =>
      Math.abs(one.tokens - promptTokens) < Math.abs(best.tokens - promptTokens) ? one : best,
    );
    return group.cases[group.next++ % group.cases.length]!;
  }
}

const mostProbes = 16;
/** About what a token is in English, for servers that do not count. */
const charactersPerToken = 4;

/**
 * What prompts of so many characters have in tokens, by a line through some cases' counts: vocabularies differ, and templates
 * add their own.
 */
async function tokensByCharacters({
  candidate,
  cases,
  signal,
}: TestBed): Promise<(characters: number) => number> {
  const sorted = cases.toSorted((a, b) => charactersOf(a) - charactersOf(b));
  const stride = Math.max(1, Math.ceil(sorted.length / mostProbes));
  const points: { readonly x: number; readonly y: number }[] = [];
  for (const evalCase of sorted.filter((_, index) => index % stride === 0)) {
    const { usage } = await candidate.answer(evalCase, { signal });
    if (usage.promptTokens !== undefined) points.push({ x: charactersOf(evalCase), y: usage.promptTokens });
  }
  if (points.length === 0) return (characters) => characters / charactersPerToken;
  const mean = (of: (point: { readonly x: number; readonly y: number }) => number) =>
    points.reduce((sum, point) => sum + of(point), 0) / points.length;
  const [x, y] = [mean((point) => point.x), mean((point) => point.y)];
  const variance = mean((point) => (point.x - x) ** 2);
  const slope =
    variance === 0 ? y / Math.max(1, x) : mean((point) => (point.x - x) * (point.y - y)) / variance;
  return (characters) => y + slope * (characters - x);
}

function charactersOf({ messages }: EvalCase): number {
  return messages.reduce((sum, { content }) => sum + (content?.length ?? 0), 0);
}
