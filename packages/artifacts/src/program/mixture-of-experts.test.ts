import assert from "node:assert/strict";
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { readTensor } from "../checkpoint/read-tensor.js";
import { type EditableTensor, editSafetensors } from "../testing/edit-safetensors.js";
import { fixtureCheckpoint, fixtureImage } from "../testing/model-fixtures.js";
import type { Checkpoint, TensorInfo } from "../checkpoint/checkpoint.js";
import { openCheckpoint } from "../checkpoint/open-checkpoint.js";
import type { PlannedOp } from "./model-plan.js";
import { planModel } from "./registry.js";

type ExpertsOp = Extract<PlannedOp, { op: "experts" }>;

function plannedMixtures({ config, tensors }: Checkpoint): ExpertsOp[] {
  return planModel(config, tensors).ops.flatMap((op) => (op.op === "experts" ? [op] : []));
}

/** A fixture checkpoint with one tensor changed, or taken away. */
async function withTensor(
  name: string,
  tensor: string,
  change: Partial<TensorInfo> | undefined,
): Promise<Checkpoint> {
  const checkpoint = await openCheckpoint(fixtureCheckpoint(name));
  const tensors = new Map(checkpoint.tensors);
  const found = tensors.get(tensor);
  assert.ok(found !== undefined, tensor);
  if (change === undefined) tensors.delete(tensor);
  else tensors.set(tensor, { ...found, ...change });
  return { ...checkpoint, tensors };
}

async function bytesOf(source: TensorInfo): Promise<Buffer> {
  if (source.recipe === undefined) return Buffer.from(await readTensor(source));
  const { values } = await source.recipe.assemble();
  assert.ok(values instanceof Uint8Array);
  return Buffer.from(values);
}

/** `[count, a, b]` of f32 as `[count, b, a]`. */
function turn(tensor: EditableTensor): void {
  const [count = 0, a = 0, b = 0] = tensor.shape;
  const turned = Buffer.alloc(tensor.data.byteLength);
  for (let at = 0; at < count * a * b; at++) {
    const [matrix, row, column] = [Math.floor(at / (a * b)), Math.floor(at / b) % a, at % b];
    tensor.data.copy(turned, 4 * (matrix * a * b + column * a + row), 4 * at, 4 * at + 4);
  }
  tensor.data = turned;
  tensor.shape = [count, b, a];
}

