import type { BufferRef } from "@octavo/kernels";
import { OctavoError } from "@octavo/protocol/errors";
import { type ExpertNames, expertBuffers, mixtureOfExperts } from "./mixture-of-experts.js";
import { finishEncoder, headLinear, logitMargin, sightOf } from "./encoder-layers.js";
import type { LayerMixer } from "./recurrent-layers.js";
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
  /** Buffers for gated heads: query and gate interleaved per head, and the gates alone. */
  readonly gatedQuery?: { readonly both: BufferRef; readonly gate: BufferRef };
  /** gate and up side by side. */
  readonly gateUp: BufferRef;
  readonly activated: BufferRef;
}

/** What tensors are called, where it is not as in Llama. */
const llamaNames = {
  finalNorm: "model.norm",
  /** Within the layer: norms of the first and of the second block's input. */
  firstNorm: "input_layernorm",
  secondNorm: "post_attention_layernorm",
  /** Within the layer, and what stands within it. */
  attention: "self_attn",
  queryNorm: "q_norm",
  keyNorm: "k_norm",
  output: "o_proj",
  /** Within the layer. */
  gateUp: "mlp.gate_up_proj",
  gate: "mlp.gate_proj",
  up: "mlp.up_proj",
  down: "mlp.down_proj",
} as const;

export type DecoderNames = Readonly<Record<keyof typeof llamaNames, string>>;

interface AttentionOptions {
  /** Which projections have a bias; default as configured. */
  readonly qkvBias?: boolean | undefined;
  readonly outputBias?: boolean | undefined;
  /** RMS norm of q and k before rotation: of each head (Qwen3) or of all heads together (OLMo 2). */
  readonly queryKeyNorm?: "head" | "whole" | undefined;
  /** q, k and v are one tensor, `qkv_proj` (Phi-3). */
  readonly isFused?: boolean | undefined;
  /** `sinks`: a score per head that joins its softmax (GPT-OSS). */
  readonly sinks?: boolean | undefined;
  readonly norms?: BlockNorms | undefined;
  /** Multiply q, k and v; k once more; and what the block gives. */
  readonly scales?: { readonly input: number; readonly key: number; readonly output: number };
}

interface GatedMlpOptions {
  /** gate and up are one tensor, `gate_up_proj` (Phi-3). */
  readonly isFused?: boolean | undefined;
  readonly norms?: BlockNorms | undefined;
  /** Multiply the gate, and what the block gives. */
  readonly scales?: { readonly gate: number; readonly output: number };
}

/** Names, within the layer, of the norms of a block's input and of what it adds to the residual stream. */
interface BlockNorms {
  readonly before?: string | undefined;
  readonly after?: string | undefined;
}

interface LayerBlocks {
  /** Default norm: `input_layernorm` before. */
  attention(options?: AttentionOptions): void;
  /** Default norm: `post_attention_layernorm` before. */
  gatedMlp(options?: GatedMlpOptions): void;
  /** An MLP without a gate: up, activation, down. Norm: as of `gatedMlp`. */
  plainMlp(): void;
  /** Norm: `post_attention_layernorm` before. */
  experts(names: ExpertNames): void;
  /** A block of a family's own. Default norm: `input_layernorm` before. */
  mixer(mix: LayerMixer, norms?: BlockNorms): void;
  /** Attention and gated MLP of one input, `input_layernorm` before; both add to the stream (Cohere). */
  parallel(): void;
  /** Attention and another mixer of one input, the first block's norm before; both add to the stream (Falcon-H1). */
  attentionBeside(mix: LayerMixer, options?: AttentionOptions): void;
}

/**
 * A decoder: embedding, the layers' blocks, final norm, head. `layer` records one layer's blocks in order; norms and residual
 * additions are placed around them.
 */
