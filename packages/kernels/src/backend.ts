/**
 * The compute interface. A model is compiled once into a flat program over packed weights; a step is then
 * one asynchronous `execute(program, cache, plan)`. TypeScript validates, native code trusts.
 *
 * Numerics, on which "same tokens under any schedule" rests: every op computes a row from that row alone, in one
 * reduction order that depends neither on how many rows the step has nor on the number of threads; attention
 * walks the context in chunks whose borders are fixed absolute positions.
 */

/** Storage types a matrix may come in. Block layouts of `q*`, `iq*` and `mxfp4` are GGUF's (ggml-common.h). */
export type WeightType =
  | "f32"
  | "f16"
  | "bf16"
  | "q4_0"
  | "q5_0"
  | "q8_0"
  | "q4_k"
  | "q5_k"
  | "q6_k"
  /** Signed bytes `[rows, cols]`, one f32 scale per `groupSize` columns of a row. */
  | "int8"
  /** Unsigned nibbles `[rows, cols / 2]`, low nibble first; w = scale * (nibble - zero), `zeros` f32 per group (8 when absent). */
  | "int4"
  /** Bytes `[rows, cols]` of E4M3 (NVIDIA's and OCP's: no infinities), one f32 scale per `groupSize` columns of a row. */
  | "f8_e4m3"
  /** Unsigned bytes `[rows, cols]`; w = scale * (byte - zero), `zeros` f32 per group and of any value (0 when absent). */
  | "uint8"
  /** Nibbles `[rows, cols / 2]`, low nibble first, that index `table`; w = scale * (table[nibble] - zero), `zeros` as for uint8. */
  | "table4"
  | "q4_1"
  | "q5_1"
  | "q2_k"
  | "q3_k"
  | "iq4_nl"
  | "iq4_xs"
  | "mxfp4"
  /** Unsigned fields of 2 bits, four to a byte, the first lowest; w = scale * (field - zero), `zeros` as for uint8. */
  | "int2"
  /** The same of 3 bits, 32 to 12 bytes. */
  | "int3";

/**
 * Storage of keys and values. `int8` keeps signed bytes and an f32 scale per token and head, beside them in the block:
 * value = scale * byte, scale = largest magnitude / 127. Where the machine multiplies bf16 in pairs, attention over `bf16` and
 * `int8` rounds queries and softmax numerators to bf16; it sums in f32 everywhere.
 */
export type KvDtype = "f32" | "f16" | "bf16" | "int8";

/** Bytes of a tensor: a range of a mapped file, or memory. */
export type TensorBytes =
  | { readonly file: MappedFile; readonly offset: number; readonly byteLength: number }
  | { readonly data: Uint8Array };

/** A weight matrix `[rows, cols]`, row-major in its storage type. */
export interface MatrixSource {
  readonly type: WeightType;
  readonly rows: number;
  readonly cols: number;
  readonly bytes: TensorBytes;
  /** Types whose scales are apart, int2 to uint8 and f8_e4m3, table4, only: f32 `[rows, cols / groupSize]`, rounded up. */
  readonly scales?: TensorBytes;
  /** int2, int3, int4, uint8, table4 only: f32 `[rows, cols / groupSize]`, rounded up. */
  readonly zeros?: TensorBytes;
  /** int2, int3, int4, int8: a multiple of 32 that divides `cols`; f8_e4m3, uint8, table4: any, the last group may be shorter. */
  readonly groupSize?: number;
  /**
   * f8_e4m3, uint8, table4 only: how many rows `scales` and `zeros` have, row r taking those of row `r % scaleRows`; such a
   * source is not stacked. Default: as many as `rows`.
   */
  readonly scaleRows?: number;
  /** table4 only: the values of the 16 codes. */
  readonly table?: Float32Array;
  /** Types with scales only: stored column j multiplies input `columnOrder[j]`; a permutation of the columns. Default: in order. */
  readonly columnOrder?: Int32Array;
  /** Used in error messages. */
  readonly name: string;
}

