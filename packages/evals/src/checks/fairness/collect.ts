import { Random } from "@octavo/statistics";
import type { EvalCase } from "../../cases/eval-case.js";
import type { TestBed } from "../test-bed.js";
import type { Observation } from "../observation.js";
import { arrivalsOf } from "../collecting/arrivals.js";
import { samplingOf } from "../collecting/collect-cases.js";
import { fillerCase } from "../collecting/filler.js";
import { observeSent, type SentUnder } from "../collecting/observe-sent.js";
import { inOrder, type ScheduledCase, sendOpenLoop } from "../collecting/open-loop.js";
import type { Target } from "../../targets/target.js";

interface TwoTenants {
  readonly smallRequestsPerMinute: number;
  readonly largeRequestsPerMinute: number;
  readonly largeBurstiness: number;
  readonly largePromptTokens: number;
  readonly largeOutputTokens: number;
  readonly requests: number;
  readonly rounds: number;
  readonly smallTenant: string;
  readonly largeTenant: string;
  readonly solo: string;
  readonly shared: string;
  readonly peer: string;
  readonly compareTenants: boolean;
  readonly cacheSalt: boolean;
}

/**
 * The small tenant's arrivals, once alone, once beside the large tenant's, and once alone in the large tenant's name: the same
 * requests at the same times. They take turns in rounds, the order reversed each time, so that what else changes in the meantime changes for both.
 */
export async function collectTwoTenants(
  bed: TestBed,
  target: Target,
  load: TwoTenants,
): Promise<readonly Observation[]> {
  const random = new Random(bed.seed);
  const sent: SentUnder[] = [];
  const rounds = roundsOf(bed.cases, load, random);
  const total = rounds.reduce(
    (sum, { small, large }) => sum + (load.compareTenants ? 3 : 2) * small.length + large.length,
    0,
  );
  for (const [round, { small, large }] of rounds.entries()) {
    const turns = [
      { condition: load.solo, schedule: small },
      { condition: load.shared, schedule: [...small, ...large] },
      ...(load.compareTenants
        ? [{ condition: load.peer, schedule: small.map((one) => ({ ...one, tenant: load.largeTenant })) }]
        : []),
    ];
    for (const { condition, schedule } of round % 2 === 0 ? turns : turns.toReversed()) {
      // no turn finds the other turn's prompts in the cache
      const salted = schedule.map((one) => ({
        ...one,
        extraBody: {
          ...samplingOf(one.evalCase, bed.seed),
          ...(load.cacheSalt ? { cache_salt: `${condition}-${round}-${bed.seed}` } : {}),
        },
      }));
      const before = sent.length;
      let done = 0;
      const answers = await sendOpenLoop(target, inOrder(salted), {
        signal: bed.signal,
        onAnswer: () => bed.onProgress?.({ done: before + ++done, total }),
      });
      sent.push(...answers.map((one) => ({ ...one, condition })));
    }
  }
  return observeSent(sent, bed);
}

interface Round {
  readonly small: readonly ScheduledCase[];
  readonly large: readonly ScheduledCase[];
}

function roundsOf(cases: readonly EvalCase[], load: TwoTenants, random: Random): readonly Round[] {
  const { smallTenant, largeTenant, smallRequestsPerMinute, largeRequestsPerMinute } = load;
  const perRound = Math.ceil(load.requests / load.rounds);
  const [ofSmall, ofLarge, ofCases] = [random.fork(1), random.fork(2), random.fork(3)];
  let [index, filler] = [0, 0];
  return Array.from({ length: Math.ceil(load.requests / perRound) }, (_, round) => {
    const count = Math.min(perRound, load.requests - round * perRound);
    let atMs = 0;
    const small = Array.from({ length: count }, () => ({
      evalCase: cases[index++ % cases.length]!,
      atMs: (atMs += ofSmall.exponential(60_000 / smallRequestsPerMinute)),
      tenant: smallTenant,
    }));
    const other = {
      tenant: largeTenant,
      requestsPerMinute: largeRequestsPerMinute,
      burstiness: load.largeBurstiness,
    };
    const large = arrivalsOf(other, atMs, ofLarge).map((arrival) => ({
      evalCase:
        load.largePromptTokens === 0
          ? ofCases.pick(cases)
          : fillerCase(filler++, load.largePromptTokens, load.largeOutputTokens, 7),
      atMs: arrival.atMs,
      tenant: largeTenant,
    }));
    return { small, large };
  });
}
