import type { EngineStats, FinishedRequest } from "@octavo/engine";
import type { Finding } from "./alert.js";
import type { Detector, DetectorContext } from "./detector.js";
import type { ObservedGap } from "./gap-reasons.js";

/** The number of latest admissions searched for overtaking requests. */
const mostAdmissions = 1024;
/** How long an alert fires after the last starved request. */
const holdMs = 60_000;
/** Requests that arrive together are admitted in any order; only a request that arrived this much later has overtaken. */
const leastLaterMs = 10;

interface Starved {
  readonly requestId: string | undefined;
  readonly waitedMs: number;
  readonly atMs: number;
}

/**
 * Requests that waited while later ones were served, in the queue or running but not scheduled. Both are known exactly from the
 * records, so one such request is enough. A long queue in which all requests wait is not starvation.
 */
export class SchedulerStarvationDetector implements Detector {
  readonly #context: DetectorContext;
  readonly #stats: () => Pick<EngineStats, "waiting" | "oldestWaitingMs">;
  /** Ring buffers of arrival and admission times. */
  readonly #arrivalMs = new Float64Array(mostAdmissions).fill(Number.NEGATIVE_INFINITY);
  readonly #admittedMs = new Float64Array(mostAdmissions).fill(Number.POSITIVE_INFINITY);
  #numAdmissions = 0;
  #latestArrivalMs = Number.NEGATIVE_INFINITY;
  #worst: Starved | undefined;
  #count = 0;

  constructor(context: DetectorContext, stats: () => Pick<EngineStats, "waiting" | "oldestWaitingMs">) {
    this.#context = context;
    this.#stats = stats;
  }

  /** Starved requests in the firing alert, or since the last one. */
  get count(): number {
    return this.#count;
  }

  observeFirstToken(timeToFirstTokenMs: number, nowMs: number): void {
    this.#latestArrivalMs = Math.max(this.#latestArrivalMs, nowMs - timeToFirstTokenMs);
  }

  observeFinished({ requestId, record }: FinishedRequest, nowMs: number): void {
    const arrivalMs = nowMs - record.e2eMs;
    const admittedMs = arrivalMs + record.queueMs;
    if (record.queueMs >= this.#context.thresholds.starvationMs && this.#wasOvertaken(arrivalMs, admittedMs))
      this.#note(requestId, record.queueMs, nowMs);
    const at = this.#numAdmissions % mostAdmissions;
    this.#arrivalMs[at] = arrivalMs;
    this.#admittedMs[at] = admittedMs;
    this.#numAdmissions += 1;
  }

  observeGap({ requestId, gapMs, wasSkipped, wasPreempted }: ObservedGap, nowMs: number): void {
    if (wasSkipped && !wasPreempted && gapMs >= this.#context.thresholds.starvationMs)
      this.#note(requestId, gapMs, nowMs);
  }

  evaluate(nowMs: number): readonly Finding[] {
    const { waiting, oldestWaitingMs } = this.#stats();
    const { starvationMs } = this.#context.thresholds;
    const isOvertaken = this.#latestArrivalMs > nowMs - oldestWaitingMs + leastLaterMs;
    if (waiting > 0 && oldestWaitingMs >= starvationMs && isOvertaken)
      this.#note(undefined, oldestWaitingMs, nowMs);
    const worst = this.#worst;
    if (worst === undefined) return [];
    if (nowMs - worst.atMs > holdMs) {
      this.#worst = undefined;
      this.#count = 0;
      return [];
    }
    return [
      {
        detector: "scheduler_starvation",
        form: "rule",
        tenant: undefined,
        reason: "scheduler-starve",
        reasons: [{ reason: "scheduler-starve", share: 1 }],
        value: worst.waitedMs / 1000,
        baseline: undefined,
        threshold: starvationMs / 1000,
        unit: "seconds",
        samples: this.#count,
        evidence: undefined,
        exampleRequestId: worst.requestId,
      },
    ];
  }

  #wasOvertaken(arrivalMs: number, admittedMs: number): boolean {
    for (let at = 0; at < mostAdmissions; at += 1) {
      if (this.#arrivalMs[at]! > arrivalMs + leastLaterMs && this.#admittedMs[at]! < admittedMs) return true;
    }
    return false;
  }

  #note(requestId: string | undefined, waitedMs: number, nowMs: number): void {
    if (requestId !== undefined) this.#count += 1;
    const isWorse = this.#worst === undefined || waitedMs >= this.#worst.waitedMs;
    this.#worst = isWorse ? { requestId, waitedMs, atMs: nowMs } : { ...this.#worst!, atMs: nowMs };
  }
}
