import { Random } from "@octavo/statistics";
import type { TestBed } from "../test-bed.js";
import { replayConditions } from "./causes.js";
import type { JitterSettings } from "./settings.js";
import type { Observation } from "../observation.js";
import { fillerCase } from "../collecting/filler.js";
import { observeSent, type SentUnder } from "../collecting/observe-sent.js";
import { inOrder, type ScheduledCase, type SentCase, sendOpenLoop } from "../collecting/open-loop.js";
import { isFiller, planReplay, type ReplayPlan } from "./replay-plan.js";

const neighbourOutputTokens = 2;

/**
 * Watches streams alone and with long prompts that arrive at random while they run, in alternating turns. The turn with the
 * longest gap is then run again, as often as asked for, with those who were beside it as the server knows them, without them,
 * and without the one that was computed most, where one stands out: what comes back is their doing.
 */
export async function collectJitter(bed: TestBed, settings: JitterSettings): Promise<readonly Observation[]> {
  const { rounds, replays } = settings;
  let total = settings.streams * (2 * rounds + (settings.replay ? 2 * replays : 0));
  const sent: SentUnder[] = [];
  let salt = 0;
  const run = async (turn: readonly ScheduledCase[], condition?: string): Promise<readonly SentCase[]> => {
    const salted = turn.map((one) => withFields(one, settings, `jitter-${bed.seed}-${salt}`));
    salt += 1;
    const answers = await sendOpenLoop(bed.candidate, inOrder(salted), { signal: bed.signal });
    const watched = answers.filter(({ scheduled }) => !isFiller(scheduled));
    if (condition !== undefined) sent.push(...watched.map((one) => ({ ...one, condition })));
    bed.onProgress?.({ done: sent.length, total });
    return answers;
  };

  const streams = watchedStreams(bed, settings);
  // the first turn is a warm-up, and its length is the length of a turn
  const first = await run(streams);
  const lengthMs = Math.max(...first.map(({ answer }) => answer.timing.durationMs));
  const random = new Random(bed.seed);
  let worst: { readonly plan: ReplayPlan; readonly longestMs: number } | undefined;
  for (let round = 0; round < rounds; round++) {
    const neighbours = neighboursOf(settings, lengthMs, random, round);
    const order = [settings.baseline, settings.current];
    for (const condition of round % 2 === 0 ? order : order.toReversed()) {
      if (condition !== settings.current) {
        await run(streams, condition);
        continue;
      }
      const answers = await run([...streams, ...neighbours], condition);
      const slow = slowestOf(answers);
      const longestMs = slow === undefined ? 0 : longestGap(slow);
      if (!settings.replay || slow === undefined || longestMs <= (worst?.longestMs ?? 0)) continue;
      // at once: servers keep what they know of a request for a while
      const plan = await planReplay(bed.candidate, answers, slow, neighbours, bed.signal);
      worst = { plan, longestMs };
    }
  }
  if (worst === undefined) return observeSent(sent, bed);
  const { beside, withoutOne } = worst.plan;
  if (withoutOne !== undefined) total += settings.streams * replays;
  for (let replay = 0; replay < replays; replay++) {
    await run([...streams, ...beside], replayConditions.beside);
    await run(streams, replayConditions.alone);
    if (withoutOne !== undefined) await run([...streams, ...withoutOne], replayConditions.withoutOne);
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
  scheduled: ScheduledCase,
  { tokens, vllmFields }: JitterSettings,
  salt: string,
): ScheduledCase {
  const length = isFiller(scheduled)
    ? {}
    : { max_tokens: tokens, ...(vllmFields ? { min_tokens: tokens } : {}) };
  const extraBody = { temperature: 0, ...length, ...(vllmFields ? { cache_salt: salt } : {}) };
  return { ...scheduled, extraBody };
}

/** The watched stream with the longest gap. */
function slowestOf(answers: readonly SentCase[]): SentCase | undefined {
  return answers
    .filter(({ scheduled }) => !isFiller(scheduled))
    .reduce<SentCase | undefined>(
      (most, one) => (most === undefined || longestGap(one) > longestGap(most) ? one : most),
      undefined,
    );
}

function longestGap({ answer }: SentCase): number {
  const { pieceMs } = answer.timing;
  return pieceMs.slice(1).reduce((most, at, index) => Math.max(most, at - pieceMs[index]!), 0);
}