export function decoder(
  builder: ProgramBuilder,
  layer: (blocks: LayerBlocks, index: number) => void,
  /** `hasGatedHeads`: each head's q is followed by a gate, by whose sigmoid what the head attends to is multiplied (Qwen3-Next). */
  {
    hasGatedHeads = false,
    names: ownNames,
  }: { readonly hasGatedHeads?: boolean; readonly names?: Partial<DecoderNames> } = {},
): ModelPlan {
  const names: DecoderNames = { ...llamaNames, ...ownNames };
  const { config } = builder;
  const { hiddenSize, vocabSize, headDim } = config;
  const buffers: DecoderBuffers = {
    residual: builder.buffer(hiddenSize),
    normed: builder.buffer(hiddenSize),
    update: builder.buffer(hiddenSize),
    qkv: builder.buffer((config.numHeads + 2 * config.numKvHeads) * headDim),
    attended: builder.buffer(config.numHeads * headDim),
    ...(hasGatedHeads && {
      gatedQuery: {
        both: builder.buffer(2 * config.numHeads * headDim),
        gate: builder.buffer(config.numHeads * headDim),
      },
    }),
    gateUp: builder.buffer(2 * config.intermediateSize),
    activated: builder.buffer(config.intermediateSize),
  };
  const forExperts = config.experts === undefined ? undefined : expertBuffers(builder, config.experts);
  const embedding = builder.matrix("model.embed_tokens.weight", vocabSize, hiddenSize);
  builder.add({
    op: "embedding",
    weight: embedding,
    out: buffers.residual,
    ...(config.embeddingScale !== undefined && { scale: config.embeddingScale }),
  });

  let pendingUpdate = false;
  /** Attention layers so far: the cache keeps keys and values of those alone. */
  let cacheLayer = 0;
  let second: BufferRef | undefined;
  /** What the block reads. Its update joins the residual stream when the next block begins. */
  const enter = (normName: string | undefined): BufferRef => {
    if (normName === undefined) {
      if (pendingUpdate) builder.add({ op: "add", in: buffers.update, out: buffers.residual });
      return buffers.residual;
    }
    builder.norm(normName, pendingUpdate ? buffers.update : buffers.residual, buffers.normed, {
      ...(pendingUpdate && { residual: buffers.residual }),
    });
    return buffers.normed;
  };
  const leave = (normName: string | undefined): void => {
    if (normName !== undefined) builder.norm(normName, buffers.update, buffers.update);
    if (config.residualScale !== undefined) {
      builder.add({ op: "scale", on: buffers.update, factor: config.residualScale });
    }
    pendingUpdate = true;
  };
  for (let index = 0; index < config.numLayers; index++) {
    const named = (name: string | undefined): string | undefined =>
      name === undefined ? undefined : `model.layers.${index}.${name}.weight`;
    layer(
      {
        attention: (options = {}) => {
          const { before, after } = options.norms ?? { before: names.firstNorm };
          attention(builder, names, buffers, enter(named(before)), { layer: index, cacheLayer }, options);
          cacheLayer += config.encoder === undefined ? 1 : 0;
          leave(named(after));
        },
        gatedMlp: (options = {}) => {
          const { before, after } = options.norms ?? { before: names.secondNorm };
          gatedMlp(builder, names, buffers, enter(named(before)), index, options);
          leave(named(after));
        },
        plainMlp: () => {
          const input = enter(named(names.secondNorm));
          const { hiddenActivation, intermediateSize, mlpBias: bias } = config;
          if (hiddenActivation === "clamped_swiglu")
            throw new OctavoError("internal_error", "A clamped SwiGLU was planned without a gate.");
          const name = `model.layers.${index}`;
          const up = { name: `${name}.${names.up}`, rows: intermediateSize, bias };
          builder.project(input, [up], hiddenSize, buffers.activated);
          builder.add({ op: "activation", on: buffers.activated, activation: hiddenActivation });
          const down = { name: `${name}.${names.down}`, rows: hiddenSize, bias };
          builder.project(buffers.activated, [down], intermediateSize, buffers.update);
          leave(undefined);
        },
        experts: (expertNames) => {
          const input = enter(named(names.secondNorm));
          if (forExperts !== undefined)
            mixtureOfExperts(builder, forExperts, expertNames, index, input, buffers.update);
          leave(undefined);
        },
        mixer: (mix, { before, after } = { before: names.firstNorm }) => {
          mix(enter(named(before)), buffers.update, index);
          leave(named(after));
        },
        attentionBeside: (mix, options = {}) => {
          const input = enter(named(names.firstNorm));
          attention(builder, names, buffers, input, { layer: index, cacheLayer }, options);
          cacheLayer += 1;
          second ??= builder.buffer(hiddenSize);
          mix(input, second, index);
          builder.add({ op: "add", in: second, out: buffers.update });
          leave(undefined);
        },
        parallel: () => {
          const input = enter(named(names.firstNorm));
          attention(builder, names, buffers, input, { layer: index, cacheLayer }, {});
          cacheLayer += 1;
          second ??= builder.buffer(hiddenSize);
          gatedMlp(builder, names, { ...buffers, update: second }, input, index, {});
          builder.add({ op: "add", in: second, out: buffers.update });
          leave(undefined);
        },
      },
      index,
    );
  }

  const last = builder.buffer(hiddenSize);
  const hidden = builder.buffer(hiddenSize);
  const classify = (pooled: BufferRef, rows: number): BufferRef =>
    headLinear(builder, pooled, { name: "score", rows, bias: false });
  if (pendingUpdate) builder.add({ op: "add", in: buffers.update, out: buffers.residual });
  if (config.encoder !== undefined) {
    builder.norm(`${names.finalNorm}.weight`, buffers.residual, buffers.normed);
    return finishEncoder(builder, buffers.normed, classify);
  }
  builder.add({ op: "gather", in: buffers.residual, out: last });
  builder.norm(`${names.finalNorm}.weight`, last, hidden);
  const { classifier } = config;
  if (classifier?.between !== undefined)
    return builder.finish(logitMargin(builder, hidden, classifier.between));
  if (classifier !== undefined) return builder.finish(classify(hidden, classifier.labels.length));
  const head = config.tieWordEmbeddings ? embedding : builder.matrix("lm_head.weight", vocabSize, hiddenSize);
  return builder.finish(hidden, {
    weight: head,
    ...(config.logitScale !== undefined && { scale: config.logitScale }),
    ...(config.logitSoftCap !== undefined && { softCap: config.logitSoftCap }),
  });
}