export interface MatrixOptions {
  /**
   * The sources' files stay as they are for as long as the matrix lives. A matrix that the backend can multiply as it lies there is
   * then not copied; it keeps its files mapped and has no packed bytes. Default: false.
   */
  readonly inPlace?: boolean | undefined;
  /**
   * The sources' files stay as they are until the matrix is packed, which is left to `packMore` where the backend can multiply out of
   * the files meanwhile. Such a matrix is but checked here, and has packed bytes once it is packed. Not with `inPlace`, which goes
   * first. Default: false.
   */
  readonly packLater?: boolean | undefined;
}

export interface VectorSource {
  readonly type: "f32" | "f16" | "bf16";
  readonly length: number;
  readonly bytes: TensorBytes;
  readonly name: string;
}

/** Handles own native memory; the creator disposes them, after which any use throws. */
export interface MappedFile extends Disposable {
  readonly path: string;
  readonly byteLength: number;
}
export interface Matrix extends Disposable {
  readonly rows: number;
  readonly cols: number;
  /** Bytes of the repacked form, or of the files where those are read in place. */
  readonly byteLength: number;
}
/** f32 vector in native memory (norm weights, biases). */
export interface Vector extends Disposable {
  readonly length: number;
}
/** Keeps the weights that it was compiled from in memory, also once their own handles are disposed. */
export interface Program extends Disposable {
  readonly kind: "program";
}
export interface KvCache extends Disposable {
  readonly numBlocks: number;
  readonly blockSize: number;
  readonly byteLength: number;
}
/** Low-rank additions to a program's linears; kept by the steps that use it, also once disposed. */
export interface Adapter extends Disposable {
  readonly kind: "adapter";
}
/**
 * Penalty counts, bias and word lists of one sequence; native code appends the tokens it samples. One row of a step at most
 * may use it, or rows each of which is the next one's draft. A bad word of several tokens bans its last one where the others have just been generated.
 */
export interface SamplerState extends Disposable {
  readonly kind: "sampler-state";
}

/** An activation buffer of a program: f32, one row per token of the step, `width` columns. */
export interface BufferRef {
  readonly buffer: number;
  /** First column; default 0. */
  readonly column?: number;
  /** Columns addressed; default the rest of the row. */
  readonly width?: number;
}

export interface RopeSpec {
  /** One per rotated pair; checkpoint scalings are already folded in. */
  readonly inverseFrequencies: Float32Array;
  /** Multiplies cos and sin (YaRN, longrope); 1 otherwise. */
  readonly attentionFactor: number;
  /** `neox` rotates (i, i + d/2), `interleaved` rotates (2i, 2i + 1). */
  readonly layout: "neox" | "interleaved";
}

/**
 * Of the gate, which then multiplies up. `clamped_swiglu` is GPT-OSS's: g sigmoid(1.702 g) (u + 1) with g = min(gate, 7) and u = up
 * within [-7, 7].
 */
export type Activation = "silu" | "gelu" | "gelu_tanh" | "clamped_swiglu";

/** One expert's gated MLP. `gate` and `up` are `[inner, hidden]`; without `up`, `gate` is a stack of the two, gate above up. */
export interface ExpertWeights {
  readonly gate: Matrix;
  readonly up?: Matrix;
  /** `[hidden, inner]` */
  readonly down: Matrix;
  readonly gateBias?: Vector;
  readonly upBias?: Vector;
  readonly downBias?: Vector;
}

