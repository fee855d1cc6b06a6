import type { Cause, EngineStats, RequestEvidence, StepRecord } from "@octavo/engine";
import { plainServingRecord } from "@octavo/engine/testing";
import { TestRandom } from "@octavo/text/testing/random";
import { type Alert, AlertCenter } from "../detectors/alert-center.js";
import { DetectorSuite } from "../detectors/detector-suite.js";
import { defaultDetectorThresholds, type DetectorThresholds } from "../detectors/thresholds.js";

/** What is other than usual. */
export interface Trouble {
  /** Prompts of others in every step, ms. */
  readonly prefillMs?: number;
  /** Decoding takes so many times as long. */
  readonly decodeFactor?: number;
  /** Sequences in a step beside the three that are watched. */
  readonly neighbours?: number;
  /** Between computing, ms. */
  readonly hostMs?: number;
  /** Half of the watched are left out of steps for so long, ms; preempted or not. */
  readonly absentMs?: number;
  readonly isPreempted?: boolean;
  /** Share of the usually cached prompt tokens that are not. */
  readonly lostHits?: number;
  /** Share of these that was evicted. */
  readonly evictedShare?: number;
  /** A tenant whose first tokens take so much longer, ms, and why. */
  readonly slowTenant?: { readonly name: string; readonly ms: number; readonly cause: Cause };
  /** Everybody's first tokens do. */
  readonly slowForAllMs?: number;
}

const beatMs = 15_000;
const dayMs = 86_400_000;
const tenants = [
  { name: "large", share: 0.7 },
  { name: "medium", share: 0.9 },
  { name: "small", share: 1 },
] as const;

/**
 * A server's days in simulated time: beats of fifteen seconds, each with a few steps and requests. Load and latencies follow
 * the day, gaps have long tails, prompts burst in on one step in thirty.
 */
export class SimulatedTraffic {
  readonly alerts: (Alert & { readonly atMs: number })[] = [];
  readonly suite: DetectorSuite;
  readonly stats: { -readonly [Key in keyof EngineStats]: EngineStats[Key] } = {
    running: 3,
    waiting: 0,
    oldestWaitingMs: 0,
    kvCacheUsage: 0.5,
    blockSize: 16,
    totalBlocks: 1000,
    freeBlocks: 500,
    cachedBlocks: 200,
  };
  nowMs = 0;
  readonly #random: TestRandom;
  readonly #center: AlertCenter;
  readonly #observer;
  readonly #causes = new Map<string, Cause>();
  #numRequests = 0;
  #numSteps = 0;

