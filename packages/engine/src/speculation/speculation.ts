import type { RowSampling } from "@octavo/kernels";
import type { BlockPool } from "../kv-cache/block-pool.js";
import type { Scheduler } from "../scheduler/scheduler.js";
import type { PlannedStep } from "../scheduler/step-budget.js";
import type { Sequence } from "../scheduler/sequence.js";
import { AcceptanceRates } from "./acceptance-rates.js";
import { type DraftCandidate, setDraftLengths } from "./draft-lengths.js";
import type { Drafter, Guess } from "./drafter.js";
import { StepCost } from "./step-cost.js";

export interface SpeculationOptions {
  /** Makes what guesses; the engine disposes it. */
  readonly createDrafter: (pool: BlockPool) => Drafter;
  /** Guesses per sequence and step at most. */
  readonly numSpeculativeTokens: number;
  /** Guess as much as has paid so far, default; otherwise always as much as there is. */
  readonly adaptive?: boolean | undefined;
}

/** What speculation needs of the request behind a sequence. */
export interface SpeculatedRequest {
  /** How many guesses are of use beyond what the step computes of `sequence`. */
  draftLimit(sequence: Sequence): number;
  /** Cuts `sequence.draft` where sampling is certain not to follow it. */
  cutDraft(sequence: Sequence): void;
  samplingOf(sequence: Sequence): RowSampling | undefined;
}

/** Share of what earlier guesses took that remains after each time. */
const memoryOfGuessing = 0.95;
/** Steps after which a sequence that gets no guesses is given one, to see whether they still fail; doubled as they do. */
const firstProbeInterval = 32;
const lastProbeInterval = 512;

/** A sequence that has been guessed at, with what became of it. */
class Speculated implements Guess, DraftCandidate {
  readonly sequence: Sequence;
  readonly sampling: RowSampling;
  readonly rates: AcceptanceRates;
  most = 0;
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
 * Speculative decoding: before a step, guesses what its sequences will say next; the step computes the guesses too and
 * samples at each of them, as far as they come true (Leviathan, Kalman and Matias 2023). Since a draw depends on the logits and on (seed,
 * index) alone, a guess is right exactly if it is the token that would have been sampled: with and without
 * speculation, greedy or not, a sequence gets the same tokens, so no rejection rule is needed to keep their distribution.
 */
export class Speculation implements Disposable {
  readonly #options: SpeculationOptions;
  readonly #drafter: Drafter;
  readonly #scheduler: Scheduler;
  readonly #speculated = new Map<Sequence, Speculated>();
  readonly #rates = new AcceptanceRates();
  readonly #cost = new StepCost();
  /** Those of the step being planned; reused. */
  readonly #guesses: Speculated[] = [];
  #guessingMs = 0;
  #numGuessed = 0;
  #stepsToProbe = firstProbeInterval;
  #probeInterval = firstProbeInterval;
  #numProbes = 0;
  #probed: Speculated | undefined;

  constructor(options: SpeculationOptions, pool: BlockPool, scheduler: Scheduler) {
    this.#options = options;
    this.#drafter = options.createDrafter(pool);
    this.#scheduler = scheduler;
  }

