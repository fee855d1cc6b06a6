import type { BufferRef } from "@octavo/kernels";
import type { TensorInfo } from "../checkpoint/checkpoint.js";
import { encoderAttention, encoderBuffers } from "../program/encoder-layers.js";
import type { ModelConfig } from "../program/model-config.js";
import type { MatrixPlan, ModelPlan, VectorPlan } from "../program/model-plan.js";
import { ProgramBuilder } from "../program/program-builder.js";
import { rowsByRun } from "../program/row-runs.js";
import type { Gemma4VisionConfig } from "./gemma4-vision.js";
import { columnAxis, patchRope, rowAxis } from "./patch-rope.js";
import { towerConfig } from "./tower-config.js";

/** Where a linear's bounds stand beside its `linear.weight`. */
export const boundNames = ["input_min", "input_max", "output_min", "output_max"] as const;

/** Values of the bounds, by their tensors' names. */
export type ClipBounds = ReadonlyMap<string, number>;

/**
 * Patches in, rows of the decoder's stream out (modeling_gemma4.py). A step holds an image: it receives its patches' pixels, between -1 and
 * 1, then what is added to their embeddings for their positions; patches that become one token side by side, each with its row and column
 * on the step's axes. Each output row pools those of one token.
 * @param text of which only what sizes do not say is taken
 * @param tensors undefined where the shapes alone are wanted
 */
