import type { RowSampling } from "@octavo/kernels";
import { IntList } from "../kv-cache/int-list.js";
import type { RowSink } from "../requests/active-request.js";
import type { Sequence } from "../scheduler/sequence.js";
import type { SampleRow } from "../step/sample-rows.js";
import type { PlannedRequest, PlannedSequence } from "../step/step-plan-builder.js";

/**
 * A sequence as a drafting head reads it: at each position the token behind it. `numComputed` is the position of the first hidden state that
 * waits to be read; those behind it wait too. Where the text before was not read, it begins at a later block, and positions count from there.
 */
export class ReadSequence implements PlannedSequence, PlannedRequest<ReadSequence> {
  /** While drafting, the draft token at the position. */
  readonly draft = new IntList(1);
  blocks = new IntList(0);
  numComputed = 0;
  numScheduled = 0;
  readonly #width: number;
  readonly #blockSize: number;
  /** Position in the sequence where it begins, a multiple of the block size. */
  readonly #begin: number;
  #tokens = new IntList(0);
  /** The model's, `[numPending, width]`. */
  #states: Float32Array = new Float32Array(0);
  /** While drafting, the head's own of the latest token. */
  #ownState: Float32Array | undefined;
  #row: SampleRow | undefined;
  /** Where drafting began, and what was pending behind: the model's own hidden states replace the head's. */
  #draftedFrom: number | undefined;

  constructor(width: number, blockSize: number, begin = 0) {
    this.#width = width;
    this.#blockSize = blockSize;
    this.#begin = begin;
  }

  /** Others with the same text may go on from what it has read. */
  get isWhole(): boolean {
    return this.#begin === 0;
  }

  /** Position in the sequence behind the last hidden state. */
  get end(): number {
    return this.#begin + this.numComputed + this.numPending;
  }

  get numPending(): number {
    return this.#ownState === undefined ? this.#states.length / this.#width : 1;
  }

  /** The head goes on from its own hidden state. */
  get isDrafting(): boolean {
    return this.#ownState !== undefined;
  }

  get tokens(): { readonly values: Int32Array } {
    return { values: this.#tokens.values.subarray(this.#begin + 1) };
  }

  /** Of the tokens that are scheduled now. */
  get scheduledStates(): Float32Array {
    return this.#ownState ?? this.#states.subarray(0, this.numScheduled * this.#width);
  }

  /** Whether everything but the sequence's last token has a hidden state, so that the token behind it can be drafted. */
  isReadyFor({ numComputed, numTokens }: Sequence): boolean {
    const isComplete = this.numPending > 0 && this.end === numComputed;
    return isComplete && numTokens === numComputed + 1;
  }

  /** @param blocks those of a step, in place of the sequence's, which may be given back */
  follow({ tokens, blocks: own, status }: Sequence, blocks?: Int32Array): void {
    this.#tokens = tokens;
    const isOwn = blocks === undefined || status === "running";
    if (isOwn && this.isWhole) this.blocks = own;
    else this.blocks = IntList.from((isOwn ? own.slice() : blocks).subarray(this.#begin / this.#blockSize));
  }

  /** Hidden states from the sequence's `position` on; those of a sequence that was computed anew replace what is pending. */
  add(position: number, states: Float32Array): void {
    const before = this.end === position ? this.#states : new Float32Array(0);
    if (before.length === 0) this.numComputed = position - this.#begin;
    const joined = new Float32Array(before.length + states.length);
    joined.set(before);
    joined.set(states, before.length);
    this.#states = joined;
  }

  /** With the same random stream as the target model, so that the two agree as often as possible. */
  sample({ temperature, topP, topK, minP, seed }: RowSampling, index: number): void {
    this.#row = {
      kind: "sample",
      sampling: { temperature, topP, topK, minP, seed, index },
      numLogprobs: undefined,
    };
  }

  addRows(_: ReadSequence, rows: RowSink): void {
    const last = this.numComputed + this.numScheduled + this.draft.length - 1;
    if (this.#row !== undefined && this.#isLast) rows.addRow(last, this.#row);
  }

  /** Past what was scheduled; `state` is what the head made of the last of it. */
  advance(state: Float32Array): void {
    const wasLast = this.#isLast;
    const count = this.numScheduled + this.draft.length;
    this.numComputed += count;
    this.#states = this.#states.slice(count * this.#width);
    if (wasLast && this.#row !== undefined) this.#ownState = state;
  }

  /** Drafts behind a draft token, from the head's own hidden state. */
  goOn(token: number, index: number): void {
    this.#draftedFrom ??= this.numComputed;
    this.numScheduled = 0;
    this.draft.truncate(0);
    this.draft.push(token);
    if (this.#row !== undefined) this.#row.sampling.index = index;
  }

  /** Nothing is pending until the model's next hidden states, which go on where drafting began. */
  endDraft(): void {
    this.numComputed = this.#draftedFrom ?? this.numComputed;
    this.#draftedFrom = undefined;
    this.#ownState = undefined;
    this.#row = undefined;
    this.numScheduled = 0;
    this.draft.truncate(0);
  }

  get #isLast(): boolean {
    return this.numScheduled + this.draft.length === this.numPending;
  }
}
