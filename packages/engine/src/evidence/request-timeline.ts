import { IntList } from "../kv-cache/int-list.js";
import type { Sequence } from "../scheduler/sequence.js";
import { FloatList } from "./float-list.js";
import type { GapSummary, ServingRecord } from "./serving-record.js";
import { SpreadCounter } from "./spread.js";

/** When a sequence got output: entry i belongs to its i-th step with output. */
export class SequenceTimeline {
  /** Number of the step that gave the output. */
  readonly steps = new IntList();
  /** Entry i: ms between outputs i and i + 1. */
  readonly gaps = new FloatList();
  #lastMs: number | undefined;

  /** Records output; returns the ms since the previous output, undefined for the first. */
  note(step: number, nowMs: number): number | undefined {
    const gapMs = this.#lastMs === undefined ? undefined : nowMs - this.#lastMs;
    this.steps.push(step);
    if (gapMs !== undefined) this.gaps.push(gapMs);
    this.#lastMs = nowMs;
    return gapMs;
  }
}

/** A preemption of a sequence. */
export interface Preemption {
  readonly sequence: number;
  /** The step being planned. */
  readonly step: number;
  /** Order of the request that needed the blocks; undefined if the preemption was forced. */
  readonly byOrder: number | undefined;
}

/** What happened to one request from arrival to its last token, on `performance.now()`'s clock. */
export class RequestTimeline {
  readonly requestId: string;
  /** The request's number in the engine, by arrival. */
  readonly order: number;
  /** When it reached the server. */
  readonly arrivalMs: number;
  /** When it reached the engine, rendered and tokenised, its grammar compiled. */
  readonly queuedMs = performance.now();
  /** Part of the time before that which compiling its grammar took. */
  readonly grammarMs: number;
  /** Requests waiting for admission when it arrived. */
  queueDepthAtArrival = 0;
  admittedMs: number | undefined;
  firstTokenMs: number | undefined;
  lastTokenMs: number | undefined;
  endMs: number | undefined;
  /** Its share of the backend's compute time. */
  kernelMs = 0;
  /** Total time that output waited for its reader. */
  readerLagMs = 0;
  /** Prompt tokens that had been cached and were evicted before it came. */
  evictedPrefixTokens = 0;
  numSteps = 0;
  #draftTokens = 0;
  #acceptedDraftTokens = 0;
  readonly #preemptions: Preemption[] = [];
  readonly #batchSizes = new SpreadCounter();
  readonly #foreignPrefill = new SpreadCounter();
  readonly #sequences: SequenceTimeline[] = [];

  constructor(
    request: { readonly requestId: string; readonly arrivalMs?: number; readonly grammarMs?: number },
    order: number,
  ) {
    this.requestId = request.requestId;
    this.order = order;
    this.arrivalMs = Math.min(request.arrivalMs ?? this.queuedMs, this.queuedMs);
    this.grammarMs = request.grammarMs ?? 0;
  }

  get sequences(): readonly SequenceTimeline[] {
    return this.#sequences;
  }

  /** Oldest first. */
  get preemptions(): readonly Preemption[] {
    return this.#preemptions;
  }

  /** Outputs kept, over all sequences. */
  get numOutputs(): number {
    return this.#sequences.reduce((sum, { steps }) => sum + steps.length, 0);
  }

  /** Records output of a sequence; returns the ms since its previous output, undefined for the first. */
  noteOutput(sequence: number, step: number, nowMs: number): number | undefined {
    this.firstTokenMs ??= nowMs;
    this.lastTokenMs = nowMs;
    while (this.#sequences.length <= sequence) this.#sequences.push(new SequenceTimeline());
    return this.#sequences[sequence]!.note(step, nowMs);
  }

  /** Records a step that computed some of its tokens. */
  noteStep(batchSize: number, foreignPrefillTokens: number): void {
    this.numSteps += 1;
    this.#batchSizes.add(batchSize);
    this.#foreignPrefill.add(foreignPrefillTokens);
  }

  /** Records the draft tokens that a step verified, and how many were accepted. */
  noteDraft(numDrafted: number, numAccepted: number): void {
    this.#draftTokens += numDrafted;
    this.#acceptedDraftTokens += numAccepted;
  }

  notePreemption(preemption: Preemption): void {
    this.#preemptions.push(preemption);
  }

  record(sequences: readonly Sequence[], blockSize: number): ServingRecord {
    const { arrivalMs, admittedMs, firstTokenMs, lastTokenMs } = this;
    const endMs = this.endMs ?? performance.now();
    const promptTokens = sequences[0]?.numPromptTokens ?? 0;
    const cachedTokens = sequences[0]?.cachedTokens ?? 0;
    const sum = (of: (sequence: Sequence) => number): number =>
      sequences.reduce((total, sequence) => total + of(sequence), 0);
    return {
      queueMs: (admittedMs ?? endMs) - arrivalMs,
      queueDepthAtArrival: this.queueDepthAtArrival,
      timeToFirstTokenMs: firstTokenMs === undefined ? undefined : firstTokenMs - arrivalMs,
      prefillMs: admittedMs === undefined ? 0 : (firstTokenMs ?? endMs) - admittedMs,
      decodeMs: firstTokenMs === undefined ? 0 : (lastTokenMs ?? firstTokenMs) - firstTokenMs,
      e2eMs: endMs - arrivalMs,
      kernelMs: this.kernelMs,
      readerLagMs: this.readerLagMs,
      gaps: this.#gapSummary(),
      numSteps: this.numSteps,
      batchSize: this.#batchSizes.spread,
      sharedPrefillTokens: this.#foreignPrefill.spread,
      cachedTokens,
      cacheHitRatio: promptTokens === 0 ? 0 : cachedTokens / promptTokens,
      evictedPrefixTokens: this.evictedPrefixTokens,
      blocksHit: Math.floor(cachedTokens / blockSize),
      blocksAllocated: sum(({ numBlocksAllocated }) => numBlocksAllocated),
      blocksEvicted: sum(({ numBlocksEvicted }) => numBlocksEvicted),
      preemptions: sum(({ numPreemptions }) => numPreemptions),
      recomputedTokens: sum(({ numRecomputed }) => numRecomputed),
      draftTokens: this.#draftTokens,
      acceptedDraftTokens: this.#acceptedDraftTokens,
    };
  }

  #gapSummary(): GapSummary {
    const all = this.#sequences.map(({ gaps }) => gaps.sorted());
    const only = all.length === 1 ? all[0] : undefined;
    const sorted = only ?? Float32Array.from(all.flatMap((gaps) => [...gaps])).sort();
    const count = sorted.length;
    if (count === 0) return { count: 0, meanMs: 0, p50Ms: 0, p99Ms: 0, maxMs: 0 };
    const at = (share: number): number => sorted[Math.max(0, Math.ceil(share * count) - 1)]!;
    let totalMs = 0;
    for (const gapMs of sorted) totalMs += gapMs;
    return { count, meanMs: totalMs / count, p50Ms: at(0.5), p99Ms: at(0.99), maxMs: at(1) };
  }
}
