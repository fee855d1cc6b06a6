import { setTimeout as sleep } from "node:timers/promises";
import { OctavoError } from "@octavo/protocol";
import { Random } from "@octavo/statistics";
import type { EvalCase } from "../../cases/eval-case.js";
import type { Target } from "../../targets/target.js";
import type { AutoscalingLagSettings } from "./settings.js";
import type { TestBed } from "../test-bed.js";
import type { Observation } from "../observation.js";
import { samplingOf } from "../collecting/collect-cases.js";
import { LeastQueueRouter } from "../collecting/least-queue-router.js";
import { observeSent, type SentUnder } from "../collecting/observe-sent.js";
import { type ScheduledCase, sendOpenLoop } from "../collecting/open-loop.js";

const pollMs = 50;

/**
 * The same cases idle, in a burst on the replicas that are there, and after one more has joined. It is started when the
 * scaler would have noticed the burst and takes requests from its first answer on; the burst lasts one pass over the cases
 * longer than that, and two passes at least.
 *
 * @throws OctavoError `target_unreachable` when the new replica never answers
 */
export async function collectAutoscalingLag(
  bed: TestBed,
  settings: AutoscalingLagSettings,
): Promise<readonly Observation[]> {
  const { signal } = bed;
  const replicas = bed.replicas.length > 0 ? bed.replicas : [bed.candidate];
  const router = new LeastQueueRouter("deployment", replicas);
  const cases = bed.cases.slice(0, settings.requests);
  const random = new Random(bed.seed);
  let done = 0;
  const options = { signal, onAnswer: () => bed.onProgress?.({ done: ++done, total: undefined }) };

  let salt = 0;
  const requestOf = (evalCase: EvalCase, atMs: number): ScheduledCase => ({
    evalCase,
    atMs,
    extraBody: {
      ...samplingOf(evalCase, bed.seed),
      ...(settings.cacheSalt ? { cache_salt: `autoscaling-lag-${bed.seed}-${salt++}` } : {}),
    },
  });

  const idle = await sendOpenLoop(
    router,
    pass(cases, settings.idleRequestsPerSecond, random, requestOf),
    options,
  );
  const scaleUp = new ScaleUp(router, bed, cases[0]!, settings);
  const inBurst = await sendOpenLoop(router, burst(cases, settings, random, scaleUp, requestOf), options);
  await scaleUp.joined;
  const sent: SentUnder[] = [
    ...idle.map((one) => ({ ...one, condition: settings.idle })),
    ...inBurst.map((one) => {
      const found = Number(one.answer.headers["x-octavo-replica-count"] ?? 0);
      return { ...one, condition: found > replicas.length ? settings.scaled : settings.scaling };
    }),
  ];
  return observeSent(sent, bed);
}

/** Starts a replica, waits for its first answer, and gives it to the router. */
class ScaleUp {
  readonly joined: Promise<void>;
  isOver = false;

  constructor(router: LeastQueueRouter, bed: TestBed, probe: EvalCase, settings: AutoscalingLagSettings) {
    this.joined = this.#run(router, bed, probe, settings).finally(() => (this.isOver = true));
    // awaited at the end of the burst; until then its rejection must not go unhandled
    this.joined.catch(() => undefined);
  }

  async #run(
    router: LeastQueueRouter,
    { startReplica, signal }: TestBed,
    probe: EvalCase,
    { upscaleDelayMs, replicaTimeoutMs }: AutoscalingLagSettings,
  ): Promise<void> {
    await sleep(upscaleDelayMs, undefined, { signal });
    if (startReplica === undefined)
      throw new OctavoError("invalid_option", "there is no way to start one more replica", {
        param: "startReplica",
      });
    const replica = await startReplica();
    await firstAnswer(replica, probe, replicaTimeoutMs, signal);
    router.add(replica);
  }
}

async function firstAnswer(
  replica: Target,
  probe: EvalCase,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<void> {
  const untilMs = performance.now() + timeoutMs;
  for (;;) {
    const { failure } = await replica.answer(probe, { signal });
    if (failure === undefined) return;
    if (performance.now() > untilMs)
      throw new OctavoError(
        "target_unreachable",
        `${replica.name} did not answer within ${timeoutMs} ms of being started: ${failure.message}`,
      );
    await sleep(pollMs, undefined, { signal });
  }
}

type RequestOf = (evalCase: EvalCase, atMs: number) => ScheduledCase;

function* burst(
  cases: readonly EvalCase[],
  { burstRequestsPerSecond }: AutoscalingLagSettings,
  random: Random,
  scaleUp: ScaleUp,
  requestOf: RequestOf,
): Generator<ScheduledCase> {
  let atMs = 0;
  let sent = 0;
  let left = cases.length;
  while (left > 0) {
    if (scaleUp.isOver && sent >= cases.length) left -= 1;
    yield requestOf(cases[sent++ % cases.length]!, atMs);
    atMs += random.exponential(1000 / burstRequestsPerSecond);
  }
}

function* pass(
  cases: readonly EvalCase[],
  perSecond: number,
  random: Random,
  requestOf: RequestOf,
): Generator<ScheduledCase> {
  let atMs = 0;
  for (const evalCase of cases) {
    yield requestOf(evalCase, atMs);
    atMs += random.exponential(1000 / perSecond);
  }
}