export function planGemma4Tower(
  vision: Gemma4VisionConfig,
  text: ModelConfig,
  tensors: ReadonlyMap<string, TensorInfo> | undefined,
  maxPatches: number,
  bounds: ClipBounds = new Map(),
): ModelPlan {
  const { hiddenSize, intermediateSize: inner, numHeads, patchSize, outSize } = vision;
  const headDim = hiddenSize / numHeads;
  const builder = new ProgramBuilder(towerConfig({ ...vision, maxPatches }, text), tensors);
  const buffers = encoderBuffers(builder);
  const { stream, normed, update, qkv, attended } = buffers;
  const [gateUp, activated] = [builder.buffer(2 * inner), builder.buffer(inner)];
  const part = (of: BufferRef, index: number, width: number): BufferRef => ({
    ...of,
    column: index * width,
    width,
  });
  const clip = (on: BufferRef, name: string, side: "input" | "output"): void => {
    const [least = -Infinity, most = Infinity] = ["min", "max"].map((end) =>
      bounds.get(`${name}.${side}_${end}`),
    );
    if (least > -Infinity || most < Infinity) builder.add({ op: "clamp", on, least, limit: most });
  };
  const linear = (name: string, input: BufferRef, out: BufferRef, weight?: MatrixPlan): void => {
    clip(input, name, "input");
    const [rows, cols] = [out.width ?? 0, input.width ?? 0];
    if (weight !== undefined) builder.add({ op: "linear", in: input, weight, out });
    else builder.project(input, [{ name: `${name}.linear`, rows }], cols, out);
    clip(out, name, "output");
  };
  /** Adds `update` to the stream and normalises it; what comes back does the latter again, for a linear that bounds it in another way. */
  const norm = (name: string): (() => void) => {
    const weight = builder.vector(`${name}.weight`, hiddenSize);
    const own = { op: "rms_norm", weight, out: normed, eps: vision.normEps } as const;
    builder.add({ ...own, in: update, residual: stream });
    return () => {
      if (vision.clips) builder.add({ ...own, in: stream });
    };
  };
  const { patched, patchedVector } = rotatedQuarters(builder, numHeads, headDim);

  const numPixels = 3 * patchSize ** 2;
  const pixels = builder.buffer(numPixels);
  builder.add({ op: "receive", out: pixels });
  builder.add({ op: "receive", out: update });
  builder.project(pixels, [{ name: "patch_embedder.input_proj", rows: hiddenSize }], numPixels, stream);
  for (let layer = 0; layer < vision.numLayers; layer++) {
    const at = (name: string): string => `encoder.layers.${layer}.${name}`;
    const normAgain = norm(at("input_layernorm"));
    for (const [index, name] of ["q_proj", "k_proj", "v_proj"].entries()) {
      if (index > 0) normAgain();
      const whole = at(`self_attn.${name}`);
      const weight = index < 2 ? patched(`${whole}.linear.weight`) : undefined;
      linear(whole, normed, part(qkv, index, hiddenSize), weight);
    }
    for (const [index, name] of ["q_norm", "k_norm"].entries()) {
      const on = part(qkv, index, hiddenSize);
      const weight = patchedVector(at(`self_attn.${name}.weight`));
      builder.add({ op: "rms_norm", in: on, weight, out: on, eps: vision.normEps, groupSize: headDim });
    }
    const values = part(qkv, 2, hiddenSize);
    builder.plainNorm(values, values, headDim);
    const on = { ...qkv, column: 0, width: 2 * hiddenSize };
    builder.add({
      op: "rope",
      on,
      headDim,
      rope: patchRope(headDim, vision.ropeTheta, [columnAxis, rowAxis]),
    });
    encoderAttention(builder, buffers, layer, false, 1);
    linear(at("self_attn.o_proj"), attended, update);
    builder.norm(at("post_attention_layernorm.weight"), update, update);
    const innerAgain = norm(at("pre_feedforward_layernorm"));
    linear(at("mlp.gate_proj"), normed, part(gateUp, 0, inner));
    innerAgain();
    linear(at("mlp.up_proj"), normed, part(gateUp, 1, inner));
    builder.add({ op: "gated_activation", in: gateUp, out: activated, activation: vision.activation });
    linear(at("mlp.down_proj"), activated, update);
    builder.norm(at("post_feedforward_layernorm.weight"), update, update);
  }
  builder.add({ op: "add", in: update, out: stream });
  builder.scale(stream, Math.sqrt(hiddenSize));
  if (vision.standardizes) {
    // Before the mean rather than behind it, where a row is all that an op has.
    const every = (name: string): void => {
      const weight = builder.matrix(name, 1, hiddenSize);
      builder.add({ op: "embedding", weight, out: normed, of: "type" });
    };
    every("std_bias");
    builder.scale(normed, -1);
    builder.add({ op: "add", in: normed, out: stream });
    every("std_scale");
    builder.add({ op: "gate", in: normed, on: stream, activation: "identity" });
  }
  const pooled = builder.buffer(hiddenSize);
  builder.add({ op: "gather", in: stream, out: pooled });
  builder.plainNorm(pooled, pooled, hiddenSize);
  const out = builder.buffer(outSize);
  builder.project(pooled, [{ name: "embedding_projection", rows: outSize }], hiddenSize, out);
  return builder.finish(out);
}

/**
 * The rotation takes pairs of a head that lie half a head apart, but here those by the column lie in its first half and those by the row in
 * its second: the two quarters in the middle change places, of queries, keys and their norms alike, so that scores stay as they are.
 */
function rotatedQuarters(
  builder: ProgramBuilder,
  numHeads: number,
  headDim: number,
): {
  readonly patched: (name: string) => MatrixPlan;
  readonly patchedVector: (name: string) => VectorPlan;
} {
  const { hiddenSize } = builder.config;
  const exchanged = (tensor: TensorInfo, heads: number): TensorInfo[] => {
    const quarters = rowsByRun(tensor, { count: 4 * heads, sizes: [headDim / 4] }, [0]);
    return quarters.flatMap((quarter, at) => quarters[at + ([0, 1, -1, 0][at % 4] ?? 0)] ?? quarter);
  };
  return {
    patched: (name) => ({
      kind: "matrix",
      rows: hiddenSize,
      cols: hiddenSize,
      sources: exchanged(builder.tensor(name, [hiddenSize, hiddenSize]), numHeads),
    }),
    patchedVector: (name) => {
      const { sources, length } = builder.vector(name, headDim);
      return { kind: "vector", length, sources: sources.flatMap((source) => exchanged(source, 1)) };
    },
  };
}
