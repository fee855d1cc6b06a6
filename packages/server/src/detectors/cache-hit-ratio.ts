import type { FinishedRequest } from "@octavo/engine";
import type { Finding } from "./alert.js";
import { type Detector, type DetectorContext, SliceClock } from "./detector.js";
import { alarmThreshold, EDetector } from "./e-detector.js";
import { RollingSums } from "./rolling-sums.js";

const sliceMs = 30_000;
/** Five minutes. */
const windowSlices = 10;
/** 24 hours of 15 minutes each. */
const baselineBlocks = 96;
const slicesPerBlock = 30;
const leastForRule = 50;
const leastForBaseline = 200;
/** With more misses than this usually, there are too few hits to lose. */
const mostMisses = 0.98;
/** Evictions explain a drop if they cause at least this share of it. */
const explainingShare = 0.5;
const quarantineMs = 6 * 3_600_000;

/** Indices into the sums. */
const requestsAt = 0;
const promptAt = 1;
const hitAt = 2;
const evictedAt = 3;
const width = 4;

/**
 * Compares the prefix cache's hit ratio of the last five minutes with the 24 hours before. The sequential test asks whether the
 * share of misses in half a minute exceeds the usual share plus `cacheHitRatioDrop`. Request records count tokens that had been
 * cached but were evicted, which distinguishes a cache that is too small from new prompts.
 */
export class CacheHitRatioDetector implements Detector {
  readonly #context: DetectorContext;
  readonly #clock = new SliceClock(sliceMs);
  readonly #window = new RollingSums(width, windowSlices);
  readonly #baseline = new RollingSums(width, baselineBlocks);
  readonly #test = new EDetector();
  readonly #alarmAt: number;
  /** In the current slice. */
  #prompt = 0;
  #hit = 0;
  #slicesInBlock = 0;
  #startMs: number | undefined;
  #usualRatio: number | undefined;
  #usualEvicted = 0;
  #firingSinceMs: number | undefined;

  constructor(context: DetectorContext) {
    this.#context = context;
    this.#alarmAt = alarmThreshold(context.thresholds.falseAlarmYears, sliceMs, 1);
  }

  get ratio(): { readonly now: number | undefined; readonly usual: number | undefined } {
    const prompt = this.#window.total(promptAt);
    return { now: prompt > 0 ? this.#window.total(hitAt) / prompt : undefined, usual: this.#usualRatio };
  }

  observe({ usage, record }: FinishedRequest): void {
    if (record.timeToFirstTokenMs === undefined || usage.promptTokens === 0) return;
    this.#prompt += usage.promptTokens;
    this.#hit += usage.cachedTokens;
    this.#window.add(requestsAt, 1);
    this.#window.add(promptAt, usage.promptTokens);
    this.#window.add(hitAt, usage.cachedTokens);
    this.#window.add(evictedAt, record.evictedPrefixTokens);
  }

  evaluate(nowMs: number): readonly Finding[] {
    this.#startMs ??= nowMs;
    this.#clock.pass(nowMs, windowSlices, () => this.#endSlice(nowMs));
    return this.#findings();
  }

  /** The allowed share of misses. */
  get #allowedMisses(): number | undefined {
    if (this.#usualRatio === undefined) return undefined;
    const allowed = 1 - this.#usualRatio + this.#context.thresholds.cacheHitRatioDrop;
    return allowed < mostMisses ? allowed : undefined;
  }

  #endSlice(nowMs: number): void {
    const allowed = this.#allowedMisses;
    if (allowed !== undefined && this.#prompt > 0)
      this.#test.observe(1 - this.#hit / this.#prompt - allowed, allowed);
    this.#prompt = 0;
    this.#hit = 0;
    this.#updateFiring(nowMs);
    const leaving = this.#window.rotate();
    const isUsual = this.#firingSinceMs === undefined || nowMs - this.#firingSinceMs > quarantineMs;
    if (isUsual) for (const [index, sum] of leaving.entries()) this.#baseline.add(index, sum);
    this.#slicesInBlock += 1;
    if (this.#slicesInBlock === slicesPerBlock) {
      this.#slicesInBlock = 0;
      this.#baseline.rotate();
    }
    const prompt = this.#baseline.total(promptAt);
    const isKnown =
      this.#baseline.total(requestsAt) >= leastForBaseline &&
      nowMs - (this.#startMs ?? nowMs) >= this.#context.thresholds.minBaselineMs;
    this.#usualRatio = isKnown && prompt > 0 ? this.#baseline.total(hitAt) / prompt : undefined;
    this.#usualEvicted = prompt > 0 ? this.#baseline.total(evictedAt) / prompt : 0;
  }

  #updateFiring(nowMs: number): void {
    if (this.#firingSinceMs === undefined) {
      if (this.#test.value >= this.#alarmAt) this.#firingSinceMs = nowMs;
    } else if (!this.#isLow) {
      this.#firingSinceMs = undefined;
      this.#test.reset();
    }
  }

  get #isLow(): boolean {
    const { now } = this.ratio;
    const allowed = this.#allowedMisses;
    return now !== undefined && allowed !== undefined && 1 - now > allowed;
  }

  #findings(): readonly Finding[] {
    const bySequence = this.#firingSinceMs !== undefined;
    const byRule = this.#context.hasRules && this.#isLow && this.#window.total(requestsAt) >= leastForRule;
    if (!bySequence && !byRule) return [];
    const now = this.ratio.now ?? 0;
    const drop = Math.max(1e-9, (this.#usualRatio ?? 0) - now);
    const evicted = this.#window.total(evictedAt) / Math.max(1, this.#window.total(promptAt));
    const byEviction = Math.min(1, Math.max(0, evicted - this.#usualEvicted) / drop);
    const reason = byEviction >= explainingShare ? ("kv-eviction" as const) : ("traffic-change" as const);
    const finding = {
      detector: "cache_hit_ratio" as const,
      tenant: undefined,
      reason,
      reasons: [
        { reason: "kv-eviction" as const, share: byEviction },
        { reason: "traffic-change" as const, share: 1 - byEviction },
      ].toSorted((a, b) => b.share - a.share),
      value: now,
      baseline: this.#usualRatio,
      threshold: 1 - (this.#allowedMisses ?? 1),
      unit: "ratio" as const,
      samples: this.#window.total(requestsAt),
      exampleRequestId: undefined,
    };
    return [
      ...(bySequence ? [{ ...finding, form: "sequential" as const, evidence: this.#test.value }] : []),
      ...(byRule ? [{ ...finding, form: "rule" as const, evidence: undefined }] : []),
    ];
  }
}
