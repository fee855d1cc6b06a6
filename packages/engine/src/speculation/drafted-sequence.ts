import type { RowSampling } from "@octavo/kernels";
import type { SampleRow } from "../step/sample-rows.js";
import type { PlannedRequest, PlannedSequence } from "../step/step-plan-builder.js";
import type { RowSink } from "../requests/active-request.js";
import { IntList } from "../kv-cache/int-list.js";

/** A sequence in the draft model: the tokens it has read, followed by the tokens it drafted. */
export class DraftedSequence implements PlannedSequence, PlannedRequest<DraftedSequence> {
  readonly tokens = new IntList();
  /** Always empty: a drafted token is appended to `tokens` at once. */
  readonly draft = new IntList(0);
  readonly blocks = new IntList();
  numComputed = 0;
  numScheduled = 0;
  /** Leading tokens that belong to the sequence itself; they never change. */
  #numConfirmed = 0;
  readonly #row: SampleRow;

  /** Drafts are sampled with the same random stream as the target model's tokens, so that they agree as often as possible. */
  constructor({ temperature, topP, topK, minP, seed }: RowSampling) {
    this.#row = {
      kind: "sample",
      sampling: { temperature, topP, topK, minP, seed, index: 0 },
      numLogprobs: undefined,
    };
  }

  /** Tokens that are known and not computed. */
  get numMissing(): number {
    return this.tokens.length - this.numComputed;
  }

  /** Takes over the sequence's tokens; what was computed behind the first difference is dropped. */
  follow({ values, length }: IntList): void {
    const { tokens } = this;
    let same = this.#numConfirmed;
    const limit = Math.min(length, tokens.length);
    while (same < limit && tokens.values[same] === values[same]) same += 1;
    tokens.truncate(same);
    for (let at = same; at < length; at += 1) tokens.push(values[at]!);
    this.#numConfirmed = length;
    // The last token is computed again, for its prediction.
    this.numComputed = Math.min(this.numComputed, same, length - 1);
  }

  /** Output index of the token that the next row samples. */
  set index(index: number) {
    this.#row.sampling.index = index;
  }

  addRows(_sequence: DraftedSequence, rows: RowSink): void {
    if (this.numComputed + this.numScheduled === this.tokens.length)
      rows.addRow(this.tokens.length - 1, this.#row);
  }
}
