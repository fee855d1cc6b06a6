import type { Backend, KvCache, Program, StepResult } from "@octavo/kernels";
import { StepPlanBuilder } from "../step/step-plan-builder.js";
import { type BlockId, BlockPool } from "../kv-cache/block-pool.js";
import type { KvShape } from "../kv-cache/plan-kv-cache.js";
import type { Sequence } from "../scheduler/sequence.js";
import { DraftedSequence } from "./drafted-sequence.js";
import type { Drafter, Guess } from "./drafter.js";

/** A model that guesses for another one. It is the caller's, as is the backend; both outlive the drafter. */
export interface DraftModel {
  readonly backend: Backend;
  readonly program: Program;
  readonly kv: KvShape;
  readonly numBlocks: number;
  readonly blockSize: number;
  /** Ids that it takes. */
  readonly vocabSize: number;
  /** Ids that the model takes which it guesses for. */
  readonly targetVocabSize: number;
  /** Positions that it was made for. */
  readonly maxModelLen: number;
  readonly maxNumSeqs: number;
  /** Tokens that the program was compiled for. */
  readonly maxNumBatchedTokens: number;
}

/** Text that it reads at a time at most: the model that is waited for must not stand still for a prompt. */
const mostCatchingUp = 512;

/** A guess that is being made. */
interface Drafting {
  readonly guess: Guess;
  readonly drafted: DraftedSequence;
}

/**
 * Guesses with a smaller model of the same vocabulary (Leviathan, Kalman and Matias 2023). It has keys and values of its
 * own, which it keeps as far as the sequence has said what was guessed. The first of a sequence's guesses come a few steps late
 * where its prompt is long.
 */
export class ModelDrafter implements Drafter {
  readonly isCostly = true;
  readonly #model: DraftModel;
  readonly #pool: BlockPool;
  readonly #cache: KvCache;
  readonly #plans: StepPlanBuilder;
  readonly #drafted = new Map<Sequence, DraftedSequence>();

  constructor(model: DraftModel) {
    const { backend, kv, numBlocks, blockSize, maxNumSeqs, maxNumBatchedTokens } = model;
    this.#model = model;
    this.#pool = new BlockPool(numBlocks, blockSize);
    this.#plans = new StepPlanBuilder(maxNumSeqs, maxNumBatchedTokens, blockSize, false);
    this.#cache = backend.createKvCache({ ...kv, numBlocks, blockSize });
  }

  /** Blocks that sequences hold. */
  get numUsedBlocks(): number {
    return this.#pool.numUsed;
  }

  async guess(guesses: readonly Guess[]): Promise<number> {
    const reading = this.#reading(guesses);
    if (reading.length === 0) return 0;
    // A long text that is read for the first time says nothing of what the next guess takes.
    const isReading = reading.some(({ guess, drafted }) => drafted.numScheduled > guess.most + 1);
    let result = await this.#run(reading);
    let tookMs = isReading ? 0 : result.computeMs;
    let drafting = reading.filter(({ drafted }) => drafted.numMissing === 0);
    for (;;) {
      drafting = this.#take(drafting, result);
      if (drafting.length === 0) return tookMs;
      for (const { drafted } of drafting) drafted.numScheduled = 1;
      result = await this.#run(drafting);
      tookMs += result.computeMs;
    }
  }

  release(sequence: Sequence): void {
    const drafted = this.#drafted.get(sequence);
    if (drafted === undefined) return;
    for (let index = drafted.blocks.length - 1; index >= 0; index -= 1)
      this.#pool.release(drafted.blocks.at(index) as BlockId);
    this.#drafted.delete(sequence);
  }

  [Symbol.dispose](): void {
    this.#cache[Symbol.dispose]();
  }

  /** Has the draft model follow its sequences: those it can, with what each reads now. */
  #reading(guesses: readonly Guess[]): Drafting[] {
    const reading: Drafting[] = [];
    let budget = this.#model.maxNumBatchedTokens;
    let catchingUp = mostCatchingUp;
    for (const guess of guesses) {
      const drafted = this.#of(guess);
      drafted.follow(guess.sequence.tokens);
      drafted.numScheduled = 0;
      const { length } = drafted.tokens;
      if (length + guess.most > this.#model.maxModelLen || !this.#knows(drafted)) continue;
      const isNear = drafted.numMissing <= guess.most + 1;
      const numTokens = Math.min(drafted.numMissing, budget, isNear ? budget : catchingUp);
      if (numTokens === 0 || !this.#grow(drafted, length + guess.most)) continue;
      drafted.numScheduled = numTokens;
      drafted.index = guess.sequence.numOutputTokens;
      budget -= numTokens;
      if (!isNear) catchingUp -= numTokens;
      reading.push({ guess, drafted });
    }
    return reading;
  }

  #of({ sequence, sampling }: Guess): DraftedSequence {
    let drafted = this.#drafted.get(sequence);
    if (drafted === undefined) {
      drafted = new DraftedSequence(sampling);
      this.#drafted.set(sequence, drafted);
    }
    return drafted;
  }

  /** Whether every token that is to be computed is one of the draft model's. */
  #knows({ tokens, numComputed }: DraftedSequence): boolean {
    if (this.#model.vocabSize >= this.#model.targetVocabSize) return true;
    for (let at = numComputed; at < tokens.length; at += 1)
      if (tokens.at(at) >= this.#model.vocabSize) return false;
    return true;
  }

  #grow({ blocks }: DraftedSequence, numTokens: number): boolean {
    const wanted = this.#pool.blocksFor(numTokens) - blocks.length;
    if (wanted > this.#pool.numAvailable) return false;
    for (let count = 0; count < wanted; count += 1) blocks.push(this.#pool.allocate()!);
    return true;
  }

  async #run(drafting: readonly Drafting[]): Promise<StepResult> {
    const { backend, program } = this.#model;
    const sequences = drafting.map(({ drafted }) => drafted);
    const result = await backend.execute(
      program,
      this.#cache,
      this.#plans.build(sequences, (drafted) => drafted),
    );
    for (const drafted of sequences) {
      drafted.numComputed += drafted.numScheduled;
      drafted.numScheduled = 0;
    }
    return result;
  }

  /** Appends what the rows gave; returns those that go on. Rows come in the order of `drafting`, one each. */
  #take(drafting: readonly Drafting[], { rows }: StepResult): Drafting[] {
    return drafting.filter(({ guess, drafted }, index) => {
      const token = rows[index]?.token ?? -1;
      const { draft, numOutputTokens } = guess.sequence;
      // A row that failed, or a token that the other model does not have.
      if (token < 0 || token >= this.#model.targetVocabSize) return false;
      draft.push(token);
      if (draft.length >= guess.most) return false;
      drafted.tokens.push(token);
      drafted.index = numOutputTokens + draft.length;
      return token < this.#model.vocabSize;
    });
  }
}