/** One instruction. Rows run over the step's tokens until `gather`, then over its output rows. */
export type Op =
  | { readonly op: "embedding"; readonly weight: Matrix; readonly out: BufferRef; readonly scale?: number }
  | {
      readonly op: "rms_norm";
      readonly in: BufferRef;
      readonly weight: Vector;
      readonly out: BufferRef;
      readonly eps: number;
      /** Normalise each run of this many columns on its own (per-head q/k norm); default the whole width. */
      readonly groupSize?: number;
      /** First add `in` into this buffer, then normalise the sum (the residual stream). */
      readonly residual?: BufferRef;
      /** Gemma's (1 + weight). */
      readonly weightOffset?: number;
    }
  | {
      readonly op: "linear";
      readonly in: BufferRef;
      readonly weight: Matrix;
      readonly bias?: Vector;
      readonly out: BufferRef;
      /** Number by which adapters name this linear, small and its own; without one they cannot reach it. */
      readonly site?: number;
    }
  | { readonly op: "rope"; readonly on: BufferRef; readonly headDim: number; readonly rope: RopeSpec }
  | {
      /** Writes k and v of the step's tokens to their slots, then attends. */
      readonly op: "attention";
      readonly q: BufferRef;
      readonly k: BufferRef;
      readonly v: BufferRef;
      readonly out: BufferRef;
      readonly layer: number;
      readonly numHeads: number;
      readonly numKvHeads: number;
      readonly headDim: number;
      readonly scale: number;
      /** A token sees itself and the `slidingWindow - 1` before it. */
      readonly slidingWindow?: number;
      /** cap * tanh(score / cap). */
      readonly softCap?: number;
      /** One per head: a score that joins each row's softmax and takes nothing from any value (attention sinks). */
      readonly sinks?: Vector;
    }
  | {
      /** out = activation(gate) * up; gate and up are the two halves of `in`. */
      readonly op: "gated_activation";
      readonly in: BufferRef;
      readonly out: BufferRef;
      readonly activation: Activation;
    }
  | {
      /**
       * A mixture of experts. A row goes to the `topK` experts with the highest scores (the lower index where scores are equal);
       * out = sum over them, in ascending order, of weight * down(activation(gate(in)) * up(in)).
       */
      readonly op: "experts";
      readonly in: BufferRef;
      /** One column per expert. */
      readonly scores: BufferRef;
      readonly out: BufferRef;
      readonly experts: readonly ExpertWeights[];
      readonly topK: number;
      /** What the softmax that gives the weights runs over: the chosen experts' scores, so that the weights add up to 1, or all. */
      readonly softmaxOver: "chosen" | "all";
      readonly activation: Activation;
    }
  /** Multiplies `on` by the logistic sigmoid of `in`, which is one column wide. */
  | { readonly op: "sigmoid_gate"; readonly in: BufferRef; readonly on: BufferRef }
  | { readonly op: "add"; readonly in: BufferRef; readonly out: BufferRef }
  | { readonly op: "scale"; readonly on: BufferRef; readonly factor: number }
  | {
      /** Keeps the rows named by the plan's `outputTokens`; later ops run on those alone. */
      readonly op: "gather";
      readonly in: BufferRef;
      readonly out: BufferRef;
    };

export interface ProgramSpec {
  /** Widths of the activation buffers. */
  readonly buffers: readonly number[];
  readonly ops: readonly Op[];
  /** Normalised hidden state of the output rows; what embeddings pool and the head multiplies. */
  readonly hidden: BufferRef;
  /** Output head `[vocab, hidden]`. */
  readonly head: {
    readonly weight: Matrix;
    readonly bias?: Vector;
    readonly scale?: number;
    readonly softCap?: number;
  };
  readonly maxTokens: number;
}

/**
 * What an adapter adds to one linear of a program (LoRA, arXiv 2106.09685): part p, of rank r, adds
 * scale * up * (its r rows of down) * x to the outputs from `column` on. Parts add to different outputs.
 */
export interface AdapterSite {
  /** The linear's `site`. */
  readonly site: number;
  /** f32, f16 or bf16 `[sum of the parts' ranks, the linear's columns]`: the parts' rows one after the other. */
  readonly down: Matrix;
  readonly parts: readonly AdapterPart[];
}

export interface AdapterPart {
  /** First of the linear's outputs that the part adds to. */
  readonly column: number;
  /** `[outputs, rank]` */
  readonly up: Matrix;
  readonly scale: number;
}

export interface KvCacheSpec {
  readonly numLayers: number;
  readonly numBlocks: number;
  readonly blockSize: number;
  readonly numKvHeads: number;
  readonly headDim: number;
  readonly dtype: KvDtype;
}

