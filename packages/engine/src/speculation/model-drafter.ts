import type { Backend, KvCache, Program, StepResult, Vacating } from "@octavo/kernels";
import { StepPlanBuilder } from "../step/step-plan-builder.js";
import { type BlockId, BlockPool } from "../kv-cache/block-pool.js";
import type { KvShape } from "../kv-cache/plan-kv-cache.js";
import type { Sequence } from "../scheduler/sequence.js";
import { DraftedSequence } from "./drafted-sequence.js";
import type { Drafter, DraftRequest } from "./drafter.js";

/** A model that drafts for another one. The caller owns it and the backend; both outlive the drafter. */
export interface DraftModel {
  readonly backend: Backend;
  readonly program: Program;
  readonly kv: KvShape;
  readonly numBlocks: number;
  readonly blockSize: number;
  /** Token ids that it knows. */
  readonly vocabSize: number;
  /** Token ids that the target model knows. */
  readonly targetVocabSize: number;
  /** Longest context, in tokens. */
  readonly maxModelLen: number;
  readonly maxNumSeqs: number;
  /** Tokens per step that the program was compiled for. */
  readonly maxNumBatchedTokens: number;
}

/** Tokens of earlier text that one round reads at most, so that a long prompt does not stall the target model. */
const maxCatchUpTokens = 512;

/** A draft in progress. */
interface Drafting {
  readonly request: DraftRequest;
  readonly drafted: DraftedSequence;
}

/**
 * Drafts with a smaller model of the same vocabulary (Leviathan, Kalman and Matias 2023). It has its own KV cache and keeps
 * what was computed for accepted draft tokens. For a long prompt, the first draft comes a few steps late.
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
    this.#plans = new StepPlanBuilder(maxNumSeqs, maxNumBatchedTokens, blockSize);
    this.#cache = backend.createKvCache({ ...kv, numBlocks, blockSize });
  }

  /** Blocks that sequences hold. */
  get numUsedBlocks(): number {
    return this.#pool.numUsed;
  }

  async draft(requests: readonly DraftRequest[]): Promise<number | undefined> {
    const reading = this.#reading(requests);
    if (reading.length === 0) return 0;
    // Reading a long text for the first time says nothing about the cost of a draft token.
    const isReading = reading.some(({ request, drafted }) => drafted.numScheduled > request.maxTokens + 1);
    const startMs = performance.now();
    let result = await this.#run(reading);
    let drafting = reading.filter(({ drafted }) => drafted.numMissing === 0);
    for (;;) {
      drafting = this.#take(drafting, result);
      if (drafting.length === 0) return isReading ? undefined : performance.now() - startMs;
      for (const { drafted } of drafting) drafted.numScheduled = 1;
      result = await this.#run(drafting);
    }
  }

  release(sequence: Sequence): void {
    const drafted = this.#drafted.get(sequence);
    if (drafted === undefined) return;
    for (let index = drafted.blocks.length - 1; index >= 0; index -= 1)
      this.#pool.release(drafted.blocks.at(index) as BlockId);
    this.#drafted.delete(sequence);
  }

  vacate(backend: Vacating): void {
    for (const sequence of this.#drafted.keys()) this.release(sequence);
    backend.vacate(this.#cache);
  }

  refill(backend: Vacating): void {
    backend.refillCache(this.#cache);
  }

  [Symbol.dispose](): void {
    this.#cache[Symbol.dispose]();
  }

  /** Chooses what the draft model reads now, of each sequence that it can draft for. */
  #reading(requests: readonly DraftRequest[]): Drafting[] {
    const reading: Drafting[] = [];
    let budget = this.#model.maxNumBatchedTokens;
    let catchUpTokens = maxCatchUpTokens;
    for (const request of requests) {
      const drafted = this.#of(request);
      drafted.follow(request.sequence.tokens);
      drafted.numScheduled = 0;
      const { length } = drafted.tokens;
      if (length + request.maxTokens > this.#model.maxModelLen || !this.#knows(drafted)) continue;
      const isNear = drafted.numMissing <= request.maxTokens + 1;
      const numTokens = Math.min(drafted.numMissing, budget, isNear ? budget : catchUpTokens);
      if (numTokens === 0 || !this.#grow(drafted, length + request.maxTokens)) continue;
      drafted.numScheduled = numTokens;
      drafted.index = request.sequence.numOutputTokens;
      budget -= numTokens;
      if (!isNear) catchUpTokens -= numTokens;
      reading.push({ request, drafted });
    }
    return reading;
  }

  #of({ sequence, sampling }: DraftRequest): DraftedSequence {
    let drafted = this.#drafted.get(sequence);
    if (drafted === undefined) {
      drafted = new DraftedSequence(sampling);
      this.#drafted.set(sequence, drafted);
    }
    return drafted;
  }

  /** Whether the draft model knows every token it would compute. */
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

  /** Appends the sampled tokens; returns the drafts that go on. Rows come in the order of `drafting`, one each. */
  #take(drafting: readonly Drafting[], { rows }: StepResult): Drafting[] {
    return drafting.filter(({ request, drafted }, index) => {
      const token = rows[index]?.token ?? -1;
      const { draft, numOutputTokens } = request.sequence;
      // A failed row, or a token that the target model does not know.
      if (token < 0 || token >= this.#model.targetVocabSize) return false;
      draft.push(token);
      if (draft.length >= request.maxTokens) return false;
      drafted.tokens.push(token);
      drafted.index = numOutputTokens + draft.length;
      return token < this.#model.vocabSize;
    });
  }
}
