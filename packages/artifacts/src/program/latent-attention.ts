import type { BufferRef } from "@octavo/kernels";
import { OctavoError } from "@octavo/protocol/errors";
import { latentHeads } from "./latent-heads.js";
import type { ProgramBuilder } from "./program-builder.js";
import type { LayerMixer } from "./recurrent-layers.js";
import { ropeSpec } from "./rope.js";

/**
 * Multi-head latent attention (arXiv 2405.04434, 2412.19437). A head's keys and values are products of the token's latent, so that they
 * need not be made: queries go through the head's key matrix instead (`absorbed`), all heads attend to the rotated key and the latent
 * behind it, and what a head gathers of latents goes through its value matrix. Prefill and decode are the same form, for the same bits.
 */
export function latentAttention(builder: ProgramBuilder): LayerMixer {
  const { hiddenSize, numHeads, latent, rope, maxPositionEmbeddings } = builder.config;
  if (latent === undefined)
    throw new OctavoError("internal_error", "Latent attention was planned without its sizes.");
  const { kvRank, queryRank, plainDim, rotatedDim, valueDim, normEps: eps } = latent;
  const keyDim = rotatedDim + kvRank;
  const queryWidth = numHeads * (plainDim + rotatedDim);
  const firstWidth = queryRank ?? queryWidth;

  /** What the input is projected to: queries or their low-rank form, the latent, the rotated key. */
  const down = builder.buffer(firstWidth + kvRank + rotatedDim);
  const first: BufferRef = { ...down, width: firstWidth };
  const latents: BufferRef = { ...down, column: firstWidth, width: kvRank };
  const rotated: BufferRef = { ...down, column: firstWidth + kvRank, width: rotatedDim };
  const queries = queryRank === undefined ? first : builder.buffer(queryWidth);
  /** The heads' absorbed queries, then the key: each its rotated part first. */
  const both = builder.buffer((numHeads + 1) * keyDim);
  const absorbed: BufferRef = { ...both, width: numHeads * keyDim };
  const [rotatedKey, latentKey] = [0, rotatedDim].map((column, part) => ({
    ...both,
    column: numHeads * keyDim + column,
    width: part === 0 ? rotatedDim : kvRank,
  })) as [BufferRef, BufferRef];
  const half = rotatedDim / 2;
  const gathered = builder.buffer(numHeads * kvRank);
  const attended = builder.buffer(numHeads * valueDim);
  const spec = ropeSpec(rope, maxPositionEmbeddings);

  return (input, update, layer) => {
    const name = `model.layers.${layer}.self_attn`;
    const { attentionBias: bias, attentionOutputBias = false, attentionScale } = builder.config;
    const isDirect = queryRank === undefined;
    builder.project(
      input,
      [
        { name: `${name}.${isDirect ? "q_proj" : "q_a_proj"}`, rows: firstWidth, bias: bias && !isDirect },
        { name: `${name}.kv_a_proj_with_mqa`, rows: kvRank + rotatedDim, bias },
      ],
      hiddenSize,
      down,
    );
    if (queryRank !== undefined) {
      builder.norm(`${name}.q_a_layernorm.weight`, first, first, { eps });
      builder.project(first, [{ name: `${name}.q_b_proj`, rows: queryWidth }], queryRank, queries);
    }
    builder.norm(`${name}.kv_a_layernorm.weight`, latents, latentKey, { eps });
    const parts = [0, half].map((column) => ({
      ...rotatedKey,
      column: (rotatedKey.column ?? 0) + column,
      width: half,
    }));
    const [low = rotatedKey, high = rotatedKey] = parts;
    builder.add({ op: "split", in: rotated, first: low, second: high, run: half });
    const { keys, values } = latentHeads(builder, name, latent);
    builder.add({ op: "head_linear", in: queries, weights: keys, passed: rotatedDim, out: absorbed });
    builder.add({ op: "rope", on: both, headDim: keyDim, rope: spec });
    builder.add({
      op: "attention",
      q: absorbed,
      k: { ...both, column: numHeads * keyDim, width: keyDim },
      valueDim: kvRank,
      out: gathered,
      layer,
      numHeads,
      numKvHeads: 1,
      headDim: keyDim,
      scale: attentionScale ?? 1 / Math.sqrt(plainDim + rotatedDim),
    });
    builder.add({ op: "head_linear", in: gathered, weights: values, out: attended });
    const output = { name: `${name}.o_proj`, rows: hiddenSize, bias: attentionOutputBias };
    builder.project(attended, [output], numHeads * valueDim, update);
  };
}