export interface SamplerStateSpec {
  readonly promptTokens: Int32Array;
  /** Already generated, when a sequence is resumed. */
  readonly outputTokens: Int32Array;
  readonly logitBias?: { readonly ids: Int32Array; readonly values: Float32Array };
  readonly allowedTokens?: Int32Array;
  readonly badWords?: readonly Int32Array[];
  /** Not sampled while the row's `suppressStops` is set (min_tokens). */
  readonly stopTokens?: Int32Array;
  readonly repetitionPenalty: number;
  readonly frequencyPenalty: number;
  readonly presencePenalty: number;
}

/**
 * Sampling parameters of one output row. Ties go to the lowest id: in greedy choice, at the border of top-k (exactly k
 * tokens stay) and at that of top-p. Order follows vLLM: raw logprobs, mask, allowed ids, bad words, stop suppression,
 * bias, penalties, greedy or temperature, min-p, top-k, top-p, then one draw keyed by (seed, index).
 */
export interface RowSampling {
  /** 0 means greedy. */
  readonly temperature: number;
  readonly topP: number;
  /** 0 means off. */
  readonly topK: number;
  readonly minP: number;
  readonly seed: bigint;
  /** Position of the drawn token within the sequence's output; keys the random stream. */
  readonly index: number;
  readonly state?: SamplerState;
  readonly suppressStops?: boolean;
  /**
   * Tokens that may be sampled: bit `id & 31` of word `id >> 5`, ceil(vocab / 32) words. Read when the step is handed
   * over; the caller may change it then.
   */
  readonly mask?: Uint32Array | undefined;
}

/** What to do with one output row. */
export type OutputRow =
  | {
      readonly kind: "sample";
      readonly sampling: RowSampling;
      readonly numLogprobs: number | undefined;
      readonly logprobIds?: Int32Array;
      /**
       * The row's token is a draft: a guess of what the row before, of the token before, gives. Sampled only where that row
       * gave just this token; otherwise its result is token -1 and nothing more, and its state is left as it was. Rows of one
       * such run are sampled in order and may share a state.
       */
      readonly afterDraft?: boolean;
      /** Also give the digest of the row's raw logits. */
      readonly wantDigest?: boolean;
    }
  /** Logprob and rank of `target` under the row's raw distribution (prompt_logprobs). */
  | { readonly kind: "score"; readonly target: number; readonly numLogprobs: number }
  /** The normalised hidden state (embeddings). */
  | { readonly kind: "hidden" };

/** One step. Arrays may be longer than the counts say; the caller leaves them alone until the step resolves. */
export interface StepPlan {
  readonly numTokens: number;
  readonly numSequences: number;
  readonly tokenIds: Int32Array;
  readonly positions: Int32Array;
  /** Where each token's k and v go: block * blockSize + offset. */
  readonly slots: Int32Array;
  /** `[numSequences + 1]`, token index at which each sequence's queries start. */
  readonly queryStarts: Int32Array;
  /** `[numSequences]`, tokens visible after this step. */
  readonly contextLengths: Int32Array;
  /** Block ids of all sequences, one after another; sequence s owns `[blockTableStarts[s], blockTableStarts[s + 1])`. */
  readonly blockTables: Int32Array;
  readonly blockTableStarts: Int32Array;
  /** `[numSequences]`, the adapter of each sequence, made for this program; absent when none has one. */
  readonly adapters?: readonly (Adapter | undefined)[];
  /** Token index of each output row, ascending; a token may stand more than once. */
  readonly outputTokens: Int32Array;
  readonly outputs: readonly OutputRow[];
  /** Also return the raw logits of all sample and score rows (tests, comparisons). */
  readonly wantLogits?: boolean;
}

/**
 * Why one row has no result; the step's other rows are good, and the row's sampler state is left as it was.
 * `non_finite_logits`: a logit or, in a hidden row, the state is NaN or infinite. `no_token_allowed`: mask, allowed ids, bad words, stop
 * suppression and bias left nothing to sample.
 */
export type RowError = "non_finite_logits" | "no_token_allowed";

