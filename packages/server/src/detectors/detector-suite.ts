import { performance } from "node:perf_hooks";
import type { Engine, EngineObserver, Evidence } from "@octavo/engine";
import type { AlertReason, Finding } from "./alert.js";
import { CacheHitRatioDetector } from "./cache-hit-ratio.js";
import { DecodeLatencyDetector } from "./decode-latency.js";
import type { DetectorContext } from "./detector.js";
import { KvUsageDetector } from "./kv-usage.js";
import { SchedulerStarvationDetector } from "./scheduler-starvation.js";
import { StepGaps } from "./step-gaps.js";
import { TenantLatencyDetector } from "./tenant-latency.js";
import type { DetectorThresholds } from "./thresholds.js";

export interface DetectorSuiteOptions {
  readonly thresholds: DetectorThresholds;
  /** Also raise alerts by ratios and levels, in addition to the sequential tests. */
  readonly hasRules: boolean;
  readonly engine: Pick<Engine, "stats"> & { readonly evidence: Pick<Evidence, "request"> };
  /** Called for every slow gap, with the time beyond the usual. */
  readonly onSlowGap?: (reason: AlertReason, excessMs: number) => void;
  /** Default `performance.now`. */
  readonly now?: () => number;
}

/** All detectors of one engine. Their memory is bounded: bucketed counts per time slice, never samples. */
export class DetectorSuite {
  readonly decodeLatency: DecodeLatencyDetector;
  readonly cacheHitRatio: CacheHitRatioDetector;
  readonly kvUsage: KvUsageDetector;
  readonly starvation: SchedulerStarvationDetector;
  readonly tenantLatency: TenantLatencyDetector;
  readonly #gaps = new StepGaps();
  readonly #now: () => number;

  constructor(options: DetectorSuiteOptions) {
    const { engine, thresholds, hasRules } = options;
    this.#now = options.now ?? (() => performance.now());
    const context: DetectorContext = {
      thresholds,
      hasRules,
      explainFirstToken: (requestId) => engine.evidence.request(requestId)?.firstToken,
    };
    this.decodeLatency = new DecodeLatencyDetector(context, options.onSlowGap ?? (() => {}));
    this.cacheHitRatio = new CacheHitRatioDetector(context);
    this.kvUsage = new KvUsageDetector(context, () => engine.stats.kvCacheUsage);
    this.starvation = new SchedulerStarvationDetector(context, () => engine.stats);
    this.tenantLatency = new TenantLatencyDetector(context, (gap) => this.decodeLatency.explain(gap));
  }

  get observer(): EngineObserver {
    return {
      onInterToken: (request, gapMs) => this.#gaps.noteGap(request, gapMs),
      onPreemption: (requestId) => this.#gaps.notePreemption(requestId),
      onStep: (step) => {
        this.kvUsage.observe(step);
        this.#gaps.end(step, (gap) => {
          this.decodeLatency.observe(gap);
          this.tenantLatency.observeGap(gap);
          this.starvation.observeGap(gap, this.#now());
        });
      },
      onFirstToken: (request, timeToFirstTokenMs) => {
        this.#gaps.noteFirstToken(request.requestId);
        this.starvation.observeFirstToken(timeToFirstTokenMs, this.#now());
        this.tenantLatency.observeFirstToken(request, timeToFirstTokenMs);
      },
      onFinished: (request) => {
        this.#gaps.noteEnd(request.requestId);
        this.cacheHitRatio.observe(request);
        this.starvation.observeFinished(request, this.#now());
        this.tenantLatency.observeFinished(request);
      },
    };
  }

  /** Current findings; called about every second. */
  evaluate(): readonly Finding[] {
    const nowMs = this.#now();
    const detectors = [
      this.decodeLatency,
      this.cacheHitRatio,
      this.kvUsage,
      this.starvation,
      this.tenantLatency,
    ];
    return detectors.flatMap((detector) => detector.evaluate(nowMs));
  }
}
