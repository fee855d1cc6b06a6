import type { BufferRef } from "@octavo/kernels";
import { OctavoError } from "@octavo/protocol/errors";
import { attention, type AttentionOptions } from "./attention-layer.js";
import {
  type BlockNorms,
  type DecoderBuffers,
  type DecoderNames,
  headsOfLayer,
  innerSizeOf,
  layerBuffers,
  llamaNames,
} from "./layer-shape.js";
import {
  type ExpertBuffers,
  type ExpertNames,
  expertBuffers,
  mixtureOfExperts,
} from "./mixture-of-experts.js";
import { finishEncoder, headLinear, logitMargin } from "./encoder-layers.js";
import type { LayerMixer } from "./recurrent-layers.js";
import type { ModelPlan } from "./model-plan.js";
import type { ProgramBuilder } from "./program-builder.js";

interface GatedMlpOptions {
  /** gate and up are one tensor, `gate_up_proj` (Phi-3). */
  readonly isFused?: boolean | undefined;
  readonly norms?: BlockNorms | undefined;
  /** Multiply the gate, and what the block gives. */
  readonly scales?: { readonly gate: number; readonly output: number };
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
  /** Multiplies the stream by the one value of the layer's tensor, if there is one. */
  scaleStream(name: string): void;
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
    onEmbedded,
  }: {
    readonly hasGatedHeads?: boolean;
    readonly names?: Partial<DecoderNames>;
    /** Records what the layers need beside the embedded tokens. */
    readonly onEmbedded?: (embedded: BufferRef) => void;
  } = {},
): ModelPlan {
  const names: DecoderNames = { ...llamaNames, ...ownNames };
  const { config } = builder;
  const { hiddenSize, vocabSize } = config;
  const buffersOf = layerBuffers(builder, hasGatedHeads);
  const buffers = buffersOf(0);
  let forExperts: ExpertBuffers | undefined;
  const embedding = builder.matrix("model.embed_tokens.weight", vocabSize, hiddenSize);
  builder.add({
    op: "embedding",
    weight: embedding,
    out: buffers.residual,
    takesGiven: true,
    ...(config.embeddingScale !== undefined && { scale: config.embeddingScale }),
  });

  onEmbedded?.(buffers.residual);
  let pendingUpdate = false;
  /** Layers of the cache so far, and that of each layer with attention: the cache keeps keys and values of those alone. */
  let numCacheLayers = 0;
  const cacheLayers: number[] = [];
  const attend = (input: BufferRef, index: number, options: AttentionOptions = {}): void => {
    const { sharesWith } = headsOfLayer(config, index);
    const cacheLayer = sharesWith === undefined ? numCacheLayers : (cacheLayers[sharesWith] ?? 0);
    cacheLayers[index] = cacheLayer;
    attention(builder, names, buffersOf(index), input, { layer: index, cacheLayer }, options);
    // An encoder's layers take turns in the first.
    if (sharesWith === undefined && config.encoder === undefined) numCacheLayers += 1;
  };
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
          attend(enter(named(before)), index, options);
          leave(named(after));
        },
        gatedMlp: (options = {}) => {
          const { before, after } = options.norms ?? { before: names.secondNorm };
          gatedMlp(builder, names, buffersOf(index), enter(named(before)), index, options);
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
          forExperts ??= config.experts && expertBuffers(builder, config.experts);
          if (forExperts !== undefined)
            mixtureOfExperts(builder, forExperts, expertNames, index, input, buffers.update);
          leave(undefined);
        },
        mixer: (mix, { before, after } = { before: names.firstNorm }) => {
          mix(enter(named(before)), buffers.update, index);
          leave(named(after));
        },
        scaleStream: (name) => {
          const whole = `model.layers.${index}.${name}`;
          if (!builder.mayHave(whole)) return;
          enter(undefined);
          pendingUpdate = false;
          builder.add({ op: "scale", on: buffers.residual, factor: 1, by: builder.flatVector(whole, 1) });
        },
        attentionBeside: (mix, options = {}) => {
          const input = enter(named(names.firstNorm));
          attend(input, index, options);
          second ??= builder.buffer(hiddenSize);
          mix(input, second, index);
          builder.add({ op: "add", in: second, out: buffers.update });
          leave(undefined);
        },
        parallel: () => {
          const input = enter(named(names.firstNorm));
          attend(input, index);
          second ??= builder.buffer(hiddenSize);
          gatedMlp(builder, names, { ...buffersOf(index), update: second }, input, index, {});
          builder.add({ op: "add", in: second, out: buffers.update });
          leave(undefined);
        },
      },
      index,
    );
    if (index >= (config.numTappedLayers ?? 0)) continue;
    if (!pendingUpdate)
      throw new OctavoError("internal_error", "A layer that images add to leaves no update.");
    builder.add({ op: "add_given", on: buffers.update, index });
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

/** down(activation(gate(x)) * up(x)) */
function gatedMlp(
  builder: ProgramBuilder,
  names: DecoderNames,
  buffers: DecoderBuffers,
  input: BufferRef,
  layer: number,
  { isFused = false, scales }: GatedMlpOptions,
): void {
  const { hiddenSize, hiddenActivation, mlpBias: bias } = builder.config;
  const intermediateSize = innerSizeOf(builder.config, layer);
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
