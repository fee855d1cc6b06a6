import type { OutputRow, RowError, RowResult } from "../backend.js";
import type { NativeStepResult } from "./addon.js";

const errors: readonly (RowError | undefined)[] = [undefined, "non_finite_logits", "no_token_allowed"];

/** What decoding needs to remember of a row: the plan's own objects may be reused once `execute` has returned. */
export interface RowShape {
  readonly kind: OutputRow["kind"];
  readonly wantsLogprob: boolean;
  readonly numTop: number;
  readonly numIds: number;
}

export function rowShapes(outputs: readonly OutputRow[], vocabSize: number): RowShape[] {
  return outputs.map((output) => ({
    kind: output.kind,
    wantsLogprob: output.kind !== "hidden" && output.numLogprobs !== undefined,
    numTop: output.kind === "hidden" ? 0 : Math.min(output.numLogprobs ?? 0, vocabSize),
    numIds: output.kind === "sample" ? (output.logprobIds?.length ?? 0) : 0,
  }));
}

/** Cuts the flat arrays of a step into rows. */
export function decodeRows(
  shapes: readonly RowShape[],
  native: NativeStepResult,
  vocabSize: number,
  hiddenSize: number,
): RowResult[] {
  let top = 0;
  let ids = 0;
  let hidden = 0;
  let logits = 0;
  return shapes.map((shape, index): RowResult => {
    if (shape.kind === "hidden") {
      const state = native.hidden?.slice(hidden, hidden + hiddenSize);
      hidden += hiddenSize;
      const error = errors[native.errors?.[index] ?? 0];
      return { token: -1, ...(error === undefined ? state && { hidden: state } : { error }) };
    }
    const error = errors[native.errors?.[index] ?? 0];
    const row = {
      token: native.tokens?.[index] ?? -1,
      ...(error !== undefined && { error }),
      ...(shape.wantsLogprob &&
        error === undefined && { logprob: native.logprobs?.[index] ?? 0, rank: native.ranks?.[index] ?? 0 }),
      ...(shape.numTop > 0 &&
        error === undefined && {
          topTokens: native.topTokens?.slice(top, top + shape.numTop) ?? new Int32Array(0),
          topLogprobs: native.topLogprobs?.slice(top, top + shape.numTop) ?? new Float32Array(0),
        }),
      ...(shape.numIds > 0 &&
        error === undefined && {
          idLogprobs: native.idLogprobs?.slice(ids, ids + shape.numIds) ?? new Float32Array(0),
        }),
      ...(native.logits !== undefined && { logits: native.logits.slice(logits, logits + vocabSize) }),
    };
    top += shape.numTop;
    ids += shape.numIds;
    logits += vocabSize;
    return row;
  });
}
