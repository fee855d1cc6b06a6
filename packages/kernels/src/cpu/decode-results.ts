import type { Op, OpTime, OutputRow, RowError, RowResult } from "../backend.js";
import type { NativeStepResult } from "./addon.js";

export const rowErrors = ["none", "non_finite_logits", "no_token_allowed"] as const satisfies (
  | RowError
  | "none"
)[];

/** Kinds of ops as they are timed. */
export const opKinds = [
  "embedding",
  "add_given",
  "rms_norm",
  "layer_norm",
  "linear",
  "head_linear",
  "rope",
  "attention",
  "gated_activation",
  "activation",
  "experts",
  "sigmoid_gate",
  "gate",
  "split",
  "convolution",
  "gated_delta_rule",
  "add",
  "scale",
  "clamp",
  "round_e4m3",
  "exchange",
  "receive",
  "send",
  "gather",
  "state_space",
  "head",
] as const satisfies (Op["op"] | "head")[];

/** Times of the kinds of ops that ran; undefined where the plan wanted none. */
export function decodeOpTimes({ opCounts, opMs }: NativeStepResult): OpTime[] | undefined {
  if (opCounts === undefined) return undefined;
  return opKinds
    .map((op, kind) => ({ op, count: opCounts[kind] ?? 0, milliseconds: opMs?.[kind] ?? 0 }))
    .filter(({ count }) => count > 0);
}

/** Cuts the flat arrays of a step into rows. */
export function decodeRows(
  outputs: readonly OutputRow[],
  native: NativeStepResult,
  vocabSize: number,
  hiddenSize: number,
): RowResult[] {
  const rows: RowResult[] = [];
  let top = 0;
  let ids = 0;
  let hidden = 0;
  let logits = 0;
  for (let index = 0; index < outputs.length; index++) {
    const output = outputs[index]!;
    const code = rowErrors[native.errors?.[index] ?? 0];
    const error = code === "none" ? undefined : code;
    if (output.kind === "hidden") {
      const state = native.hidden?.slice(hidden, hidden + hiddenSize);
      hidden += hiddenSize;
      rows.push({ token: -1, ...(error === undefined ? state && { hidden: state } : { error }) });
      continue;
    }
    const token = native.tokens[index] ?? -1;
    const digest =
      output.kind === "sample" && output.wantDigest === true ? native.digests?.[index] : undefined;
    const ownLogits = native.logits?.slice(logits, logits + vocabSize);
    logits += vocabSize;
    if (token === -1 && error === undefined) {
      // After a rejected draft token: nothing was written to its parts.
      rows.push({ token });
      top += Math.min(output.numLogprobs ?? 0, vocabSize);
      if (output.kind === "sample") ids += output.logprobIds?.length ?? 0;
      continue;
    }
    if (output.numLogprobs === undefined && (output.kind === "score" || output.logprobIds === undefined)) {
      // The common case: a token and nothing more.
      if (error === undefined && ownLogits === undefined && digest === undefined) rows.push({ token });
      else
        rows.push({
          token,
          ...(error !== undefined && { error }),
          ...(ownLogits !== undefined && { logits: ownLogits }),
          ...(digest !== undefined && error === undefined && { digest: digestText(digest) }),
        });
      continue;
    }
    const numTop = Math.min(output.numLogprobs ?? 0, vocabSize);
    const numIds = output.kind === "sample" ? (output.logprobIds?.length ?? 0) : 0;
    rows.push({
      token,
      ...(error !== undefined && { error }),
      ...(output.numLogprobs !== undefined &&
        error === undefined && { logprob: native.logprobs?.[index] ?? 0, rank: native.ranks?.[index] ?? 0 }),
      ...(numTop > 0 &&
        error === undefined && {
          topTokens: native.topTokens?.slice(top, top + numTop) ?? new Int32Array(0),
          topLogprobs: native.topLogprobs?.slice(top, top + numTop) ?? new Float32Array(0),
        }),
      ...(numIds > 0 &&
        error === undefined && {
          idLogprobs: native.idLogprobs?.slice(ids, ids + numIds) ?? new Float32Array(0),
        }),
      ...(ownLogits !== undefined && { logits: ownLogits }),
      ...(digest !== undefined && error === undefined && { digest: digestText(digest) }),
    });
    top += numTop;
    ids += numIds;
  }
  return rows;
}

function digestText(digest: bigint): string {
  return digest.toString(16).padStart(16, "0");
}
