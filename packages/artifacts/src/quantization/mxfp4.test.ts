import assert from "node:assert/strict";
import { join } from "node:path";
import { describe, test } from "node:test";
import { assertRejected } from "../testing/artifact-assertions.js";
import { dequantize } from "../testing/dequantize.js";
import { type EditableTensor, editSafetensors } from "../testing/edit-safetensors.js";
import { ChangedCheckpoint } from "../testing/model-fixtures.js";
import { openCheckpoint } from "../checkpoint/open-checkpoint.js";

const e2m1 = [0, 0.5, 1, 1.5, 2, 3, 4, 6];
const stem = "model.layers.0.mlp.experts.gate_up_proj";

async function opened(edit: (tensors: Map<string, EditableTensor>) => void): Promise<unknown> {
  using folder = new ChangedCheckpoint("gpt-oss", {});
  editSafetensors(join(folder.path, "model.safetensors"), edit);
  return await openCheckpoint(folder.path);
}

describe("MXFP4 checkpoints", () => {
  test("each expert is a slice whose gate rows stand before its up rows", async () => {
    using folder = new ChangedCheckpoint("gpt-oss", {});
    const { tensors } = await openCheckpoint(folder.path);
    const whole = tensors.get(stem);
    assert.deepEqual(whole?.shape, [4, 64, 64]);
    const all = await whole.recipe?.assemble();
    const slices = whole.recipe?.slices?.(4) ?? [];
    const third = await slices[2]?.assemble();
    assert.ok(all?.values instanceof Uint8Array && third?.values instanceof Uint8Array);
    const rowBytes = 2 * 17;
    assert.deepEqual(third.values, all.values.subarray(2 * 64 * rowBytes, 3 * 64 * rowBytes));
    const found = dequantize("mxfp4", third.values);
    editSafetensors(join(folder.path, "model.safetensors"), (stored) => {
      const codes = stored.get(`${stem}_blocks`)?.data ?? new Uint8Array();
      const exponents = stored.get(`${stem}_scales`)?.data ?? new Uint8Array();
      for (const [row, place] of [
        [2, 1],
        [1, 32],
      ] as const) {
        for (let column = 0; column < 64; column++) {
          const at = (2 * 64 + row) * 64 + column;
          const code = ((codes[at >> 1] ?? NaN) >> (4 * (at & 1))) & 15;
          const value = (e2m1[code & 7] ?? NaN) * (code < 8 ? 1 : -1);
          assert.equal(found[place * 64 + column], value * 2 ** ((exponents[at >> 5] ?? NaN) - 127));
        }
      }
    });
  });

  test("what is missing or of another shape is refused by name", async () => {
    await assertRejected(
      opened((tensors) => tensors.delete(`${stem}_scales`)),
      "artifact_invalid",
      /lacks tensor "model\.layers\.0\.mlp\.experts\.gate_up_proj_scales"/,
    );
    await assertRejected(
      opened((tensors) => tensors.get(`${stem}_scales`)?.shape.splice(0, 3, 4, 32, 4)),
      "artifact_invalid",
      /gate_up_proj_scales" has the shape \[4, 32, 4\]; .*\[4, 64, 2\]/,
    );
    await assertRejected(
      opened((tensors) => tensors.get(`${stem}_blocks`)?.shape.splice(0, 4, 4, 64, 4, 8)),
      "artifact_invalid",
      /gate_up_proj_blocks" has the shape \[4, 64, 4, 8\]/,
    );
  });

  test("a checkpoint that only says it is MXFP4", async () => {
    using folder = new ChangedCheckpoint("llama2", { quantization_config: { quant_method: "mxfp4" } });
    await assertRejected(openCheckpoint(folder.path), "artifact_invalid", /quantised with mxfp4, but none/);
  });
});
