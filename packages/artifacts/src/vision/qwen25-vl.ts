import type { BufferRef } from "@octavo/kernels";
import type { TensorInfo } from "../checkpoint/checkpoint.js";
import { encoderAttention, encoderBuffers } from "../program/encoder-layers.js";
import type { ModelConfig } from "../program/model-config.js";
import type { ModelPlan } from "../program/model-plan.js";
import { ProgramBuilder } from "../program/program-builder.js";
import type { Qwen25VisionConfig } from "./qwen25-vision.js";
import { columnAxis, patchRope, rowAxis } from "./patch-rope.js";
import { towerConfig } from "./tower-config.js";

const normEps = 1e-6;

/**
 * Some layers: the stream in and out, but pixels in before the first layer, and what the merger reads out behind the last. Patches see those of
 * their sequence; heads rotate by a patch's row and column, which are the step's axes 1 and 2.
 * @param text of which only what sizes do not say is taken
 * @param tensors undefined where the shapes alone are wanted
 */
export function planQwen25Layers(
  vision: Qwen25VisionConfig,
  text: ModelConfig,
  tensors: ReadonlyMap<string, TensorInfo> | undefined,
  maxPatches: number,
  { first, end }: { readonly first: number; readonly end: number },
): ModelPlan {
  const { hiddenSize, intermediateSize, numHeads, patchSize, moments } = vision;
  const builder = new ProgramBuilder(towerConfig({ ...vision, normEps, maxPatches }, text), tensors);
  const buffers = encoderBuffers(builder);
  const { stream, normed, update, qkv, attended } = buffers;
  const linear = (names: readonly string[], input: BufferRef, out: BufferRef, bias = true): void => {
    const rows = (out.width ?? 0) / names.length;
    builder.project(
      input,
      names.map((name) => ({ name, rows, bias })),
      input.width ?? 0,
      out,
    );
  };
  if (first === 0) {
    const pixels = builder.buffer(3 * moments * patchSize ** 2);
    builder.add({ op: "receive", out: pixels });
    linear(["patch_embed.proj"], pixels, stream, false);
  } else builder.add({ op: "receive", out: stream });
  let isAhead = false;
  // Each norm but the first adds what was made before it to the stream.
  const norm = (name: string): void => {
    builder.add({
      op: "rms_norm",
      in: isAhead ? update : stream,
      weight: builder.vector(`${name}.weight`, hiddenSize),
      out: normed,
      eps: normEps,
      ...(isAhead && { residual: stream }),
    });
    isAhead = true;
  };
  const headDim = hiddenSize / numHeads;
  const gateUp = builder.buffer(2 * intermediateSize);
  const inner = builder.buffer(intermediateSize);
  for (let layer = first; layer < end; layer++) {
    const name = `blocks.${layer}`;
    norm(`${name}.norm1`);
    linear([`${name}.attn.qkv`], normed, qkv);
    const on = { ...qkv, column: 0, width: 2 * hiddenSize };
    builder.add({ op: "rope", on, headDim, rope: patchRope(headDim, 10_000, [rowAxis, columnAxis]) });
    encoderAttention(builder, buffers, layer, false);
    linear([`${name}.attn.proj`], attended, update);
    norm(`${name}.norm2`);
    linear([`${name}.mlp.gate_proj`, `${name}.mlp.up_proj`], normed, gateUp);
    builder.add({ op: "gated_activation", in: gateUp, out: inner, activation: "silu" });
    linear([`${name}.mlp.down_proj`], inner, update);
  }
  if (end === vision.numLayers) {
    norm("merger.ln_q");
    builder.add({ op: "send", in: normed });
    return builder.finish(normed);
  }
  builder.add({ op: "add", in: update, out: stream });
  builder.add({ op: "send", in: stream });
  return builder.finish(stream);
}

/** Rows of patches that become one token, side by side in one, in; rows of the decoder's stream out. */
export function planQwen25Merger(
  vision: Qwen25VisionConfig,
  text: ModelConfig,
  tensors: ReadonlyMap<string, TensorInfo> | undefined,
  maxPatches: number,
): ModelPlan {
  const builder = new ProgramBuilder(towerConfig({ ...vision, normEps, maxPatches }, text), tensors);
  const width = vision.hiddenSize * vision.poolSize ** 2;
  const [input, inner, out] = [builder.buffer(width), builder.buffer(width), builder.buffer(vision.outSize)];
  builder.add({ op: "receive", out: input });
  builder.project(input, [{ name: "merger.mlp.0", rows: width, bias: true }], width, inner);
  builder.add({ op: "activation", on: inner, activation: "gelu" });
  builder.project(inner, [{ name: "merger.mlp.2", rows: vision.outSize, bias: true }], width, out);
  builder.add({ op: "send", in: out });
  return builder.finish(out);
}
