import type { BufferRef } from "@octavo/kernels";
import type { TensorInfo } from "../checkpoint/checkpoint.js";
import { addLayerNorm, encoderAttention, encoderBuffers } from "../program/encoder-layers.js";
import type { ModelConfig } from "../program/model-config.js";
import type { ModelPlan } from "../program/model-plan.js";
import { ProgramBuilder } from "../program/program-builder.js";
import type { Qwen3VisionConfig } from "./qwen3-vision.js";
import { columnAxis, patchRope, rowAxis } from "./patch-rope.js";
import { towerConfig } from "./tower-config.js";

const normEps = 1e-6;

/**
 * Patches in, rows of the tapped layers and of the last one out. Received are patches' pixels, then what is added to their embeddings for
 * their positions; patches that become one token side by side. Heads rotate by a patch's row and column, which are the step's axes 1 and 2.
 * @param text of which only what sizes do not say is taken
 * @param tensors undefined where the shapes alone are wanted
 */
export function planQwen3Tower(
  vision: Qwen3VisionConfig,
  text: ModelConfig,
  tensors: ReadonlyMap<string, TensorInfo> | undefined,
  maxPatches: number,
): ModelPlan {
  const { hiddenSize, intermediateSize, numHeads, patchSize, moments } = vision;
  const builder = new ProgramBuilder(towerConfig({ ...vision, normEps, maxPatches }, text), tensors);
  const buffers = encoderBuffers(builder);
  const { stream, normed, update, qkv, attended } = buffers;
  const numPixels = 3 * moments * patchSize ** 2;
  const pixels = builder.buffer(numPixels);
  builder.add({ op: "receive", out: pixels });
  builder.add({ op: "receive", out: update });
  const linear = (name: string, input: BufferRef, out: BufferRef): void =>
    builder.project(input, [{ name, rows: out.width ?? 0, bias: true }], input.width ?? 0, out);
  linear("patch_embed.proj", pixels, stream);
  // Each norm adds what was made before it to the stream.
  const norm = (name: string): void =>
    addLayerNorm(builder, name, [update, normed], { hasBias: true, residual: stream });
  const headDim = hiddenSize / numHeads;
  const inner = builder.buffer(intermediateSize);
  for (let layer = 0; layer < vision.numLayers; layer++) {
    const name = `blocks.${layer}`;
    norm(`${name}.norm1`);
    linear(`${name}.attn.qkv`, normed, qkv);
    const on = { ...qkv, column: 0, width: 2 * hiddenSize };
    builder.add({ op: "rope", on, headDim, rope: patchRope(headDim, 10_000, [rowAxis, columnAxis]) });
    encoderAttention(builder, buffers, layer, false);
    linear(`${name}.attn.proj`, attended, update);
    norm(`${name}.norm2`);
    linear(`${name}.mlp.linear_fc1`, normed, inner);
    builder.add({ op: "activation", on: inner, activation: vision.activation });
    linear(`${name}.mlp.linear_fc2`, inner, update);
    if (!vision.tappedLayers.includes(layer)) continue;
    builder.add({ op: "add", in: update, out: stream });
    builder.add({ op: "send", in: stream });
    builder.scale(update, 0);
  }
  norm("merger.norm");
  builder.add({ op: "send", in: normed });
  return builder.finish(normed);
}

/** Rows of patches that become one token, side by side in one, in: first those of the last layer; rows of the decoder's stream out. */
export function planQwen3Mergers(
  vision: Qwen3VisionConfig,
  text: ModelConfig,
  tensors: ReadonlyMap<string, TensorInfo> | undefined,
  maxPatches: number,
): ModelPlan {
  const builder = new ProgramBuilder(towerConfig({ ...vision, normEps, maxPatches }, text), tensors);
  const width = vision.hiddenSize * vision.poolSize ** 2;
  const input = builder.buffer(width);
  const inner = builder.buffer(width);
  const out = builder.buffer(vision.outSize);
  const merge = (name: string): void => {
    builder.project(input, [{ name: `${name}.linear_fc1`, rows: width, bias: true }], width, inner);
    builder.add({ op: "activation", on: inner, activation: "gelu" });
    builder.project(inner, [{ name: `${name}.linear_fc2`, rows: vision.outSize, bias: true }], width, out);
    builder.add({ op: "send", in: out });
  };
  builder.add({ op: "receive", out: input });
  merge("merger");
  for (const at of vision.tappedLayers.keys()) {
    const name = `deepstack_merger_list.${at}`;
    builder.add({ op: "receive", out: input });
    builder.add({
      op: "layer_norm",
      in: input,
      weight: builder.vector(`${name}.norm.weight`, width),
      bias: builder.vector(`${name}.norm.bias`, width),
      out: input,
      eps: normEps,
    });
    merge(name);
  }
  return builder.finish(out);
}
