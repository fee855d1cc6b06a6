import type { RowSampling } from "@octavo/kernels";
import type { SampleRow } from "../step/sample-rows.js";
import type { PlannedRequest, PlannedSequence } from "../step/step-plan-builder.js";
import type { RowSink } from "../requests/active-request.js";
import { IntList } from "../kv-cache/int-list.js";

/** A sequence as the draft model knows it: what it has read of it, and its own guesses behind that. */
export class DraftedSequence implements PlannedSequence, PlannedRequest<DraftedSequence> {
  readonly tokens = new IntList();
  /** What is guessed becomes text at once here. */
  readonly draft = new IntList(0);
  readonly blocks = new IntList();
  numComputed = 0;
  numScheduled = 0;
  /** Tokens that are the sequence's own; they never change. */
  #numConfirmed = 0;
  readonly #row: SampleRow;

  /** Guesses are drawn with the very noise that the model's own draws will have, so that they agree as often as can be. */
  constructor({ temperature, topP, topK, minP, seed }: RowSampling) {
    this.#row = {
      kind: "sample",
      sampling: { temperature, topP, topK, minP, seed, index: 0 },
      numLogprobs: undefined,
    };
  }

  /** Number of tokens that are known and not computed. */
  get numMissing(): number {
    return this.tokens.length - this.numComputed;
  }

  /** Takes over the sequence's tokens; what was computed for others behind the first difference is forgotten. */
  follow({ values, length }: IntList): void {
    const { tokens } = this;
    let same = this.#numConfirmed;
    const most = Math.min(length, tokens.length);
    while (same < most && tokens.values[same] === values[same]) same += 1;
    tokens.truncate(same);
    for (let at = same; at < length; at += 1) tokens.push(values[at]!);
    this.#numConfirmed = length;
    // The last token's prediction is what is wanted.
    this.numComputed = Math.min(this.numComputed, same, length - 1);
  }

  /** Index among the output's tokens of the one that the next row gives. */
  set index(index: number) {
    this.#row.sampling.index = index;
  }

  addRows(_sequence: DraftedSequence, rows: RowSink): void {
    if (this.numComputed + this.numScheduled === this.tokens.length)
      rows.addRow(this.tokens.length - 1, this.#row);
  }
}