  constructor(seed: number, thresholds: Partial<DetectorThresholds> = {}, hasRules = false) {
    this.#random = new TestRandom(seed);
    const evidence = { request: (id: string): RequestEvidence | undefined => this.#evidenceOf(id) };
    this.suite = new DetectorSuite({
      thresholds: { ...defaultDetectorThresholds, ...thresholds },
      hasRules,
      engine: { stats: this.stats, evidence },
      now: () => this.nowMs,
    });
    this.#observer = this.suite.observer;
    this.#center = new AlertCenter({
      evidence,
      onAlert: (alert) => void this.alerts.push({ ...alert, atMs: this.nowMs }),
      epochNow: () => this.nowMs,
    });
  }

  run(durationMs: number, trouble: Trouble = {}): void {
    const endMs = this.nowMs + durationMs;
    while (this.nowMs < endMs) this.#beat(trouble);
  }

  /** Asks the detectors, as the server does every second. */
  evaluate(): void {
    this.#center.update(this.suite.evaluate());
  }

  /** A request from arrival to end. */
  request(tenant: string, waitedMs: number, cause: Cause, trouble: Trouble = {}): void {
    const requestId = `r${(this.#numRequests += 1)}`;
    this.#causes.set(requestId, cause);
    this.#observer.onFirstToken?.({ requestId, tenant }, waitedMs);
    const promptTokens = 200 + this.#random.below(600);
    const isHit = this.#random.next() < 0.7;
    const usualHit = isHit ? Math.floor(promptTokens * 0.9) : 0;
    const lost = Math.floor(usualHit * (trouble.lostHits ?? 0));
    const decodeMs = 1500 * this.#lognormal(0.5);
    this.nowMs += decodeMs;
    this.#observer.onFinished?.({
      requestId,
      tenant,
      lane: 0,
      reasons: ["stop"],
      usage: { promptTokens, completionTokens: 50, cachedTokens: usualHit - lost },
      record: {
        ...plainServingRecord,
        queueMs: cause === "queue" ? waitedMs : 1,
        timeToFirstTokenMs: waitedMs,
        e2eMs: waitedMs + decodeMs,
        evictedPrefixTokens: Math.floor(lost * (trouble.evictedShare ?? 0)),
      },
      n: 1,
      maxTokens: 50,
    });
    // others are served meanwhile
    this.nowMs -= decodeMs;
    this.#causes.delete(requestId);
  }

  #beat(trouble: Trouble): void {
    const startMs = this.nowMs;
    // twice as much at noon as at night
    const load = 1 + 0.33 * Math.sin((2 * Math.PI * startMs) / dayMs);
    this.#decode(load, trouble);
    const numRequests = Math.floor(load + this.#random.next() * 2);
    for (let index = 0; index < numRequests; index += 1) {
      const draw = this.#random.next();
      const tenant = tenants.find(({ share }) => draw < share)?.name ?? "small";
      const slow = trouble.slowTenant?.name === tenant ? trouble.slowTenant : undefined;
      const waitedMs = 200 * load * this.#lognormal(0.6) + (slow?.ms ?? 0) + (trouble.slowForAllMs ?? 0);
      this.request(tenant, waitedMs, slow?.cause ?? "queue", trouble);
    }
    this.nowMs = Math.max(this.nowMs, startMs + beatMs);
    this.evaluate();
  }

  /** Two steps of three sequences that have been running. */
  #decode(load: number, trouble: Trouble): void {
    const usualBurstMs = this.#random.next() < 1 / 30 ? 60 * this.#lognormal(0.4) : 0;
    const ids = ["a", "b", "c"];
    let lastMs = this.nowMs;
    for (let index = 0; index < 2; index += 1) {
      if (index === 1 && trouble.absentMs !== undefined) {
        this.#step(20, 0, trouble.absentMs, 1);
        if (trouble.isPreempted === true) for (const id of ids) this.#observer.onPreemption?.(id);
      }
      const decodeMs = 30 * load * this.#lognormal(0.25) * (trouble.decodeFactor ?? 1);
      const prefillMs = (index === 0 ? usualBurstMs : 0) + (trouble.prefillMs ?? 0);
      const stall = this.#random.next() < 1 / 1000 ? 300 : 0;
      const durationMs = decodeMs + prefillMs + 2 + stall + (trouble.hostMs ?? 0);
      const endMs = this.nowMs + durationMs;
      for (const requestId of ids)
        this.#observer.onInterToken?.({ requestId, tenant: "large" }, endMs - lastMs);
      this.#step(decodeMs, prefillMs, durationMs, 3 + (trouble.neighbours ?? 0));
      lastMs = endMs;
    }
  }

  #step(decodeMs: number, prefillMs: number, durationMs: number, numSequences: number): void {
    const step: StepRecord = {
      step: (this.#numSteps += 1),
      startMs: this.nowMs,
      durationMs,
      computeMs: decodeMs + prefillMs,
      prefillMs,
      numSequences,
      prefillTokens: prefillMs > 0 ? 512 : 0,
      decodeTokens: numSequences,
      blocksUsed: 500,
      blocksEvicted: 0,
      preemptions: 0,
    };
    this.#observer.onStep?.(step);
    this.nowMs += durationMs;
  }

  #evidenceOf(requestId: string): RequestEvidence | undefined {
    const cause = this.#causes.get(requestId);
    if (cause === undefined) return undefined;
    const requests = [{ requestId: "other", tenant: "default", ms: 1, tokens: 4096 }];
    return {
      requestId,
      tenant: "default",
      isOver: false,
      record: plainServingRecord,
      firstToken: { ms: 1, cause, parts: [{ cause, ms: 1, requests }] },
      slowGaps: [],
    };
  }

  /** Median 1. */
  #lognormal(sigma: number): number {
    const radius = Math.sqrt(-2 * Math.log(1 - this.#random.next()));
    return Math.exp(sigma * radius * Math.cos(2 * Math.PI * this.#random.next()));
  }
}
