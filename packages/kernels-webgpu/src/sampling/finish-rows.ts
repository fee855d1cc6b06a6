import type { OutputRow, RowResult, RowSampling, StepPlan } from "@octavo/kernels";
import { xxhash64 } from "@octavo/kernels/xxhash64";
import type { Readback } from "../program/gpu-program.js";
import { resultWords } from "../wgsl/head.js";
import { candidateWords } from "../wgsl/candidates.js";
import { isOfCandidates, sampleCandidates } from "./candidates.js";
import { isPlainGreedy, sampleRow, type Sampled } from "./draw.js";
import { RowLogprobs } from "./logprobs.js";
import type { TokenHistory } from "./sampler-state.js";

type SampleRow = Extract<OutputRow, { kind: "sample" }>;
type HistoryOf = (sampling: RowSampling) => TokenHistory | undefined;

/** What is taken of a plan when it is handed over: the caller may change masks then. */
export class RowFinisher {
  readonly readback: Readback;
  readonly #outputs: readonly OutputRow[];
  readonly #masks: ReadonlyMap<number, Uint32Array>;
  /** The token that each row after a draft token needs the row before it to have sampled. */
  readonly #drafts: ReadonlyMap<number, number>;
  readonly #histories: readonly (TokenHistory | undefined)[];
  readonly #wantLogits: boolean;
  /** Tokens that candidates decided. */
  readonly #decided = new Map<number, number>();

  /** `vocabSize` where the GPU can find a step's candidates. */
  constructor(plan: StepPlan, historyOf: HistoryOf, vocabSize: number | undefined) {
    this.#outputs = plan.outputs;
    this.#wantLogits = plan.wantLogits === true;
    const masks = new Map<number, Uint32Array>();
    const drafts = new Map<number, number>();
    const hidden: number[] = [];
    const logits: number[] = [];
    const candidates: number[] = [];
    this.#histories = plan.outputs.map((output, row) => {
      if (output.kind === "hidden") hidden.push(row);
      const history = output.kind === "sample" ? historyOf(output.sampling) : undefined;
      if (needsLogits(output, this.#wantLogits)) logits.push(row);
      else if (output.kind === "sample" && !isPlainGreedy(output.sampling, history))
        (vocabSize !== undefined && isOfCandidates(output.sampling, history, vocabSize)
          ? candidates
          : logits
        ).push(row);
      if (output.kind !== "sample") return undefined;
      const { mask } = output.sampling;
      if (mask !== undefined) masks.set(row, mask.slice());
      if (output.afterDraft === true) drafts.set(row, plan.tokenIds[plan.outputTokens[row] ?? 0] ?? -1);
      return history;
    });
    this.#masks = masks;
    this.#drafts = drafts;
    this.readback = { hidden, logits, candidates, needsHead: hidden.length < plan.outputs.length };
  }

  /** Samples what candidates decide, and gives the rows whose logits must be read after all. */
  sampleCandidates(data: ArrayBuffer, vocabSize: number): number[] {
    const { candidates } = this.readback;
    const first = (data.byteLength - candidates.length * candidateWords * 4) / 4;
    return candidates.filter((row, index) => {
      const output = this.#outputs[row];
      if (output?.kind !== "sample") return false;
      const words = new Uint32Array(data, (first + index * candidateWords) * 4, candidateWords);
      const token = sampleCandidates(words, output.sampling, vocabSize);
      if (token !== undefined) this.#decided.set(row, token);
      return token === undefined;
    });
  }

  /** Rows' results, of what the step left in its staging buffer and of rows read later. Samples those that nothing has sampled yet. */
  finish(
    data: ArrayBuffer,
    vocabSize: number,
    hiddenSize: number,
    later: ReadonlyMap<number, Float32Array>,
  ): RowResult[] {
    const words = new Uint32Array(data, 0, this.#outputs.length * resultWords);
    const { hidden, logits } = this.readback;
    const hiddenAt = words.byteLength;
    const logitsAt = hiddenAt + hidden.length * hiddenSize * 4;
    let nextHidden = 0;
    let nextLogits = 0;
    let before = -1;
    return this.#outputs.map((output, row) => {
      if (output.kind === "hidden") {
        before = -1;
        const state = new Float32Array(data, hiddenAt + nextHidden++ * hiddenSize * 4, hiddenSize).slice();
        if (!state.every(Number.isFinite)) return { token: -1, error: "non_finite_logits" };
        return { token: -1, hidden: state };
      }
      const raw =
        logits[nextLogits] === row
          ? new Float32Array(data, logitsAt + nextLogits++ * vocabSize * 4, vocabSize)
          : later.get(row);
      const draft = this.#drafts.get(row);
      if (draft !== undefined && draft !== before) {
        before = -1;
        return { token: -1 };
      }
      const isBad = words[row * resultWords + 1] !== 0;
      const sampled: Sampled = isBad
        ? { token: -1, error: "non_finite_logits" }
        : output.kind === "score"
          ? { token: output.target }
          : this.#sample(row, output, raw, this.#decided.get(row) ?? words[row * resultWords] ?? 0);
      before = sampled.token;
      return this.#result(output, sampled, raw);
    });
  }

  #sample(row: number, { sampling }: SampleRow, raw: Float32Array | undefined, found: number): Sampled {
    const history = this.#histories[row];
    if (raw === undefined || isPlainGreedy(sampling, history)) {
      history?.append(found);
      return { token: found };
    }
    return sampleRow(raw.slice(), sampling, this.#masks.get(row), history);
  }

  #result(
    output: Exclude<OutputRow, { kind: "hidden" }>,
    sampled: Sampled,
    raw: Float32Array | undefined,
  ): RowResult {
    const logits = this.#wantLogits && raw !== undefined ? { logits: raw.slice() } : {};
    if (sampled.error !== undefined) return { token: -1, error: sampled.error, ...logits };
    const { token } = sampled;
    if (raw === undefined) return { token };
    const wantsDigest = output.kind === "sample" && output.wantDigest === true;
    const digest = wantsDigest
      ? { digest: xxhash64(new Uint8Array(raw.buffer, raw.byteOffset, raw.byteLength)) }
      : {};
    const ids = output.kind === "sample" ? output.logprobIds : undefined;
    if (output.numLogprobs === undefined && ids === undefined) return { token, ...logits, ...digest };
    const logprobs = new RowLogprobs(raw);
    const topTokens = logprobs.top(output.numLogprobs ?? 0);
    return {
      token,
      ...(output.numLogprobs !== undefined && { logprob: logprobs.of(token), rank: logprobs.rank(token) }),
      ...(topTokens.length > 0 && {
        topTokens,
        topLogprobs: Float32Array.from(topTokens, (id) => logprobs.of(id)),
      }),
      ...(ids !== undefined &&
        ids.length > 0 && { idLogprobs: Float32Array.from(ids, (id) => logprobs.of(id)) }),
      ...logits,
      ...digest,
    };
  }
}

/** Whether a row's logits are asked for, not only its token. */
function needsLogits(output: OutputRow, wantLogits: boolean): boolean {
  if (output.kind === "hidden") return false;
  if (wantLogits || output.kind === "score" || output.numLogprobs !== undefined) return true;
  return output.logprobIds !== undefined || output.wantDigest === true;
}