export interface RowResult {
  /** Sampled or scored token; -1 for hidden rows, rows in error and rows after a draft that was not met. */
  readonly token: number;
  readonly error?: RowError;
  /** Raw log-probability of `token`, present when logprobs were asked for. */
  readonly logprob?: number;
  /** 1 is the most likely token. */
  readonly rank?: number;
  /** Most likely tokens, best first. */
  readonly topTokens?: Int32Array;
  readonly topLogprobs?: Float32Array;
  /** Logprobs of the row's `logprobIds`, in their order. */
  readonly idLogprobs?: Float32Array;
  readonly hidden?: Float32Array;
  /** `[vocab]` */
  readonly logits?: Float32Array;
  /**
   * Of a row that wanted it and is not in error: XXH64 of its raw logits as little-endian floats, 16 hexadecimal digits. Equal
   * digests are equal bits, but for one chance in 2^64.
   */
  readonly digest?: string;
}

export interface StepResult {
  readonly rows: readonly RowResult[];
  /** Native wall time of the step, ms. */
  readonly computeMs: number;
}

export interface BackendInfo {
  readonly name: string;
  /** e.g. "avx512" */
  readonly instructionSet: string;
  readonly features: readonly string[];
  readonly numThreads: number;
}

/** What, beside its bytes, makes a packed matrix. */
export interface PackedForm {
  readonly type: WeightType;
  readonly rows: number;
  readonly cols: number;
  /** Types whose scales are apart only. */
  readonly groupSize?: number | undefined;
  readonly hasZeros?: boolean | undefined;
}

/** Packed weights as bytes, of a backend that can use those of an earlier process. */
export interface PackedWeights {
  /** Names how packed bytes are laid out; those of another layout mean something else. */
  readonly layout: string;
  /** The packed bytes, not to be changed; undefined for a matrix that is more than its bytes (`columnOrder`) or is read in place. */
  bytesOf(matrix: Matrix): Uint8Array | undefined;
  /** Tells damaged bytes from sound ones, at the speed of memory. Of a matrix that has packed bytes. */
  checksumOf(matrix: Matrix): Promise<string>;
  /**
   * A matrix over packed bytes in a file, shared with every process that maps them; undefined when their checksum is another.
   * Without a checksum the bytes are taken for sound and only brought into memory, in half of the time.
   * Rejects with `artifact_invalid` when the file is too short. `offset` is a multiple of 4096.
   */
  map(form: PackedForm, file: MappedFile, offset: number, checksum?: string): Promise<Matrix | undefined>;
}

export interface Backend extends Disposable {
  readonly info: BackendInfo;
  /** Absent where packing is all there is. */
  readonly packedWeights?: PackedWeights;
  mapFile(path: string): MappedFile;
  /** Repacks the sources, stacked along rows (they share a type and `cols`), in parallel. Rejects non-finite weights with `artifact_invalid`. */
  createMatrix(sources: readonly MatrixSource[], options?: MatrixOptions): Promise<Matrix>;
  /**
   * Packs matrices that were made with `packLater` for about so long, the first ones first, after the steps that were asked for before
   * and before those that come later. Resolves to how many of them, from the first on, are packed. No product changes. Rejects with
   * `out_of_memory`, after which the matrices are what they were. Absent where a backend leaves nothing for later.
   */
  packMore?(matrices: readonly Matrix[], milliseconds: number): Promise<number>;
  createVector(sources: readonly VectorSource[]): Vector;
  createKvCache(spec: KvCacheSpec): KvCache;
  createSamplerState(spec: SamplerStateSpec): SamplerState;
  compile(spec: ProgramSpec): Program;
  /**
   * Makes an adapter of packed matrices, which stay the caller's to dispose. Absent where a backend cannot. Throws
   * `artifact_invalid` when a shape does not fit the program's linears.
   */
  createAdapter?(program: Program, sites: readonly AdapterSite[]): Adapter;
  /** Runs one step on the backend's own threads. Steps run one at a time in call order. */
  execute(program: Program, cache: KvCache, plan: StepPlan): Promise<StepResult>;
}
