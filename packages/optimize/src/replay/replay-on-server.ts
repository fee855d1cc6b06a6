import {
  type Evaluator,
  type Observation,
  observeSent,
  type ScheduledCase,
  sendOpenLoop,
  type Target,
} from "@octavo/evals";
import { OctavoError } from "@octavo/protocol";
import { Random } from "@octavo/statistics";
import { fixedCase, wordsOf, type TokenScale } from "./recorded-workload.js";

/** One replay of the workload. */
export interface ReplayRun {
  /** In the order of the workload. */
  readonly observations: readonly Observation[];
  /** Of the engine's compute, where the server tells. */
  readonly computeMs: number | undefined;
  /** From the first request's time to the last answer. */
  readonly durationMs: number;
  /** Of a simulated fleet: what it takes up, whatever it does. */
  readonly replicaSeconds?: number;
  /** Of a gateway's calls, at the prices of its targets. */
  readonly usd?: number;
}

/** Sends the workload once, as it was recorded: no request waits for another. */
export async function replayOn(
  target: Target,
  schedule: readonly ScheduledCase[],
  { evaluators, signal }: { readonly evaluators: readonly Evaluator[]; readonly signal: AbortSignal },
): Promise<ReplayRun> {
  const beginMs = performance.now();
  const sent = await sendOpenLoop(target, schedule, { signal });
  const durationMs = performance.now() - beginMs;
  const computed = sent.flatMap(({ answer }) => answer.serving?.kernel_ms ?? []);
  return {
    observations: await observeSent(
      sent.map((one) => ({ ...one, condition: "replay" })),
      { evaluators, signal },
    ),
    computeMs: computed.length === 0 ? undefined : computed.reduce((sum, ms) => sum + ms, 0),
    durationMs,
  };
}

const [fewWords, manyWords] = [4, 68];
const probeTries = 8;

/**
 * How many tokens a server counts for words, from two requests that also warm it up.
 * @throws OctavoError `target_unreachable` where it does not answer them
 */
export async function tokenScaleOf(target: Target, signal: AbortSignal): Promise<TokenScale> {
  const counted: number[] = [];
  for (const count of [fewWords, manyWords]) {
    const probe = fixedCase(`probe-${count}`, wordsOf(new Random(count), count), 1);
    let { failure, usage } = await target.answer(probe, { signal });
    // a server that has just started, on a busy machine, may not keep a time limit that it keeps later
    for (let again = 1; failure !== undefined && again < probeTries; again++)
      ({ failure, usage } = await target.answer(probe, { signal }));
    if (failure !== undefined)
      throw new OctavoError("target_unreachable", `a probe was not answered: ${failure.message}`);
    // about what a word is where a server does not count
    counted.push(usage.promptTokens ?? count * 1.3);
  }
  const [few = 0, many = 0] = counted;
  const perWord = Math.max(0.1, (many - few) / (manyWords - fewWords));
  return { base: Math.max(0, few - perWord * fewWords), perWord };
}