  /** Gives the sequences of a planned step drafts, with room for them; a promise where a model makes them. */
  draft(step: PlannedStep, requestOf: (sequence: Sequence) => SpeculatedRequest): void | Promise<void> {
    const guesses = this.#guesses;
    guesses.length = 0;
    this.#probed = undefined;
    for (const sequence of step.sequences) {
      const request = requestOf(sequence);
      const most = Math.min(request.draftLimit(sequence), this.#options.numSpeculativeTokens);
      if (most < 1) continue;
      const speculated = this.#of(sequence, request);
      if (speculated === undefined) continue;
      speculated.most = most;
      speculated.confidence = 0;
      guesses.push(speculated);
    }
    if (guesses.length === 0) return;
    if (this.#drafter.isCostly) return this.#draftWithModel(step, requestOf);
    // Guesses that are at hand do not promise.
    void this.#drafter.guess(guesses);
    for (const guess of guesses) guess.most = guess.sequence.draft.length;
    this.#setLengths(step);
    for (const { sequence, length } of guesses) {
      sequence.draft.truncate(length);
      if (length > 0) this.#fit(sequence, requestOf(sequence));
    }
  }

  /** After a step's tokens were appended to a sequence and `commit`: settles its draft. Returns guesses and right ones. */
  settle(sequence: Sequence): { readonly numGuessed: number; readonly numRight: number } | undefined {
    const numGuessed = sequence.draft.length;
    const numRight = this.#scheduler.settleDraft(sequence);
    if (numGuessed === 0) return undefined;
    const speculated = this.#speculated.get(sequence);
    speculated?.rates.observe(speculated.confidence, numGuessed, numRight);
    if (speculated !== undefined && speculated === this.#probed)
      this.#probeInterval =
        numRight > 0 ? firstProbeInterval : Math.min(this.#probeInterval * 2, lastProbeInterval);
    return { numGuessed, numRight };
  }

  /** Takes note of what a step took, with what is done between two steps, in which so many guesses were computed. */
  observe(step: PlannedStep, numGuessed: number, durationMs: number): void {
    if (step.prefillTokens === 0) this.#cost.observe(step.decodeTokens + numGuessed, durationMs);
  }

  release(sequence: Sequence): void {
    this.#drafter.release(sequence);
    this.#speculated.delete(sequence);
  }

  [Symbol.dispose](): void {
    this.#drafter[Symbol.dispose]();
  }

  #of(sequence: Sequence, request: SpeculatedRequest): Speculated | undefined {
    const known = this.#speculated.get(sequence);
    if (known !== undefined) return known;
    const sampling = request.samplingOf(sequence);
    if (sampling === undefined) return undefined;
    const speculated = new Speculated(sequence, sampling, this.#rates);
    this.#speculated.set(sequence, speculated);
    return speculated;
  }

  async #draftWithModel(
    step: PlannedStep,
    requestOf: (sequence: Sequence) => SpeculatedRequest,
  ): Promise<void> {
    this.#setLengths(step);
    const chosen = this.#guesses.filter((guess) => {
      guess.most = this.#scheduler.reserveDraft(guess.sequence, guess.length);
      return guess.most > 0;
    });
    if (chosen.length === 0) return;
    const tookMs = (await this.#drafter.guess(chosen)) ?? 0;
    let numGuessed = 0;
    for (const { sequence } of chosen) {
      numGuessed += sequence.draft.length;
      if (sequence.draft.length > 0) requestOf(sequence).cutDraft(sequence);
    }
    if (numGuessed === 0) return;
    this.#guessingMs = this.#guessingMs * memoryOfGuessing + tookMs;
    this.#numGuessed = this.#numGuessed * memoryOfGuessing + numGuessed;
  }

  #fit(sequence: Sequence, request: SpeculatedRequest): void {
    request.cutDraft(sequence);
    sequence.draft.truncate(this.#scheduler.reserveDraft(sequence, sequence.draft.length));
  }

  #setLengths({ decodeTokens, prefillTokens }: PlannedStep): void {
    const guesses = this.#guesses;
    if (this.#options.adaptive === false) {
      for (const guess of guesses) guess.length = guess.most;
      return;
    }
    if (this.#cost.isUnknown) {
      for (const guess of guesses) guess.length = 0;
      return;
    }
    const making = this.#numGuessed === 0 ? 0 : this.#guessingMs / this.#numGuessed;
    setDraftLengths(guesses, {
      baseMs: this.#cost.of(decodeTokens + prefillTokens),
      guessMs: this.#cost.perToken + making,
      baseTokens: Math.max(decodeTokens, guesses.length),
    });
    this.#probe();
  }

  /** Where nothing is guessed, now and then one token is, of one sequence after the other. */
  #probe(): void {
    const guesses = this.#guesses;
    if (guesses.some((guess) => guess.length > 0)) {
      this.#stepsToProbe = this.#probeInterval;
      return;
    }
    this.#stepsToProbe -= 1;
    if (this.#stepsToProbe > 0) return;
    this.#numProbes += 1;
    for (let index = 0; index < guesses.length; index += 1) {
      const guess = guesses[(this.#numProbes + index) % guesses.length]!;
      if (guess.most === 0) continue;
      guess.length = 1;
      this.#probed = guess;
      this.#stepsToProbe = this.#probeInterval;
      return;
    }
  }
}
