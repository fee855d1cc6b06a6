import type { KvCache, RowSampling, StepPlan, StepResult, Vacating } from "@octavo/kernels";
import type { BlockPool } from "../kv-cache/block-pool.js";
import type { Scheduler } from "../scheduler/scheduler.js";
import type { PlannedStep } from "../scheduler/step-budget.js";
import type { Sequence } from "../scheduler/sequence.js";
import { AcceptanceRates } from "./acceptance-rates.js";
import { type DraftCandidate, setDraftLengths } from "./draft-lengths.js";
import type { Drafter, DraftRequest } from "./drafter.js";
import { DecodeCost } from "./decode-cost.js";
import { DraftingBalance } from "./drafting-balance.js";

export interface SpeculationOptions {
  /** The engine disposes the drafter. */
  readonly createDrafter: (pool: BlockPool, cache: KvCache) => Drafter;
  /** Draft tokens per sequence and step, at most. */
  readonly numSpeculativeTokens: number;
  /** Choose draft lengths by measured acceptance and cost; default true. Otherwise always draft the maximum. */
  readonly adaptive?: boolean | undefined;
}

/** What speculation needs of the request behind a sequence. */
export interface SpeculatedRequest {
  /** Draft tokens that are of use beyond what the step computes of `sequence`. */
  draftLimit(sequence: Sequence): number;
  /** Truncates `sequence.draft` where sampling cannot follow it. */
  cutDraft(sequence: Sequence): void;
  samplingOf(sequence: Sequence): RowSampling | undefined;
}

/** Drafts whose time is kept. */
const numDraftingTimes = 9;
/** While nothing is drafted, steps between probes of one draft token; doubled each time the probe is rejected. */
const firstProbeInterval = 32;
const lastProbeInterval = 512;

/**
 * A drafter that takes time drafts `trialTokens` at first, whatever they cost, in so many steps or for so many sequences: what they cost and
 * how many are right is not known before.
 */
const trialSteps = 12;
const trialDrafts = 48;
const trialTokens = 3;

class Trial {
  #stepsLeft = trialSteps;
  #draftsLeft = trialDrafts;

  get isOver(): boolean {
    return this.#stepsLeft <= 0 || this.#draftsLeft <= 0;
  }

  note(numDrafted: number): void {
    this.#stepsLeft -= 1;
    this.#draftsLeft -= numDrafted / trialTokens;
  }
}

/** A sequence with the acceptance rates of its drafts. */
class SpeculatedSequence implements DraftRequest, DraftCandidate {
  readonly sequence: Sequence;
  readonly sampling: RowSampling;
  readonly rates: AcceptanceRates;
  maxTokens = 0;
  length = 0;
  confidence = 0;

  constructor(sequence: Sequence, sampling: RowSampling, others: AcceptanceRates) {
    this.sequence = sequence;
    this.sampling = sampling;
    this.rates = new AcceptanceRates(others);
  }

  get rate(): number {
    return this.rates.rate(this.confidence);
  }
}

/**
 * Speculative decoding: before a step, drafts the next tokens of its sequences; the step computes them too and samples at
 * each of them, up to the first mismatch (Leviathan, Kalman and Matias 2023). Since sampling depends on the logits and on
 * (seed, index) alone, a draft token is accepted exactly if it is the token that would have been sampled: with and without
 * speculation, greedy or not, a sequence gets the same tokens, and no rejection rule is needed to keep their distribution.
 */
export class Speculation implements Disposable {
  readonly #options: SpeculationOptions;
  readonly #drafter: Drafter;
  readonly #scheduler: Scheduler;
  readonly #speculated = new Map<Sequence, SpeculatedSequence>();
  readonly #rates = new AcceptanceRates();
  readonly #cost = new DecodeCost();
  /** Candidates in the step being planned; reused. */
  readonly #candidates: SpeculatedSequence[] = [];
  /** Of the latest drafts, milliseconds per token. */
  readonly #draftingMs: number[] = [];
  /** Of the step being planned or run, reading earlier text included. */
  #stepDraftingMs = 0;
  #stepReadingMs = 0;
  #stepAccepted = 0;
  /** Present where the drafter reads all that the model computes, and may leave that. */
  readonly #balance: DraftingBalance | undefined;
  #trial = new Trial();
  #stepsToProbe = firstProbeInterval;
  #probeInterval = firstProbeInterval;
  #numProbes = 0;
  #probed: SpeculatedSequence | undefined;

