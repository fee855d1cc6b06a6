import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { OctavoError } from "@octavo/protocol/errors";
import { openCheckpoint } from "../checkpoint/open-checkpoint.js";
import { tensorInfo, tensorsOf, tinyConfig } from "../testing/tiny-tensors.js";
import { planModel } from "./registry.js";

function throwsCode(code: string, pattern: RegExp): (error: unknown) => boolean {
  return (error) => error instanceof OctavoError && error.code === code && pattern.test(error.message);
}

describe("planModel", () => {
  test("plans the layers of a checkpoint", () => {
    for (const architecture of [
      "LlamaForCausalLM",
      "MistralForCausalLM",
      "Qwen2ForCausalLM",
      "Qwen3ForCausalLM",
    ]) {
      const model = { ...tinyConfig, architecture };
      const plan = planModel(model, tensorsOf(model));
      assert.equal(plan.ops.filter((op) => op.op === "attention").length, 2);
      assert.deepEqual(plan.unusedTensors, []);
    }
  });

  test("stacks projections of one type and splits mixed ones over columns of the same buffer", () => {
    const uniform = planModel(tinyConfig, tensorsOf(tinyConfig)).ops.filter((op) => op.op === "linear");
    assert.deepEqual(
      uniform.slice(0, 4).map((op) => op.weight.rows),
      [32, 16, 48, 16],
    );

    const mixed = planModel(
      tinyConfig,
      tensorsOf(tinyConfig, { "model.layers.0.self_attn.v_proj.weight": "q6_k" }),
    );
    const [q, k, v] = mixed.ops.filter((op) => op.op === "linear");
    assert.deepEqual(
      [q?.out, k?.out, v?.out].map((out) => [out?.column, out?.width]),
      [
        [0, 16],
        [16, 8],
        [24, 8],
      ],
    );
    assert.ok(q?.out.buffer === v?.out.buffer);
  });

  test("qwen2 has biases on q, k and v alone; qwen3 normalises q and k per head", () => {
    const qwen2 = { ...tinyConfig, architecture: "Qwen2ForCausalLM" };
    const linears = planModel(qwen2, tensorsOf(qwen2)).ops.filter((op) => op.op === "linear");
    assert.deepEqual(
      linears.slice(0, 4).map((op) => op.bias?.length),
      [32, undefined, undefined, undefined],
    );
    const qwen3 = { ...tinyConfig, architecture: "Qwen3ForCausalLM" };
    const norms = planModel(qwen3, tensorsOf(qwen3)).ops.filter(
      (op) => op.op === "rms_norm" && op.groupSize === 4,
    );
    assert.equal(norms.length, 4);
  });

  test("gives each layer its own window", () => {
    const windows = planModel(tinyConfig, tensorsOf(tinyConfig)).ops.flatMap((op) =>
      op.op === "attention" ? [op.slidingWindow] : [],
    );
    assert.deepEqual(windows, [undefined, 8]);
  });

  test("names a missing tensor and its expected shape", () => {
    const tensors = tensorsOf(tinyConfig);
    tensors.delete("model.layers.1.mlp.up_proj.weight");
    assert.throws(
      () => planModel(tinyConfig, tensors),
      throwsCode(
        "artifact_invalid",
        /lacks the tensor "model\.layers\.1\.mlp\.up_proj\.weight" \(\[24, 16\]\)/,
      ),
    );
  });

  test("names both shapes where they differ", () => {
    const tensors = tensorsOf(tinyConfig);
    tensors.set("model.norm.weight", tensorInfo("model.norm.weight", [17]));
    assert.throws(
      () => planModel(tinyConfig, tensors),
      throwsCode("artifact_invalid", /has the shape \[17\]; .* implies \[16\]/),
    );
  });

  test("refuses quantised vectors and unknown architectures", () => {
    assert.throws(
      () => planModel(tinyConfig, tensorsOf(tinyConfig, { "model.norm.weight": "q8_0" })),
      throwsCode("artifact_unsupported", /stored as q8_0/),
    );
    assert.throws(
      () => planModel({ ...tinyConfig, architecture: "GptMysteryModel" }, new Map()),
      throwsCode("artifact_unsupported", /"GptMysteryModel" is not supported\. Supported: LlamaForCausalLM/),
    );
  });

  test("refuses quantised matrices that a hybrid takes apart by rows, by name", async () => {
    const folder = new URL("../../fixtures/models/checkpoints/qwen3-next", import.meta.url);
    const { config, tensors } = await openCheckpoint(fileURLToPath(folder));
    const name = [...tensors.keys()].find((key) => key.endsWith("linear_attn.in_proj_qkvz.weight"))!;
    const quantised = new Map(tensors);
    const recipe = { layout: "int4", assemble: () => assert.fail("read before it was refused") };
    quantised.set(name, { ...tensors.get(name)!, recipe });
    assert.ok(planModel(config, tensors).ops.length > 0);
    assert.throws(
      () => planModel(config, quantised),
      throwsCode(
        "artifact_unsupported",
        new RegExp(`${name}" in .*qwen3-next.* taken apart by rows; .* unquantised or from GGUF`),
      ),
    );
  });

  test("reports tensors it does not read, except those that repeat the configuration", () => {
    const tensors = tensorsOf(tinyConfig);
    for (const name of ["model.layers.0.self_attn.rotary_emb.inv_freq", "vision.weight"])
      tensors.set(name, tensorInfo(name, [2]));
    assert.deepEqual(planModel(tinyConfig, tensors).unusedTensors, ["vision.weight"]);
  });
});
