import type { ModelConfig } from "../program/model-config.js";
import type { ModelPlan } from "../program/model-plan.js";
import type { TensorInfo } from "../checkpoint/checkpoint.js";
import { addLayerNorm, encoderAttention, encoderBuffers } from "../program/encoder-layers.js";
import { ProgramBuilder } from "../program/program-builder.js";
import type { VisionConfig } from "./vision-config.js";
import { towerConfig } from "./tower-config.js";

/**
 * Patches in, rows of the decoder's stream out. A step holds an image: it receives its patches' pixels, the patches that become one
 * token side by side, positions saying where they lie; each output row pools those of one token.
 * @param text of which only what sizes do not say is taken
 * @param tensors undefined where the shapes alone are wanted
 */
export function planSiglip(
  vision: VisionConfig,
  text: ModelConfig,
  tensors: ReadonlyMap<string, TensorInfo> | undefined,
): ModelPlan {
  const { hiddenSize, intermediateSize, outSize } = vision;
  const numPatches = vision.patchesPerSide ** 2;
  const builder = new ProgramBuilder(
    towerConfig({ ...vision, maxPatches: vision.patchesPerSide ** 2 }, text),
    tensors,
  );
  const buffers = encoderBuffers(builder);
  const { stream, normed, update, qkv, attended } = buffers;
  const numPixels = vision.numChannels * vision.patchSize ** 2;
  const pixels = builder.buffer(numPixels);
  builder.add({ op: "receive", out: pixels });
  const embedding = { name: "embeddings.patch_embedding", rows: hiddenSize, bias: true };
  builder.project(pixels, [embedding], numPixels, stream);
  const positions = builder.matrix("embeddings.position_embedding.weight", numPatches, hiddenSize);
  builder.add({ op: "embedding", weight: positions, out: update, of: "position" });
  const inner = builder.buffer(intermediateSize);
  const linear = (name: string, input: typeof stream, out: typeof stream): void =>
    builder.project(input, [{ name, rows: out.width ?? 0, bias: true }], input.width ?? 0, out);
  // Each norm adds what was made before it to the stream.
  const norm = (name: string): void =>
    addLayerNorm(builder, name, [update, normed], { hasBias: true, residual: stream });
  for (let layer = 0; layer < vision.numLayers; layer++) {
    const name = `encoder.layers.${layer}`;
    norm(`${name}.layer_norm1`);
    const projections = ["q_proj", "k_proj", "v_proj"].map((part) => ({
      name: `${name}.self_attn.${part}`,
      rows: hiddenSize,
      bias: true,
    }));
    builder.project(normed, projections, hiddenSize, qkv);
    encoderAttention(builder, buffers, layer, false);
    linear(`${name}.self_attn.out_proj`, attended, update);
    norm(`${name}.layer_norm2`);
    linear(`${name}.mlp.fc1`, normed, inner);
    builder.add({ op: "activation", on: inner, activation: vision.activation });
    linear(`${name}.mlp.fc2`, inner, update);
  }
  norm("post_layernorm");
  const pooled = builder.buffer(hiddenSize);
  builder.add({ op: "gather", in: normed, out: pooled });
  builder.norm("mm_soft_emb_norm.weight", pooled, pooled, { weightOffset: 1 });
  const out = builder.buffer(outSize);
  builder.project(pooled, [{ name: "mm_input_projection", rows: outSize }], hiddenSize, out);
  return builder.finish(out);
}
