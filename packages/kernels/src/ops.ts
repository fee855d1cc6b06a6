import type { Matrix, Vector } from "./handles.js";

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
  /**
   * One per rotated pair: along which of the step's axes it rotates, 0 to 2. Where a step gives no axes, and without this, all go by the
   * position.
   */
  readonly axes?: Uint8Array;
  /** Multiplies cos and sin further by 1 + beta * ln(1 + floor((position + offset) / every)), which sharpens attention as texts grow (Llama 4). */
  readonly growth?: { readonly beta: number; readonly every: number; readonly offset?: number };
}

/**
 * Activation of the gate, which then multiplies up. `clamped_swiglu` is GPT-OSS's: g sigmoid(1.702 g) (u + 1) with g = min(gate, 7) and u = up
 * within [-7, 7].
 */
export type Activation =
  | "silu"
  | "gelu"
  | "gelu_tanh"
  | "clamped_swiglu"
  | "sigmoid"
  | "identity"
  | "relu_squared"
  | "tanh"
  | "relu";

export type PlainActivation = Exclude<Activation, "clamped_swiglu">;

/** One expert's MLP. `gate` and `up` are `[inner, hidden]`; without `up`, `gate` is a stack of the two, gate above up. */
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
  | {
      readonly op: "embedding";
      readonly weight: Matrix;
      readonly out: BufferRef;
      readonly scale?: number;
      /** Which number of a token, with `offset` added, is its row of the weight; default its id. */
      readonly of?: "position" | "type";
      /** Default 0. */
      readonly offset?: number;
      /** Takes the step's given rows in the place of those that it looks up, as they are. One op of a program. */
      readonly takesGiven?: true;
    }
  /** Adds the step's given rows with this index to those of their tokens. `index` counts a program's ops of this kind, all of one width. */
  | { readonly op: "add_given"; readonly on: BufferRef; readonly index: number }
  | {
      readonly op: "rms_norm";
      readonly in: BufferRef;
      readonly weight: Vector;
      readonly out: BufferRef;
      readonly eps: number;
      /** Normalise each run of this many columns on its own (per-head q/k norm); default the whole width. The weight is a run's, or all. */
      readonly groupSize?: number;
      /** First add `in` into this buffer, then normalise the sum (the residual stream). */
      readonly residual?: BufferRef;
      /** Gemma's (1 + weight). */
      readonly weightOffset?: number;
    }
  | {
      /** (x - mean) / sqrt(variance + eps) * weight + bias over the whole width (Ba et al., arXiv 1607.06450). */
      readonly op: "layer_norm";
      readonly in: BufferRef;
      readonly weight: Vector;
      readonly bias?: Vector;
      readonly out: BufferRef;
      readonly eps: number;
      /** First add `in` into this buffer, then normalise the sum. */
      readonly residual?: BufferRef;
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
  | {
      /**
       * A product of each head with a matrix of its own, all of one shape. A head's columns of `in` are those that its matrix
       * multiplies and `passed` more behind them; its columns of `out` are the passed ones and, behind them, what the matrix gives.
       */
      readonly op: "head_linear";
      readonly in: BufferRef;
      readonly weights: readonly Matrix[];
      readonly out: BufferRef;
      /** Default 0. */
      readonly passed?: number;
    }
  | { readonly op: "rope"; readonly on: BufferRef; readonly headDim: number; readonly rope: RopeSpec }
  | {
      /** Writes k and v of the step's tokens to their slots, then attends. Without both, an op before has written the layer. */
      readonly op: "attention";
      readonly q: BufferRef;
      readonly k?: BufferRef;
      /** Absent in latent attention, too: a value is the last `valueDim` columns of its key, which the cache keeps once. */
      readonly v?: BufferRef;
      /** Latent attention alone. */
      readonly valueDim?: number;
      /** A head's columns are as many as a value's. */
      readonly out: BufferRef;
      readonly layer: number;
      readonly numHeads: number;
      readonly numKvHeads: number;
      readonly headDim: number;
      readonly scale: number;
      /** A token sees itself and the `slidingWindow - 1` before it. */
      readonly slidingWindow?: number;
      /** A token sees itself and those before it from the last multiple of `chunk` on; not beside a window. */
      readonly chunk?: number;
      /**
       * A token sees as many tokens after itself, too, of those that its sequence has after the step. The same bits under any schedule
       * then need a step to hold the whole sequence.
       */
      readonly lookAhead?: number;
      /** A token sees none after itself, whatever the step says it sees (`StepPlan.lastSeen`). */
      readonly isCausal?: true;
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
  /** An activation that gates nothing. */
  | { readonly op: "activation"; readonly on: BufferRef; readonly activation: PlainActivation }
  | {
      /**
       * A mixture of experts. A row goes to the `topK` experts with the highest scores (the lower index where scores are equal);
       * out = sum over them, in ascending order, of weight * down(activation(gate(in)) * up(in)).
       * A score becomes an expert's weight by a softmax or, with `scoring`, by the logistic sigmoid.
       */
      readonly op: "experts";
      readonly in: BufferRef;
      /** One column per expert. */
      readonly scores: BufferRef;
      readonly out: BufferRef;
      readonly experts: readonly ExpertWeights[];
      readonly topK: number;
      /** What the weights add up to 1 over: the chosen experts, or all. Sigmoids of all experts are left as they are. */
      readonly softmaxOver: "chosen" | "all";
      readonly scoring?: "sigmoid";
      /** One per expert: added to softmax or sigmoid for the choice alone (DeepSeek V3). */
      readonly selectionBias?: Vector;
      /** Experts in groups of equal size, of which only the best take part: by their best expert, or the sum of their best two. */
      readonly groups?: { readonly count: number; readonly chosen: number; readonly by: "best" | "two_best" };
      /** Multiplies the weights; default 1. */
      readonly weightScale?: number;
      /** One per expert: multiplies its weight, once the weights add up to what they should. */
      readonly expertScales?: Vector;
      /** An expert's weight multiplies what it reads, not what it gives (Llama 4). */
      readonly weighsInput?: true;
      readonly activation: Activation;
      /** False for experts whose activation multiplies nothing: `gate` alone stands before `down`. */
      readonly isGated?: false;
      /** Of ranks: each has its part of gate's and up's rows and of down's, which are `out`'s columns. */
      readonly isSplit?: true;
    }
  /** Multiplies `on` by the logistic sigmoid of `in`, which is one column wide. */
  | { readonly op: "sigmoid_gate"; readonly in: BufferRef; readonly on: BufferRef }
  /** on = activation(in) * on, of two equally wide. */
  | {
      readonly op: "gate";
      readonly in: BufferRef;
      readonly on: BufferRef;
      readonly activation: Exclude<Activation, "clamped_swiglu">;
    }
  /** Runs of `run` columns of `in` go to `first` and `second` in turn. */
  | {
      readonly op: "split";
      readonly in: BufferRef;
      readonly first: BufferRef;
      readonly second: BufferRef;
      readonly run: number;
    }
  | RecurrentOp
  | { readonly op: "add"; readonly in: BufferRef; readonly out: BufferRef }
  /** Multiplies by a factor and, where given, the one value of `by`. */
  | { readonly op: "scale"; readonly on: BufferRef; readonly factor: number; readonly by?: Vector }
  | {
      /**
       * Each row, or each run of `groupSize` columns of it, rounded to E4M3 times a scale of its own: its largest magnitude / 448. What a
       * checkpoint with dynamic FP8 activations declares.
       */
      readonly op: "round_e4m3";
      readonly in: BufferRef;
      readonly out: BufferRef;
      readonly groupSize?: number;
    }
  /** Bounds every value to [least, limit]; default of `least` is -limit. */
  | { readonly op: "clamp"; readonly on: BufferRef; readonly limit: number; readonly least?: number }
  | {
      /**
       * Of ranks: gets the columns of `on` that others have, each its part as `rankPart` says, or `first` all of them. Nothing is added
       * up, so that the bits do not depend on the number of ranks.
       */
      readonly op: "exchange";
      readonly on: BufferRef;
      readonly from: "parts" | "first";
    }
  /** Of a stage behind others: the step's rows as the stage before sent them. All of a program's come one after another. */
  | { readonly op: "receive"; readonly out: BufferRef }
  /** Of a stage before others: rows that the next one goes on with. */
  | { readonly op: "send"; readonly in: BufferRef }
  | {
      /** Keeps the rows named by the plan's `outputTokens`, pooled where an output row says so; later ops run on those alone. */
      readonly op: "gather";
      readonly in: BufferRef;
      readonly out: BufferRef;
    };

/**
 * An op that keeps something of every token of a sequence, in a slot of state (see `StateSpec`). `state` numbers the program's recurrent
 * ops from 0.
 */
export type RecurrentOp =
  | {
      /** out[t] = activation(bias + sum over i of weight[channel][i] * in[t - taps + 1 + i]); zeros stand before the first token. */
      readonly op: "convolution";
      readonly state: number;
      readonly in: BufferRef;
      readonly out: BufferRef;
      /** `[width, taps]` */
      readonly weight: Vector;
      readonly bias?: Vector;
      readonly activation?: "silu";
    }
  | (Recurrence & {
      /**
       * The gated delta rule (arXiv 2412.06464). With q and k of each head normalised to length 1 and q divided by sqrt(keyDim), state
       * S `[keyDim, valueDim]`, decay d = e^(-rate softplus(decay + stepBias)) and b = sigmoid(strength):
       * S = d S + k (b (v - d S^T k))^T, out = S^T q.
       */
      readonly op: "gated_delta_rule";
      readonly q: BufferRef;
      readonly k: BufferRef;
      readonly v: BufferRef;
      /** Per head. */
      readonly decay: BufferRef;
      readonly strength: BufferRef;
      /** Head h has key head h / (numHeads / numKeyHeads), or h % numKeyHeads. */
      readonly keyHeads: "grouped" | "tiled";
    })
  | (Recurrence & {
      /**
       * Mamba-2's state space (arXiv 2405.21060). With the step s = softplus(step + stepBias) within its bounds and
       * d = e^(-rate s): S = d S + b (s x)^T, out = S^T c + skip x.
       */
      readonly op: "state_space";
      readonly c: BufferRef;
      readonly b: BufferRef;
      readonly x: BufferRef;
      /** Per head. */
      readonly step: BufferRef;
      readonly skip: Vector;
      readonly leastStep?: number;
      readonly mostStep?: number;
    });

interface Recurrence {
  readonly state: number;
  readonly out: BufferRef;
  readonly numHeads: number;
  /** Divides numHeads. */
  readonly numKeyHeads: number;
  /** A multiple of 4. */
  readonly keyDim: number;
  readonly valueDim: number;
  /** Per head; its rate is e^decayRate, or -decayRate. */
  readonly decayRate: Vector;
  readonly rateForm: "log" | "negative";
  readonly stepBias: Vector;
}

export interface ProgramSpec {
  /** Widths of the activation buffers. */
  readonly buffers: readonly number[];
  readonly ops: readonly Op[];
  /** Normalised hidden state of the output rows; what embeddings pool and the head multiplies. */
  readonly hidden: BufferRef;
  /** Output head `[vocab, hidden]`; absent where a program gives hidden rows alone. */
  readonly head?: {
    readonly weight: Matrix;
    readonly bias?: Vector;
    readonly scale?: number;
    readonly softCap?: number;
    /** Of ranks: rows of the head of which `weight` and `bias` are this rank's part. */
    readonly allRows?: number;
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
