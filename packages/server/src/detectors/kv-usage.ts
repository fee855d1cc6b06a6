import type { StepRecord } from "@octavo/engine";
import type { Finding } from "./alert.js";
import type { Detector, DetectorContext } from "./detector.js";

/** How long usage must be above the threshold to fire, and below it to resolve. */
const sustainMs = 30_000;
/** Hysteresis: the alert resolves this far below the threshold. */
const slack = 0.05;

/**
 * The share of KV cache blocks in use. It is known exactly and needs no test. Preemptions and evictions since it rose show whether it
 * costs anything.
 */
export class KvUsageDetector implements Detector {
  readonly #context: DetectorContext;
  readonly #usage: () => number;
  #overSinceMs: number | undefined;
  #underSinceMs: number | undefined;
  #isFiring = false;
  #preemptions = 0;
  #evictions = 0;
  #samples = 0;

  constructor(context: DetectorContext, usage: () => number) {
    this.#context = context;
    this.#usage = usage;
  }

  observe({ preemptions, blocksEvicted }: StepRecord): void {
    if (this.#overSinceMs === undefined) return;
    this.#preemptions += preemptions;
    this.#evictions += blocksEvicted;
  }

  evaluate(nowMs: number): readonly Finding[] {
    const usage = this.#usage();
    const threshold = this.#context.thresholds.kvUsage;
    const isOver = usage > (this.#isFiring ? threshold - slack : threshold);
    if (isOver) {
      this.#underSinceMs = undefined;
      this.#overSinceMs ??= nowMs;
      this.#samples += 1;
      if (nowMs - this.#overSinceMs >= sustainMs) this.#isFiring = true;
    } else if (this.#isFiring) {
      this.#underSinceMs ??= nowMs;
      if (nowMs - this.#underSinceMs >= sustainMs) this.#reset();
    } else this.#reset();
    if (!this.#isFiring) return [];
    const hasCost = this.#preemptions > 0 || this.#evictions > 0;
    const reason = hasCost ? ("kv-eviction" as const) : ("kv-pressure" as const);
    return [
      {
        detector: "kv_usage",
        form: "rule",
        tenant: undefined,
        reason,
        reasons: [{ reason, share: 1 }],
        value: usage,
        baseline: undefined,
        threshold,
        unit: "ratio",
        samples: this.#samples,
        evidence: undefined,
        exampleRequestId: undefined,
      },
    ];
  }

  #reset(): void {
    this.#isFiring = false;
    this.#overSinceMs = undefined;
    this.#underSinceMs = undefined;
    this.#preemptions = 0;
    this.#evictions = 0;
    this.#samples = 0;
  }
}