  constructor(options: SpeculationOptions, pool: BlockPool, cache: KvCache, scheduler: Scheduler) {
    this.#options = options;
    this.#drafter = options.createDrafter(pool, cache);
    this.#scheduler = scheduler;
    if (options.adaptive !== false && this.#drafter.follow !== undefined)
      this.#balance = new DraftingBalance();
  }

  /** Nothing is drafted, and nobody reads what the model sends. */
  get isResting(): boolean {
    return this.#balance?.isPaused === true;
  }

  /** Drafts for the sequences of a planned step and reserves room; returns a promise if a model drafts. */
  draft(step: PlannedStep, requestOf: (sequence: Sequence) => SpeculatedRequest): void | Promise<void> {
    const candidates = this.#candidates;
    candidates.length = 0;
    this.#probed = undefined;
    this.#stepDraftingMs = 0;
    this.#stepReadingMs = 0;
    this.#stepAccepted = 0;
    if (this.isResting) return;
    for (const sequence of step.sequences) {
      const request = requestOf(sequence);
      const maxTokens = Math.min(request.draftLimit(sequence), this.#options.numSpeculativeTokens);
      if (maxTokens < 1) continue;
      const speculated = this.#of(sequence, request);
      if (speculated === undefined) continue;
      speculated.maxTokens = maxTokens;
      speculated.confidence = 0;
      candidates.push(speculated);
    }
    if (candidates.length === 0) return;
    if (this.#drafter.isCostly) return this.#draftWithModel(step, requestOf);
    // Only costly drafters return a promise.
    void this.#drafter.draft(candidates);
    for (const candidate of candidates) candidate.maxTokens = candidate.sequence.draft.length;
    this.#setLengths(step);
    for (const { sequence, length } of candidates) {
      sequence.draft.truncate(length);
      if (length > 0) this.#fit(sequence, requestOf(sequence));
    }
  }

  /** After `commit` and after the step's tokens were appended: settles the draft. Returns drafted and accepted tokens. */
  settle(sequence: Sequence): { readonly numDrafted: number; readonly numAccepted: number } | undefined {
    const numDrafted = sequence.draft.length;
    const numAccepted = this.#scheduler.settleDraft(sequence);
    if (numDrafted === 0) return undefined;
    this.#stepAccepted += numAccepted;
    const speculated = this.#speculated.get(sequence);
    speculated?.rates.observe(speculated.confidence, numDrafted, numAccepted);
    if (speculated !== undefined && speculated === this.#probed)
      this.#probeInterval =
        numAccepted > 0 ? firstProbeInterval : Math.min(this.#probeInterval * 2, lastProbeInterval);
    return { numDrafted, numAccepted };
  }

  /** See `Drafter`. */
  follow(step: PlannedStep, plan: StepPlan, result: StepResult): Promise<void> | undefined {
    if (this.isResting) return undefined;
    const startMs = performance.now();
    return this.#drafter.follow?.(step, plan, result).finally(() => {
      this.#stepReadingMs = performance.now() - startMs;
    });
  }

  /** Records the time of a step that verified `numDrafted` draft tokens, from its planning to its results. */
  observe({ prefillTokens, decodeTokens }: PlannedStep, numDrafted: number, durationMs: number): void {
    // What drafting and reading cost is counted by itself.
    const besidesMs = this.#stepDraftingMs + this.#stepReadingMs;
    if (prefillTokens === 0) this.#cost.observe(decodeTokens + numDrafted, durationMs - besidesMs);
    if (numDrafted > 0 && !this.#trial.isOver) return this.#trial.note(numDrafted);
    if (this.#balance === undefined || this.#cost.isUnknown) return;
    const { isPaused } = this.#balance;
    const stepMs = this.#cost.of(Math.max(1, decodeTokens));
    const tookMs = numDrafted * this.#cost.perToken + besidesMs;
    this.#balance.note(this.#stepAccepted / Math.max(1, decodeTokens) - tookMs / stepMs);
    if (!this.#balance.isPaused || isPaused) return;
    this.#drafter.forget?.();
    this.#rates.clear();
    this.#trial = new Trial();
  }

  release(sequence: Sequence): void {
    this.#drafter.release(sequence);
    this.#speculated.delete(sequence);
  }

  /** See `Drafter`. */
  vacate(backend: Vacating): void {
    this.#drafter.vacate?.(backend);
  }

  refill(backend: Vacating): void {
    this.#drafter.refill?.(backend);
  }

  [Symbol.dispose](): void {
    this.#drafter[Symbol.dispose]();
  }

  #of(sequence: Sequence, request: SpeculatedRequest): SpeculatedSequence | undefined {
    const known = this.#speculated.get(sequence);
    if (known !== undefined) return known;
    const sampling = request.samplingOf(sequence);
    if (sampling === undefined) return undefined;
    const speculated = new SpeculatedSequence(sequence, sampling, this.#rates);
    this.#speculated.set(sequence, speculated);
    return speculated;
  }

  async #draftWithModel(
    step: PlannedStep,
    requestOf: (sequence: Sequence) => SpeculatedRequest,
  ): Promise<void> {
    this.#setLengths(step);
    const chosen = this.#candidates.filter((candidate) => {
      candidate.maxTokens = this.#scheduler.reserveDraft(candidate.sequence, candidate.length);
      return candidate.maxTokens > 0;
    });
    if (chosen.length === 0) return;
    const startMs = performance.now();
    const tookMs = await this.#drafter.draft(chosen);
    this.#stepDraftingMs = performance.now() - startMs;
    let numDrafted = 0;
    for (const { sequence } of chosen) {
      numDrafted += sequence.draft.length;
      if (sequence.draft.length > 0) requestOf(sequence).cutDraft(sequence);
    }
    if (numDrafted === 0 || tookMs === undefined) return;
    this.#draftingMs.push(tookMs / numDrafted);
    if (this.#draftingMs.length > numDraftingTimes) this.#draftingMs.shift();
  }

  /** Milliseconds of drafting a token: the lower median, since a first draft, or one while the machine is busy, takes many times as long. */
  get #perDraftedMs(): number {
    const sorted = this.#draftingMs.toSorted((a, b) => a - b);
    return sorted[(sorted.length - 1) >> 1] ?? 0;
  }

  #fit(sequence: Sequence, request: SpeculatedRequest): void {
    request.cutDraft(sequence);
    sequence.draft.truncate(this.#scheduler.reserveDraft(sequence, sequence.draft.length));
  }

  #setLengths({ decodeTokens, prefillTokens }: PlannedStep): void {
    const candidates = this.#candidates;
    if (this.#options.adaptive === false) {
      for (const candidate of candidates) candidate.length = candidate.maxTokens;
      return;
    }
    if (this.#cost.isUnknown) {
      for (const candidate of candidates) candidate.length = 0;
      return;
    }
    if (this.#drafter.isCostly && !this.#trial.isOver) {
      for (const candidate of candidates) candidate.length = Math.min(candidate.maxTokens, trialTokens);
      return;
    }
    setDraftLengths(candidates, {
      baseMs: this.#cost.of(decodeTokens + prefillTokens),
      draftTokenMs: this.#cost.perToken + this.#perDraftedMs,
      baseTokens: Math.max(decodeTokens, candidates.length),
    });
    this.#probe();
  }

  /** While nothing is drafted, drafts one token now and then, for one sequence after another. */
  #probe(): void {
    const candidates = this.#candidates;
    if (candidates.some((candidate) => candidate.length > 0)) {
      this.#stepsToProbe = this.#probeInterval;
      return;
    }
    this.#stepsToProbe -= 1;
    if (this.#stepsToProbe > 0) return;
    this.#numProbes += 1;
    for (let index = 0; index < candidates.length; index += 1) {
      const candidate = candidates[(this.#numProbes + index) % candidates.length]!;
      if (candidate.maxTokens === 0) continue;
      candidate.length = 1;
      this.#probed = candidate;
      this.#stepsToProbe = this.#probeInterval;
      return;
    }
  }
}
