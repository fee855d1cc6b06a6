import type { AlertReason, Finding } from "./alert.js";
import { type Detector, type DetectorContext, SliceClock } from "./detector.js";
import { alarmThreshold, EDetector } from "./e-detector.js";
import { GapReasons, type ObservedGap } from "./gap-reasons.js";
import { ReasonTally } from "./reason-tally.js";
import { RollingSketch } from "./latency-sketch.js";

const sliceMs = 10_000;
/** Five minutes. */
const windowSlices = 30;
/** 24 hours of 15 minutes each. */
const baselineBlocks = 96;
const slicesPerBlock = 90;
const quantile = 0.99;
/** With fewer samples the percentile has no upper confidence bound. */
const leastForRule = 368;
const leastForBaseline = 1000;
/** A slice with fewer gaps counts as if it had this many. */
const fullSlice = 32;
/** Data of a firing alert stays out of the baseline for this long. */
const quarantineMs = 6 * 3_600_000;

/**
 * Compares the 99th percentile of the time between tokens of the last five minutes with the 24 hours before. The sequential
 * test is of the same hypothesis: at most 1 % of gaps exceed `decodeLatencyFactor` times the usual 99th percentile. A slice's
 * share of such gaps is one observation, since the gaps of one step are one event.
 */
export class DecodeLatencyDetector implements Detector {
  readonly #context: DetectorContext;
  readonly #clock = new SliceClock(sliceMs);
  readonly #window = new RollingSketch(windowSlices);
  readonly #baseline = new RollingSketch(baselineBlocks);
  readonly #reasons = new GapReasons(baselineBlocks);
  readonly #tally = new ReasonTally(windowSlices);
  readonly #test = new EDetector();
  readonly #alarmAt: number;
  readonly #onSlowGap: (reason: AlertReason, excessMs: number) => void;
  #startMs: number | undefined;
  #slicesInBlock = 0;
  /** Longer gaps are slow; undefined without a baseline. */
  #slowFromMs: number | undefined;
  #numGaps = 0;
  #numSlow = 0;
  #firingSinceMs: number | undefined;
  #usualP99Ms: number | undefined;
  #p99Ms: number | undefined;

  constructor(context: DetectorContext, onSlowGap: (reason: AlertReason, excessMs: number) => void) {
    this.#context = context;
    this.#onSlowGap = onSlowGap;
    this.#alarmAt = alarmThreshold(context.thresholds.falseAlarmYears, sliceMs, 1);
  }

  /** p99 over the last five minutes, and over the 24 hours before; undefined with too few samples. */
  get p99Ms(): { readonly now: number | undefined; readonly usual: number | undefined } {
    return { now: this.#p99Ms, usual: this.#usualP99Ms };
  }

  observe(gap: ObservedGap): void {
    this.#window.add(gap.gapMs);
    this.#numGaps += 1;
    if (this.#slowFromMs === undefined || gap.gapMs <= this.#slowFromMs) {
      if (this.#firingSinceMs === undefined) this.#reasons.note(gap);
      return;
    }
    this.#numSlow += 1;
    const { reason, excessMs } = this.#reasons.explain(gap);
    this.#tally.add(reason, excessMs, gap.requestId);
    this.#onSlowGap(reason, excessMs);
  }

  /** What makes a gap longer than usual. */
  explain(gap: ObservedGap): ReturnType<GapReasons["explain"]> {
    return this.#reasons.explain(gap);
  }

  evaluate(nowMs: number): readonly Finding[] {
    this.#startMs ??= nowMs;
    this.#clock.pass(nowMs, windowSlices, () => this.#endSlice(nowMs));
    return this.#findings();
  }

  #endSlice(nowMs: number): void {
    if (this.#slowFromMs !== undefined && this.#numGaps > 0) {
      const allowed = 1 - quantile;
      this.#test.observe(this.#numSlow / Math.max(fullSlice, this.#numGaps) - allowed, allowed);
    }
    this.#numGaps = 0;
    this.#numSlow = 0;
    this.#updateFiring(nowMs);
    const isUsual = this.#firingSinceMs === undefined || nowMs - this.#firingSinceMs > quarantineMs;
    this.#window.rotate((leaving) => {
      if (isUsual) this.#baseline.addAll(leaving);
    });
    this.#tally.rotate();
    this.#slicesInBlock += 1;
    if (this.#slicesInBlock === slicesPerBlock) {
      this.#slicesInBlock = 0;
      this.#baseline.rotate();
      this.#reasons.rotate();
    }
    this.#measure(nowMs);
  }

  #measure(nowMs: number): void {
    const { decodeLatencyFactor, minBaselineMs } = this.#context.thresholds;
    const isKnown =
      this.#baseline.total.count >= leastForBaseline && nowMs - (this.#startMs ?? nowMs) >= minBaselineMs;
    this.#usualP99Ms = isKnown ? this.#baseline.total.quantile(quantile) : undefined;
    this.#slowFromMs = this.#usualP99Ms === undefined ? undefined : decodeLatencyFactor * this.#usualP99Ms;
    this.#p99Ms = this.#window.total.count > 0 ? this.#window.total.quantile(quantile) : undefined;
  }

  #updateFiring(nowMs: number): void {
    if (this.#firingSinceMs === undefined) {
      if (this.#test.value >= this.#alarmAt) this.#firingSinceMs = nowMs;
      return;
    }
    const p99Ms = this.#window.total.quantile(quantile);
    if (p99Ms === undefined || this.#slowFromMs === undefined || p99Ms <= this.#slowFromMs) {
      this.#firingSinceMs = undefined;
      this.#test.reset();
    }
  }

  #findings(): readonly Finding[] {
    const { hasRules, thresholds } = this.#context;
    const isOver =
      this.#p99Ms !== undefined && this.#slowFromMs !== undefined && this.#p99Ms > this.#slowFromMs;
    const byRule = hasRules && isOver && this.#window.total.count >= leastForRule;
    const bySequence = this.#firingSinceMs !== undefined;
    if (!byRule && !bySequence) return [];
    const reasons = this.#tally.shares();
    const finding = {
      detector: "decode_latency" as const,
      tenant: undefined,
      reason: reasons[0]?.reason ?? "unknown",
      reasons,
      value: (this.#p99Ms ?? 0) / 1000,
      baseline: this.#usualP99Ms === undefined ? undefined : this.#usualP99Ms / 1000,
      threshold: ((this.#usualP99Ms ?? 0) * thresholds.decodeLatencyFactor) / 1000,
      unit: "seconds" as const,
      samples: this.#window.total.count,
      exampleRequestId: this.#tally.worstRequestId,
    };
    return [
      ...(bySequence ? [{ ...finding, form: "sequential" as const, evidence: this.#test.value }] : []),
      ...(byRule ? [{ ...finding, form: "rule" as const, evidence: undefined }] : []),
    ];
  }
}