describe("mixtures of experts", () => {
  test("gate and up are stacked into one matrix, and every tensor is read", async () => {
    for (const [name, numMixtures, numExperts, topK] of [
      ["mixtral", 2, 4, 2],
      ["qwen2-moe", 2, 6, 3],
      ["qwen3-moe", 2, 8, 2],
      ["olmoe", 2, 8, 3],
      ["granite-moe", 2, 4, 2],
      ["gpt-oss", 2, 4, 2],
    ] as const) {
      const checkpoint = await openCheckpoint(fixtureCheckpoint(name));
      const mixtures = plannedMixtures(checkpoint);
      assert.equal(mixtures.length, numMixtures, name);
      assert.deepEqual(planModel(checkpoint.config, checkpoint.tensors).unusedTensors, [], name);
      for (const { experts, topK: chosen } of mixtures) {
        assert.equal(experts.length, numExperts);
        assert.equal(chosen, topK);
        for (const { gate, up, down } of experts) {
          assert.equal(up, undefined);
          assert.equal(gate.rows, 2 * down.cols);
        }
      }
    }
  });

  test("experts of one tensor are slices of it, side by side", async () => {
    const checkpoint = await openCheckpoint(fixtureCheckpoint("olmoe"));
    const whole = checkpoint.tensors.get("model.layers.1.mlp.experts.gate_up_proj");
    const experts = plannedMixtures(checkpoint)[1]?.experts ?? [];
    const slices = experts.map(({ gate }) => gate.sources[0]);
    assert.deepEqual(
      slices.map((slice) => slice?.offset),
      slices.map((_, index) => (whole?.offset ?? 0) + (index * (whole?.byteLength ?? 0)) / 8),
    );
    assert.equal(slices[7]?.name, "model.layers.1.mlp.experts.gate_up_proj[7]");
  });

  test("experts that stand transposed in published files, and as computed with in those of transformers 5", async () => {
    const folder = mkdtempSync(join(tmpdir(), "octavo-experts-"));
    try {
      cpSync(fixtureImage("qwen3-vl-moe"), folder, { recursive: true });
      editSafetensors(join(folder, "model.safetensors"), (tensors) => {
        for (const [name, tensor] of tensors) if (name.includes(".experts.")) turn(tensor);
      });
      const [published, rewritten] = await Promise.all(
        [fixtureImage("qwen3-vl-moe"), folder].map(async (path) => {
          const mixtures = plannedMixtures(await openCheckpoint(path));
          const matrices = mixtures.flatMap(({ experts }) =>
            experts.flatMap(({ gate, down }) => [gate, down]),
          );
          return Promise.all(matrices.flatMap(({ sources }) => sources.map(bytesOf)));
        }),
      );
      assert.equal(published?.length, 2 * 2 * 6);
      assert.deepEqual(rewritten, published);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });

  test("gate and up in different types stay apart", async () => {
    const name = "model.layers.0.mlp.experts.2.up_proj.weight";
    const [first] = plannedMixtures(await withTensor("qwen3-moe", name, { type: "q8_0" }));
    assert.equal(first?.experts[1]?.up, undefined);
    assert.equal(first?.experts[2]?.up?.sources[0]?.name, name);
    assert.equal(first?.experts[2]?.gate.rows, 24);
  });

  for (const [what, name, tensor, change, message] of [
    [
      "an expert's tensor is missing",
      "mixtral",
      "model.layers.1.block_sparse_moe.experts.3.w2.weight",
      undefined,
      /lacks the tensor "model\.layers\.1\.block_sparse_moe\.experts\.3\.w2\.weight" \(\[64, 48\]\)/,
    ],
    [
      "an expert's tensor has another shape",
      "mixtral",
      "model.layers.0.block_sparse_moe.experts.2.w3.weight",
      { shape: [47, 64] },
      /"model\.layers\.0\.block_sparse_moe\.experts\.2\.w3\.weight" .*\[47, 64\].*\[48, 64\]/,
    ],
    [
      "the router has another number of experts",
      "qwen3-moe",
      "model.layers.0.mlp.gate.weight",
      { shape: [6, 64] },
      /"model\.layers\.0\.mlp\.gate\.weight" .*\[6, 64\].*\[8, 64\]/,
    ],
    [
      "a tensor of all experts lacks one",
      "granite-moe",
      "model.layers.0.block_sparse_moe.input_linear.weight",
      { shape: [3, 80, 64] },
      /"model\.layers\.0\.block_sparse_moe\.input_linear\.weight" .*\[3, 80, 64\].*\[4, 80, 64\]/,
    ],
    [
      "a bias of all experts has another shape",
      "gpt-oss",
      "model.layers.1.mlp.experts.gate_up_proj_bias",
      { shape: [4, 63] },
      /"model\.layers\.1\.mlp\.experts\.gate_up_proj_bias" .*\[4, 63\].*\[4, 64\]/,
    ],
    [
      "sinks are missing",
      "gpt-oss",
      "model.layers.1.self_attn.sinks",
      undefined,
      /lacks the tensor "model\.layers\.1\.self_attn\.sinks" \(\[4\]\)/,
    ],
    [
      "the shared expert's gate is missing",
      "qwen2-moe",
      "model.layers.0.mlp.shared_expert_gate.weight",
      undefined,
      /lacks the tensor "model\.layers\.0\.mlp\.shared_expert_gate\.weight" \(\[1, 64\]\)/,
    ],
  ] as const) {
    test(`${what}: refused by name`, async () => {
      const { config, tensors } = await withTensor(name, tensor, change);
      assert.throws(() => planModel(config, tensors), { code: "artifact_invalid", message });
    });
  }
});
