import type { BufferRef } from "@octavo/kernels";
import { sightOf } from "./encoder-layers.js";
import { type BlockNorms, type DecoderBuffers, type DecoderNames, headsOfLayer } from "./layer-shape.js";
import type { ProgramBuilder } from "./program-builder.js";
import { ropeSpec, unrotated } from "./rope.js";

export interface AttentionOptions {
  /** Which projections have a bias; default as configured. */
  readonly qkvBias?: boolean | undefined;
  readonly outputBias?: boolean | undefined;
  /** RMS norm of q and k before rotation: of each head (Qwen3) or of all heads together (OLMo 2). */
  readonly queryKeyNorm?: "head" | "whole" | undefined;
  /** RMS norm of each head's q and k after rotation, without weights, in layers that rotate (Llama 4). */
  readonly rotatedNorm?: boolean | undefined;
  /** RMS norm of each head's v, without weights (Gemma 4). */
  readonly valueNorm?: boolean | undefined;
  /** Tokens of images see each other in layers with a window alone (Gemma 4). */
  readonly seesImagesInWindows?: boolean | undefined;
  /** q, k and v are one tensor, `qkv_proj` (Phi-3). */
  readonly isFused?: boolean | undefined;
  /** `sinks`: a score per head that joins its softmax (GPT-OSS). */
  readonly sinks?: boolean | undefined;
  readonly norms?: BlockNorms | undefined;
  /** Multiply q, k and v; k once more; and what the block gives. */
  readonly scales?: { readonly input: number; readonly key: number; readonly output: number };
}

/** Projections, rotation and attention over the KV cache; grouped queries where there are fewer kv heads. */
export function attention(
  builder: ProgramBuilder,
  names: DecoderNames,
  buffers: DecoderBuffers,
  input: BufferRef,
  { layer, cacheLayer }: { readonly layer: number; readonly cacheLayer: number },
  options: AttentionOptions,
): void {
  const { config } = builder;
  const { numHeads, hiddenSize } = config;
  const { headDim, numKvHeads, valuesAreKeys, sharesWith } = headsOfLayer(config, layer);
  const name = `model.layers.${layer}.${names.attention}`;
  const qWidth = numHeads * headDim;
  const kvWidth = numKvHeads * headDim;
  const { buffer } = buffers.qkv;
  const q: BufferRef = { buffer, column: 0, width: qWidth };
  const k: BufferRef = { buffer, column: qWidth, width: kvWidth };
  const v: BufferRef = { buffer, column: qWidth + kvWidth, width: kvWidth };

  const bias = options.qkvBias ?? config.attentionBias;
  const isOwn = sharesWith === undefined;
  const hasValues = !(valuesAreKeys ?? !builder.has(`${name}.v_proj.weight`));
  const keysAndValues = [
    ...(isOwn ? [{ name: `${name}.k_proj`, rows: kvWidth, bias }] : []),
    ...(isOwn && hasValues ? [{ name: `${name}.v_proj`, rows: kvWidth, bias }] : []),
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
  if (isOwn && options.valueNorm === true) builder.plainNorm(hasValues ? v : k, v, headDim);
  if (queryKeyNorm !== undefined) {
    const group = queryKeyNorm === "head" ? { groupSize: headDim } : {};
    builder.norm(`${name}.${names.queryNorm}.weight`, q, q, group);
    if (isOwn) builder.norm(`${name}.${names.keyNorm}.weight`, k, k, group);
  }
  if (config.attentionClip !== undefined)
    builder.add({ op: "clamp", on: buffers.qkv, limit: config.attentionClip });
  const slidingWindow = config.slidingWindows[layer];
  const rope = slidingWindow === undefined ? config.rope : (config.localRope ?? config.rope);
  const rotates = config.layersWithoutRope?.[layer] !== true;
  const { queryGrowth: growth } = config;
  const spec = rotates ? ropeSpec(rope, config.maxPositionEmbeddings) : unrotated(headDim);
  // q and k are neighbours, so one pass takes the heads of both.
  const both = { buffer, column: 0, width: isOwn ? qWidth + kvWidth : qWidth };
  if (growth !== undefined && (growth.isWithoutRope ?? false) === !rotates) {
    builder.add({ op: "rope", on: q, headDim, rope: { ...spec, growth } });
    if (rotates && isOwn) builder.add({ op: "rope", on: k, headDim, rope: spec });
  } else if (rotates) builder.add({ op: "rope", on: both, headDim, rope: spec });
  if (rotates && options.rotatedNorm === true) builder.plainNorm(both, both, headDim);
  builder.add({
    op: "attention",
    q,
    ...(isOwn && { k, v }),
    out: buffers.attended,
    layer: cacheLayer,
    numHeads,
    numKvHeads,
    headDim,
    scale: config.attentionScale ?? 1 / Math.sqrt(headDim),
    ...(config.attentionSoftCap !== undefined && { softCap: config.attentionSoftCap }),
    ...(slidingWindow !== undefined &&
      (config.windowsAreChunks === true ? { chunk: slidingWindow } : { slidingWindow })),
    ...(options.seesImagesInWindows === true && slidingWindow === undefined && { isCausal: true as const }),
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
