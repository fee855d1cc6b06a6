import type { BufferRef } from "@octavo/kernels";
import { ropeSpec } from "./rope.js";
import type { ModelPlan } from "./model-plan.js";
import type { ProgramBuilder } from "./program-builder.js";

/** Activation buffers of a decoder-only transformer; every layer uses the same ones. */
interface DecoderBuffers {
  /** The residual stream. */
  readonly residual: BufferRef;
  /** Normalised input of a block. */
  readonly normed: BufferRef;
  /** What a block adds to the stream. */
  readonly update: BufferRef;
  /** q, k and v side by side. */
  readonly qkv: BufferRef;
  readonly attended: BufferRef;
  /** gate and up side by side. */
  readonly gateUp: BufferRef;
  readonly activated: BufferRef;
}

export interface AttentionOptions {
  /** Which projections have a bias. */
  readonly qkvBias?: boolean | undefined;
  readonly outputBias?: boolean | undefined;
  /** RMS norm of each head's q and k before rotation (Qwen3). */
  readonly queryKeyNorm?: boolean | undefined;
}

export interface LayerBlocks {
  attention(options?: AttentionOptions): void;
  gatedMlp(options?: { readonly bias?: boolean }): void;
}

/**
 * A decoder of pre-norm layers: embedding, the layers' blocks, final norm, head. `layer` records one layer's blocks in
 * order; norms and residual additions are placed around them.
 */
export function decoder(
  builder: ProgramBuilder,
  layer: (blocks: LayerBlocks, index: number) => void,
): ModelPlan {
  const { config } = builder;
  const { hiddenSize, vocabSize, headDim } = config;
  const buffers: DecoderBuffers = {
    residual: builder.buffer(hiddenSize),
    normed: builder.buffer(hiddenSize),
    update: builder.buffer(hiddenSize),
    qkv: builder.buffer((config.numHeads + 2 * config.numKvHeads) * headDim),
    attended: builder.buffer(config.numHeads * headDim),
    gateUp: builder.buffer(2 * config.intermediateSize),
    activated: builder.buffer(config.intermediateSize),
  };
  const embedding = builder.matrix("model.embed_tokens.weight", vocabSize, hiddenSize);
  builder.add({ op: "embedding", weight: embedding, out: buffers.residual });

  let pendingUpdate = false;
  const norm = (name: string): void => {
    builder.add({
      op: "rms_norm",
      in: pendingUpdate ? buffers.update : buffers.residual,
      weight: builder.vector(name, hiddenSize),
      out: buffers.normed,
      eps: config.rmsNormEps,
      ...(pendingUpdate && { residual: buffers.residual }),
    });
    pendingUpdate = true;
  };
  for (let index = 0; index < config.numLayers; index++) {
    const prefix = `model.layers.${index}`;
    layer(
      {
        attention: (options = {}) => {
          norm(`${prefix}.input_layernorm.weight`);
          attention(builder, buffers, index, options);
        },
        gatedMlp: ({ bias = false } = {}) => {
          norm(`${prefix}.post_attention_layernorm.weight`);
          gatedMlp(builder, buffers, index, bias);
        },
      },
      index,
    );
  }

  const last = builder.buffer(hiddenSize);
  const hidden = builder.buffer(hiddenSize);
  if (pendingUpdate) builder.add({ op: "add", in: buffers.update, out: buffers.residual });
  builder.add({ op: "gather", in: buffers.residual, out: last });
  builder.add({
    op: "rms_norm",
    in: last,
    weight: builder.vector("model.norm.weight", hiddenSize),
    out: hidden,
    eps: config.rmsNormEps,
  });
  const head = config.tieWordEmbeddings ? embedding : builder.matrix("lm_head.weight", vocabSize, hiddenSize);
  return builder.finish(hidden, { weight: head });
}

/** Projections, rotation and attention over the KV cache; grouped queries where there are fewer kv heads. */
function attention(
  builder: ProgramBuilder,
  buffers: DecoderBuffers,
  layer: number,
  options: AttentionOptions,
): void {
  const { config } = builder;
  const { headDim, numHeads, numKvHeads, hiddenSize } = config;
  const name = `model.layers.${layer}.self_attn`;
  const qWidth = numHeads * headDim;
  const kvWidth = numKvHeads * headDim;
  const { buffer } = buffers.qkv;
  const q: BufferRef = { buffer, column: 0, width: qWidth };
  const k: BufferRef = { buffer, column: qWidth, width: kvWidth };
  const v: BufferRef = { buffer, column: qWidth + kvWidth, width: kvWidth };

  const bias = options.qkvBias ?? false;
  builder.project(
    buffers.normed,
    [
      { name: `${name}.q_proj`, rows: qWidth, bias },
      { name: `${name}.k_proj`, rows: kvWidth, bias },
      { name: `${name}.v_proj`, rows: kvWidth, bias },
    ],
    hiddenSize,
    buffers.qkv,
  );
  if (options.queryKeyNorm === true) {
    for (const [part, on] of [
      ["q_norm", q],
      ["k_norm", k],
    ] as const) {
      const weight = builder.vector(`${name}.${part}.weight`, headDim);
      builder.add({ op: "rms_norm", in: on, weight, out: on, eps: config.rmsNormEps, groupSize: headDim });
    }
  }
  // q and k are neighbours, so one pass rotates the heads of both.
  builder.add({
    op: "rope",
    on: { buffer, column: 0, width: qWidth + kvWidth },
    headDim,
    rope: ropeSpec(config.rope),
  });
  const slidingWindow = config.slidingWindows[layer];
  builder.add({
    op: "attention",
    q,
    k,
    v,
    out: buffers.attended,
    layer,
    numHeads,
    numKvHeads,
    headDim,
    scale: 1 / Math.sqrt(headDim),
    ...(slidingWindow !== undefined && { slidingWindow }),
  });
  builder.project(
    buffers.attended,
    [{ name: `${name}.o_proj`, rows: hiddenSize, bias: options.outputBias ?? false }],
    qWidth,
    buffers.update,
  );
}

/** down(activation(gate(x)) * up(x)) */
function gatedMlp(builder: ProgramBuilder, buffers: DecoderBuffers, layer: number, bias: boolean): void {
  const { hiddenSize, intermediateSize, hiddenActivation } = builder.config;
  const name = `model.layers.${layer}.mlp`;
  builder.project(
    buffers.normed,
    [
      { name: `${name}.gate_proj`, rows: intermediateSize, bias },
      { name: `${name}.up_proj`, rows: intermediateSize, bias },
    ],
    hiddenSize,
    buffers.gateUp,
  );
  builder.add({
    op: "gated_activation",
    in: buffers.gateUp,
    out: buffers.activated,
    activation: hiddenActivation,
  });
  builder.project(
    buffers.activated,
    [{ name: `${name}.down_proj`, rows: hiddenSize, bias }],
    intermediateSize,
    buffers.update,
  );
}
