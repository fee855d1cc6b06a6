import type { OutputRow, RowSampling, SamplerState } from "@octavo/kernels";
import type { SamplingParams } from "../sampling/sampling-params.js";

type MutableSampling = { -readonly [Key in keyof RowSampling]: RowSampling[Key] };
/** A sample row that is reused with new sampling parameters in every step. */
export type SampleRow = Omit<Extract<OutputRow, { kind: "sample" }>, "sampling"> & {
  readonly sampling: MutableSampling;
};

/** The rows that sample one sequence: its next token and those behind draft tokens. Created once and reused in every step. */
export class SampleRows {
  readonly #minTokens: number;
  readonly #rows: [SampleRow, ...SampleRow[]];

  constructor(params: SamplingParams, seed: bigint, vocabSize: number, wantDigest = false) {
    const numLogprobs = params.logprobs === -1 ? vocabSize : params.logprobs;
    const wantsIds = params.logprobTokenIds !== undefined;
    this.#minTokens = params.minTokens;
    this.#rows = [
      {
        kind: "sample",
        numLogprobs: numLogprobs ?? (wantsIds ? 0 : undefined),
        ...(wantDigest && { wantDigest }),
        ...(params.logprobTokenIds !== undefined && {
          logprobIds: Int32Array.from(params.logprobTokenIds),
        }),
        sampling: {
          temperature: params.temperature,
          topP: params.topP,
          topK: params.topK,
          minP: params.minP,
          seed,
          index: 0,
        },
      },
    ];
  }

  get wantLogprobs(): boolean {
    return this.#rows[0].numLogprobs !== undefined;
  }

  get wantDigest(): boolean {
    return this.#rows[0].wantDigest === true;
  }

  get state(): SamplerState | undefined {
    return this.#rows[0].sampling.state;
  }

  /** Set before any row is taken. */
  set state(state: SamplerState) {
    this.#rows[0].sampling.state = state;
  }

  /** How tokens are sampled, whatever their index. */
  get sampling(): RowSampling {
    return this.#rows[0].sampling;
  }

  /** The row behind `ahead` draft tokens, which samples output token `index`. */
  at(ahead: number, index: number, mask: Uint32Array | undefined): OutputRow {
    const [first] = this.#rows;
    const row = (this.#rows[ahead] ??= { ...first, sampling: { ...first.sampling }, afterDraft: true });
    row.sampling.index = index;
    row.sampling.suppressStops = index < this.#minTokens;
    row.sampling.mask = mask;
    return row;
  }
}