/** Llama's layers, which several families have with other numbers. */
export function llamaProgram(builder: ProgramBuilder): ModelPlan {
  return decoder(builder, (layer) => {
    layer.attention();
    layer.gatedMlp();
  });
}

/** Projections, rotation and attention over the KV cache; grouped queries where there are fewer kv heads. */
function attention(
  builder: ProgramBuilder,
  names: DecoderNames,
  buffers: DecoderBuffers,
  input: BufferRef,
  { layer, cacheLayer }: { readonly layer: number; readonly cacheLayer: number },
  options: AttentionOptions,
): void {
  const { config } = builder;
  const { headDim, numHeads, numKvHeads, hiddenSize } = config;
  const name = `model.layers.${layer}.${names.attention}`;
  const qWidth = numHeads * headDim;
  const kvWidth = numKvHeads * headDim;
  const { buffer } = buffers.qkv;
  const q: BufferRef = { buffer, column: 0, width: qWidth };
  const k: BufferRef = { buffer, column: qWidth, width: kvWidth };
  const v: BufferRef = { buffer, column: qWidth + kvWidth, width: kvWidth };

  const bias = options.qkvBias ?? config.attentionBias;
  const keysAndValues = [
    { name: `${name}.k_proj`, rows: kvWidth, bias },
    { name: `${name}.v_proj`, rows: kvWidth, bias },
  ];
  const { gatedQuery } = buffers;
  if (gatedQuery !== undefined) {
    builder.project(input, [{ name: `${name}.q_proj`, rows: 2 * qWidth, bias }], hiddenSize, gatedQuery.both);
    builder.add({ op: "split", in: gatedQuery.both, first: q, second: gatedQuery.gate, run: headDim });
    builder.project(input, keysAndValues, hiddenSize, { ...buffers.qkv, column: qWidth });
  } else {
    const separate = [{ name: `${name}.q_proj`, rows: qWidth, bias }, ...keysAndValues];
    const fused = [{ name: `${name}.qkv_proj`, rows: qWidth + 2 * kvWidth, bias }];
    builder.project(input, options.isFused === true ? fused : separate, hiddenSize, buffers.qkv);
  }
  const { queryKeyNorm, scales } = options;
  builder.scale({ buffer, column: 0, width: qWidth + 2 * kvWidth }, scales?.input);
  builder.scale(k, scales?.key);
  if (queryKeyNorm !== undefined) {
    builder.norm(
      `${name}.${names.queryNorm}.weight`,
      q,
      q,
      queryKeyNorm === "head" ? { groupSize: headDim } : {},
    );
    builder.norm(
      `${name}.${names.keyNorm}.weight`,
      k,
      k,
      queryKeyNorm === "head" ? { groupSize: headDim } : {},
    );
  }
  if (config.attentionClip !== undefined)
    builder.add({ op: "clamp", on: buffers.qkv, limit: config.attentionClip });
  const slidingWindow = config.slidingWindows[layer];
  const rope = slidingWindow === undefined ? config.rope : (config.localRope ?? config.rope);
  if (config.layersWithoutRope?.[layer] !== true) {
    const spec = ropeSpec(rope, config.maxPositionEmbeddings);
    const { queryGrowth: growth } = config;
    if (growth === undefined) {
      // q and k are neighbours, so one pass rotates the heads of both.
      const on = { buffer, column: 0, width: qWidth + kvWidth };
      builder.add({ op: "rope", on, headDim, rope: spec });
    } else {
      builder.add({ op: "rope", on: q, headDim, rope: { ...spec, growth } });
      builder.add({ op: "rope", on: k, headDim, rope: spec });
    }
  }
  builder.add({
    op: "attention",
    q,
    k,
    v,
    out: buffers.attended,
    layer: cacheLayer,
    numHeads,
    numKvHeads,
    headDim,
    scale: config.attentionScale ?? 1 / Math.sqrt(headDim),
    ...(config.attentionSoftCap !== undefined && { softCap: config.attentionSoftCap }),
    ...(slidingWindow !== undefined && { slidingWindow }),
    ...(config.encoder !== undefined && sightOf(config.maxPositionEmbeddings, slidingWindow)),
    ...(options.sinks === true && { sinks: builder.vector(`${name}.sinks`, numHeads) }),
  });
  if (gatedQuery !== undefined)
    builder.add({ op: "gate", in: gatedQuery.gate, on: buffers.attended, activation: "sigmoid" });
  builder.project(
    buffers.attended,
    [
      {
        name: `${name}.${names.output}`,
        rows: hiddenSize,
        bias: options.outputBias ?? config.attentionOutputBias ?? false,
      },
    ],
    qWidth,
    buffers.update,
  );
  builder.scale(buffers.update, scales?.output);
}

/** down(activation(gate(x)) * up(x)) */
function gatedMlp(
  builder: ProgramBuilder,
  names: DecoderNames,
  buffers: DecoderBuffers,
  input: BufferRef,
  layer: number,
  { isFused = false, scales }: GatedMlpOptions,
): void {
  const { hiddenSize, intermediateSize, hiddenActivation, mlpBias: bias } = builder.config;
  const name = `model.layers.${layer}`;
  const projections = isFused
    ? [{ name: `${name}.${names.gateUp}`, rows: 2 * intermediateSize, bias }]
    : [
        { name: `${name}.${names.gate}`, rows: intermediateSize, bias },
        { name: `${name}.${names.up}`, rows: intermediateSize, bias },
      ];
  builder.project(input, projections, hiddenSize, buffers.gateUp);
  builder.scale({ ...buffers.gateUp, column: 0, width: intermediateSize }, scales?.gate);
  builder.add({
    op: "gated_activation",
    in: buffers.gateUp,
    out: buffers.activated,
    activation: hiddenActivation,
  });
  builder.project(
    buffers.activated,
    [{ name: `${name}.${names.down}`, rows: hiddenSize, bias }],
    intermediateSize,
    buffers.update,
  );
  builder.scale(buffers.update, scales?.output);
}
