import { Random } from "@octavo/statistics";
import type { TestBed } from "../check-run.js";
import { replayConditions } from "../jitter/causes.js";
import type { JitterSettings } from "../jitter/settings.js";
import type { Observation } from "../observation.js";
import { fillerCase } from "./filler.js";
import { observeSent, type SentUnder } from "./observe-sent.js";
import { inOrder, type ScheduledCase, type SentCase, sendOpenLoop } from "./open-loop.js";

/** One turn's streams, and the prompts that come while they run. */
interface Turn {
  readonly streams: readonly ScheduledCase[];
  readonly neighbours: readonly ScheduledCase[];
}

const neighbourOutputTokens = 2;

/**
 * Streams that are watched, alone and beside long prompts that come at random while they run, by turns. The turn with the
 * longest gap is then run again with its neighbours and without them, as often as asked for: what comes back is their doing.
 */
export async function collectJitter(bed: TestBed, settings: JitterSettings): Promise<readonly Observation[]> {
  const { rounds, replays } = settings;
  const total = settings.streams * (1 + 2 * rounds + (settings.replay ? 2 * replays : 0));
  const sent: SentUnder[] = [];
  let salt = 0;
  const run = async (turn: readonly ScheduledCase[], condition?: string): Promise<readonly SentCase[]> => {
    const salted = turn.map((one) => withFields(one, settings, `jitter-${bed.seed}-${salt}`));
    salt += 1;
    const answers = await sendOpenLoop(bed.candidate, inOrder(salted), { signal: bed.signal });
    const watched = answers.filter(({ scheduled }) => !scheduled.evalCase.tags.includes("filler"));
    if (condition !== undefined) sent.push(...watched.map((one) => ({ ...one, condition })));
    bed.onProgress?.({ done: sent.length, total });
    return watched;
  };

  const streams = watchedStreams(bed, settings);
  // the first turn warms up, and tells how long a turn is
  const first = await run(streams);
  const lengthMs = Math.max(...first.map(({ answer }) => answer.timing.durationMs));
  const random = new Random(bed.seed);
  let worst: { readonly turn: Turn; readonly longestMs: number } | undefined;
  for (let round = 0; round < rounds; round++) {
    const turn = { streams, neighbours: neighboursOf(settings, lengthMs, random, round) };
    const order = [settings.baseline, settings.current];
    for (const condition of round % 2 === 0 ? order : order.toReversed()) {
      const isBurst = condition === settings.current;
      const answers = await run(isBurst ? [...streams, ...turn.neighbours] : streams, condition);
      const longestMs = isBurst ? Math.max(...answers.map(longestGap)) : 0;
      if (longestMs > (worst?.longestMs ?? 0)) worst = { turn, longestMs };
    }
  }
  const again = settings.replay ? worst?.turn.neighbours : undefined;
  const numReplays = again === undefined ? 0 : replays;
  for (let replay = 0; replay < numReplays; replay++) {
    await run([...streams, ...(again ?? [])], replayConditions.beside);
    await run(streams, replayConditions.alone);
  }
  return observeSent(sent, bed);
}

function watchedStreams({ cases }: TestBed, { streams }: JitterSettings): readonly ScheduledCase[] {
  return Array.from({ length: streams }, (_, index) => {
    const evalCase = cases[index % cases.length]!;
    // the same case in two streams is two cases
    return { evalCase: { ...evalCase, id: `${evalCase.id}/stream-${index}` }, atMs: 0 };
  });
}

function neighboursOf(
  { burstPrompts, burstPromptTokens }: JitterSettings,
  lengthMs: number,
  random: Random,
  round: number,
): readonly ScheduledCase[] {
  return Array.from({ length: burstPrompts }, (_, index) => ({
    evalCase: fillerCase(index, burstPromptTokens, neighbourOutputTokens, 1000 + round),
    atMs: lengthMs * (0.1 + 0.6 * random.uniform()),
  }));
}

function withFields(
  { evalCase, ...scheduled }: ScheduledCase,
  { tokens, vllmFields }: JitterSettings,
  salt: string,
): ScheduledCase {
  const isFiller = evalCase.tags.includes("filler");
  const length = isFiller ? {} : { max_tokens: tokens, ...(vllmFields ? { min_tokens: tokens } : {}) };
  const extraBody = { temperature: 0, ...length, ...(vllmFields ? { cache_salt: salt } : {}) };
  return { evalCase, ...scheduled, extraBody };
}

function longestGap({ answer }: SentCase): number {
  const { pieceMs } = answer.timing;
  return pieceMs.slice(1).reduce((most, at, index) => Math.max(most, at - pieceMs[index]!), 0);
}
