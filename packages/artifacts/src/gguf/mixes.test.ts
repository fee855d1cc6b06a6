import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { fittingGgufType, ggmlLayoutOf, ggufMixes, type GgufMixType, type MixedMatrix } from "./mixes.js";
import { mixtralFamily } from "../families/mixtral.js";
import { qwen2MoeFamily } from "../families/qwen2-moe.js";
import { ggufPlace, phi3LayerNames } from "./names.js";

function typeOf(mix: string, kind: string, more: Partial<MixedMatrix> = {}): GgufMixType | undefined {
  return ggufMixes.get(mix)?.typeOf({
    kind: `${kind}.weight`,
    layer: 12,
    numLayers: 32,
    tiedEmbeddings: false,
    headsPerKv: 4,
    numExperts: 0,
    ...more,
  });
}

describe("llama.cpp's mixes", () => {
  it("spend more on values and down projections of some layers", () => {
    const layers = Array.from({ length: 32 }, (_, layer) => layer);
    const finer = layers.filter((layer) => typeOf("Q4_K_M", "attn_v", { layer }) === "Q6_K");
    assert.deepEqual(finer, [0, 1, 2, 3, 6, 9, 12, 15, 18, 21, 24, 27, 28, 29, 30, 31]);
    assert.equal(typeOf("Q4_K_M", "ffn_up"), "Q4_K");
    assert.equal(typeOf("Q5_K_M", "ffn_down"), "Q6_K");
    assert.equal(typeOf("Q3_K_M", "attn_output"), "Q4_K");
    assert.equal(typeOf("Q2_K", "attn_v"), "Q4_K");
    assert.equal(typeOf("Q2_K", "attn_v", { headsPerKv: 2 }), "Q3_K");
  });

  it("treat fused q, k and v as v, and experts' matrices as those of a plain MLP", () => {
    assert.equal(typeOf("Q4_K_M", "attn_qkv"), typeOf("Q4_K_M", "attn_v"));
    for (const kind of ["ffn_down_exps", "ffn_down_shexp"]) {
      assert.equal(typeOf("Q4_K_M", kind, { numExperts: 64 }), "Q6_K");
    }
    assert.equal(typeOf("Q4_K_M", "ffn_up_exps", { numExperts: 64 }), "Q4_K");
  });

  it("keep the attention of models with eight experts fine, and the values of 70B models", () => {
    const eightExperts = { numExperts: 8 };
    assert.equal(typeOf("Q4_K_M", "attn_v", eightExperts), "Q8_0");
    assert.equal(typeOf("Q2_K", "attn_k", eightExperts), "Q8_0");
    assert.equal(typeOf("Q4_0", "attn_k", eightExperts), "Q8_0");
    assert.equal(typeOf("Q4_K_M", "attn_output", eightExperts), "Q5_K");
    assert.equal(typeOf("Q3_K_S", "attn_output", eightExperts), "Q5_K");
    assert.equal(typeOf("Q5_K_M", "attn_output", eightExperts), "Q5_K");
    assert.equal(typeOf("Q3_K_L", "attn_output", eightExperts), "Q3_K");
    assert.equal(typeOf("Q4_K_M", "attn_q", eightExperts), "Q4_K");
    assert.equal(typeOf("F16", "attn_v", eightExperts), "F16");
    const large = { layer: 13, numLayers: 80, headsPerKv: 8 };
    assert.equal(typeOf("Q4_K_M", "attn_v", large), "Q5_K");
    assert.equal(typeOf("Q4_K_M", "attn_v", { ...large, headsPerKv: 1 }), "Q4_K");
  });

  it("trust an importance matrix with the first down projections of IQ4, and not with those of Q4_0", () => {
    const early = { layer: 3 };
    assert.equal(typeOf("IQ4_XS", "ffn_down", early), "Q5_K");
    assert.equal(typeOf("IQ4_XS", "ffn_down", { ...early, hasImportance: true }), "IQ4_XS");
    assert.equal(typeOf("IQ4_XS", "ffn_down", { layer: 4 }), "IQ4_XS");
    assert.equal(typeOf("IQ4_NL", "attn_v"), "Q5_K");
    assert.equal(typeOf("IQ4_NL", "attn_v", { headsPerKv: 3 }), "IQ4_NL");
    assert.equal(typeOf("Q4_0", "ffn_down", early), "Q4_0");
    assert.equal(typeOf("Q4_0", "ffn_down", { ...early, hasImportance: true }), "Q4_1");
    assert.equal(typeOf("Q5_0", "ffn_down", { layer: 4, hasImportance: true }), "Q5_0");
    assert.equal(fittingGgufType("IQ4_XS", 896), "IQ4_NL");
  });

  it("keep the head, or the embedding that serves as one, in Q6_K", () => {
    assert.equal(typeOf("Q4_K_M", "output"), "Q6_K");
    assert.equal(typeOf("Q4_K_M", "token_embd"), "Q4_K");
    assert.equal(typeOf("Q2_K", "token_embd", { tiedEmbeddings: true }), "Q6_K");
    assert.equal(typeOf("Q8_0", "output"), "Q8_0");
    assert.equal(typeOf("BF16", "output"), "BF16");
  });

  it("replace blocks that a row is no multiple of", () => {
    assert.equal(fittingGgufType("Q4_K", 512), "Q4_K");
    assert.equal(fittingGgufType("Q4_K", 896), "Q5_0");
    assert.equal(fittingGgufType("Q6_K", 896), "Q8_0");
    assert.equal(fittingGgufType("Q2_K", 96), "IQ4_NL");
    assert.equal(fittingGgufType("Q4_K", 24), "F16");
    assert.equal(fittingGgufType("Q8_0", 24), "F16");
    assert.deepEqual([ggmlLayoutOf("Q4_K").blockElements, ggmlLayoutOf("Q4_K").blockBytes], [256, 144]);
  });
});

describe("places in GGUF files", () => {
  it("of experts, in tensors that hold those of all", () => {
    assert.deepEqual(
      ggufPlace("model.layers.3.block_sparse_moe.experts.11.w2.weight", mixtralFamily.gguf!.layerNames),
      {
        name: "blk.3.ffn_down_exps.weight",
        expert: 11,
      },
    );
    assert.deepEqual(
      ggufPlace("model.layers.0.mlp.shared_expert.up_proj.weight", qwen2MoeFamily.gguf!.layerNames),
      {
        name: "blk.0.ffn_up_shexp.weight",
      },
    );
    assert.deepEqual(ggufPlace("model.layers.0.mlp.gate_up_proj.weight", phi3LayerNames), {
      name: "blk.0.ffn_up.weight",
    });
    assert.equal(
      ggufPlace("model.layers.0.mlp.experts.1.up_proj.weight", mixtralFamily.gguf!.layerNames),
      undefined,
    );
  });
});
