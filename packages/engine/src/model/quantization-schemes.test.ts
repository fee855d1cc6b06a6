import assert from "node:assert/strict";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { createCpuBackend } from "@octavo/kernels";
import type { ErrorCode } from "@octavo/protocol/errors";
import { OctavoError } from "@octavo/protocol/errors";
import { type EditableTensor, editSafetensors } from "@octavo/artifacts/testing/edit-safetensors";
import { fixtureQuantized } from "@octavo/artifacts/testing/model-fixtures";
import { ModelRunner } from "../testing/oracles/model-runner.js";
import { ReferenceBackend } from "../testing/reference/reference-backend.js";
import { openCheckpoint } from "@octavo/artifacts/checkpoint/open-checkpoint";

const scratch = mkdtempSync(join(tmpdir(), "octavo-quantization-"));
after(() => rmSync(scratch, { recursive: true, force: true }));
let counter = 0;

type Config = Record<string, unknown> & { quantization_config?: Record<string, unknown> };

/** A copy of a fixture with another configuration and other tensors. */
function changed(
  fixture: string,
  change: {
    readonly config?: (config: Config) => void;
    readonly tensors?: (tensors: Map<string, EditableTensor>) => void;
  },
): string {
  const path = join(scratch, String(counter++));
  cpSync(fixtureQuantized(fixture), path, { recursive: true });
  const config = JSON.parse(readFileSync(join(path, "config.json"), "utf8")) as Config;
  change.config?.(config);
  writeFileSync(join(path, "config.json"), JSON.stringify(config));
  if (change.tensors !== undefined) editSafetensors(join(path, "model.safetensors"), change.tensors);
  return path;
}

async function assertRefused(
  opening: Promise<unknown>,
  code: ErrorCode,
  ...messages: readonly RegExp[]
): Promise<void> {
  await assert.rejects(opening, (error: unknown) => {
    assert.ok(error instanceof OctavoError, String(error));
    assert.equal(error.code, code, error.message);
    for (const message of messages) assert.match(error.message, message);
    return true;
  });
}

const down = "model.layers.1.mlp.down_proj";

function tensor(tensors: Map<string, EditableTensor>, name: string): EditableTensor {
  const found = tensors.get(name);
  assert.ok(found !== undefined, name);
  return found;
}

/** One more row of the same bytes as the first. */
function addRow(found: EditableTensor): void {
  const [rows = 0] = found.shape;
  found.data = Buffer.concat([found.data, found.data.subarray(0, found.data.byteLength / rows)]);
  found.shape[0] = rows + 1;
}

const settings =
  (fields: Record<string, unknown>) =>
  (config: Config): void =>
    void Object.assign(config.quantization_config ?? {}, fields);

describe("the scheme of a checkpoint", () => {
  it("comes from config.json, from the files beside it that older tools wrote, or from the user", async () => {
    const plain = await openCheckpoint(fixtureQuantized("gptq-4bit"));
    assert.equal(plain.config.dtype, "quantized");
    assert.equal(plain.tensors.get(`${down}.weight`)?.type, "int4");

    const older = changed("gptq-4bit", { config: (config) => void delete config.quantization_config });
    await assertRefused(openCheckpoint(older), "artifact_unsupported", /is I32; .*quantization_config/);
    const named = await openCheckpoint(older, { quantization: "gptq" });
    assert.equal(named.tensors.get(`${down}.weight`)?.type, "int4");
    writeFileSync(
      join(older, "quantize_config.json"),
      JSON.stringify({ bits: 4, group_size: 32, desc_act: false }),
    );
    assert.equal((await openCheckpoint(older)).tensors.get(`${down}.weight`)?.type, "int4");

    const awq = changed("awq-gemv", { config: (config) => void delete config.quantization_config });
    writeFileSync(
      join(awq, "quant_config.json"),
      JSON.stringify({ w_bit: 4, q_group_size: 32, version: "GEMV" }),
    );
    assert.equal((await openCheckpoint(awq)).tensors.get(`${down}.weight`)?.type, "int4");
  });

  it("is refused where the user names another, an unknown one, or the file does", async () => {
    const path = fixtureQuantized("gptq-4bit");
    await assertRefused(
      openCheckpoint(path, { quantization: "awq" }),
      "invalid_option",
      /is awq, but .*config\.json says gptq/,
    );
    await assertRefused(
      openCheckpoint(path, { quantization: "zip" }),
      "invalid_option",
      /one of auto, awq, gptq/,
    );
    const unknown = changed("gptq-4bit", { config: settings({ quant_method: "aqlm" }) });
    await assertRefused(
      openCheckpoint(unknown),
      "artifact_unsupported",
      /quantised with "aqlm"; supported are awq/,
    );
    const unnamed = changed("gptq-4bit", { config: (config) => void (config.quantization_config = {}) });
    await assertRefused(openCheckpoint(unnamed), "artifact_unsupported", /quantised with unnamed/);
  });

  it("must be the tensors' own", async () => {
    const awq = { quant_method: "awq", version: "gemm" };
    await assertRefused(
      openCheckpoint(changed("gptq-4bit", { config: settings(awq) })),
      "artifact_invalid",
      /g_idx" belongs to GPTQ/,
    );
    const without = (tensors: Map<string, EditableTensor>): void => {
      for (const name of tensors.keys()) if (name.endsWith("g_idx")) tensors.delete(name);
    };
    await assertRefused(
      openCheckpoint(changed("gptq-4bit", { config: settings(awq), tensors: without })),
      "artifact_invalid",
      /layers\.0\..*qweight|layers\.0\..*scales/,
    );
    await assertRefused(
      openCheckpoint(changed("awq-gemm", { config: settings({ quant_method: "gptq" }) })),
      "artifact_invalid",
      /layers\.0\..*(qweight|scales)/,
    );
    await assertRefused(
      openCheckpoint(changed("ct-w4a16", { config: settings({ quant_method: "gptq" }) })),
      "artifact_unsupported",
      /weight_(packed|shape)" is I\d\d; a checkpoint quantised with gptq has no such tensor/,
    );
    await assertRefused(
      openCheckpoint(
        changed("gptq-4bit", {
          tensors: (tensors) => {
            for (const name of tensors.keys()) if (name.includes("_proj")) tensors.delete(name);
          },
        }),
      ),
      "artifact_invalid",
      /quantised with gptq, but none of its tensors is/,
    );
  });
});

describe("a quantised checkpoint that cannot be read", () => {
  const cases: readonly (readonly [string, string, Parameters<typeof changed>[1], ErrorCode, RegExp])[] = [
    [
      "lacks scales",
      "awq-gemm",
      { tensors: (tensors) => void tensors.delete(`${down}.scales`) },
      "artifact_invalid",
      /lacks tensor "model\.layers\.1\.mlp\.down_proj\.scales"; of that layer it has .*"qweight"/,
    ],
    [
      "lacks scales",
      "gptq-4bit",
      { tensors: (tensors) => void tensors.delete(`${down}.scales`) },
      "artifact_invalid",
      /lacks tensor "model\.layers\.1\.mlp\.down_proj\.scales"/,
    ],
    [
      "lacks scales",
      "ct-w4a16",
      { tensors: (tensors) => void tensors.delete(`${down}.weight_scale`) },
      "artifact_invalid",
      /lacks tensor "model\.layers\.1\.mlp\.down_proj\.weight_scale"/,
    ],
    [
      "has zero points of another shape",
      "awq-gemm",
      { tensors: (tensors) => addRow(tensor(tensors, `${down}.qzeros`)) },
      "artifact_invalid",
      /down_proj\.qzeros" has the shape \[5, 8\].* implies \[4, 8\]/,
    ],
    [
      "has scales of another dtype",
      "gptq-4bit",
      { tensors: (tensors) => void (tensor(tensors, `${down}.scales`).dtype = "I16") },
      "artifact_invalid",
      /down_proj\.scales" is I16; F16 or BF16 or F32/,
    ],
    [
      "has a group index out of range",
      "gptq-4bit-act-order",
      { tensors: (tensors) => void tensor(tensors, `${down}.g_idx`).data.writeInt32LE(9, 20) },
      "artifact_invalid",
      /down_proj\.g_idx" puts input 5 in group 9; the groups are 0 to 3/,
    ],
    [
      "has a negative group index",
      "gptq-4bit-act-order",
      { tensors: (tensors) => void tensor(tensors, `${down}.g_idx`).data.writeInt32LE(-3, 20) },
      "artifact_invalid",
      /down_proj\.g_idx" puts input 5 in group -3/,
    ],
    [
      "has a group that is too large",
      "gptq-4bit-act-order",
      { tensors: (tensors) => void tensor(tensors, `${down}.g_idx`).data.fill(0) },
      "artifact_invalid",
      /down_proj\.g_idx" puts more than 32 inputs in group 0/,
    ],
    [
      "has a group size that does not divide",
      "gptq-4bit",
      { config: settings({ group_size: 48 }) },
      "artifact_invalid",
      /qweight" has groups of 48, which do not divide its \d+ inputs/,
    ],
    [
      "has groups that the kernels do not take",
      "awq-gemm",
      { config: settings({ group_size: 16 }) },
      "artifact_unsupported",
      /qweight" has groups of 16; multiples of 32/,
    ],
    [
      "has another number of bits than its configuration says",
      "gptq-4bit",
      { config: settings({ bits: 8 }) },
      "artifact_invalid",
      /qweight|scales/,
    ],
    [
      "has bits that nobody writes",
      "gptq-4bit",
      { config: settings({ bits: 5 }) },
      "artifact_unsupported",
      /5 bits/,
    ],
    [
      "has a weight_shape that lies",
      "ct-w4a16",
      { tensors: (tensors) => void tensor(tensors, `${down}.weight_shape`).data.writeBigInt64LE(99n, 0) },
      "artifact_invalid",
      /weight_packed" has the shape \[64, 16\]; weight_shape \[99, 128\] at 4 bits implies \[99, 16\]/,
    ],
    [
      "is in a layout for other hardware",
      "awq-gemm",
      { config: settings({ version: "gemv_fast" }) },
      "artifact_unsupported",
      /"gemv_fast"; gemm and gemv/,
    ],
    [
      "lacks scales",
      "fp8-tensor",
      { tensors: (tensors) => void tensors.delete(`${down}.weight_scale`) },
      "artifact_invalid",
      /lacks tensor "model\.layers\.1\.mlp\.down_proj\.weight_scale"/,
    ],
    [
      "has scales for other tiles",
      "fp8-block",
      { config: settings({ weight_block_size: [64, 64] }) },
      "artifact_invalid",
      /weight_scale_inv" has the shape \[\d+, \d+\]; weight \[\d+, \d+\] with one scale per tile of 64 by 64/,
    ],
    [
      "lacks block maxima",
      "bnb-nf4",
      { tensors: (tensors) => void tensors.delete(`${down}.weight.absmax`) },
      "artifact_invalid",
      /lacks tensor "model\.layers\.1\.mlp\.down_proj\.weight\.absmax"/,
    ],
    [
      "has a quantisation state that is no JSON",
      "bnb-nf4-nested",
      {
        tensors: (tensors) =>
          void tensor(tensors, `${down}.weight.quant_state.bitsandbytes__nf4`).data.fill(0x7b),
      },
      "artifact_invalid",
      /down_proj\.weight\.quant_state\.bitsandbytes__nf4" is not JSON/,
    ],
    [
      "has another number of scales than rows",
      "bnb-int8",
      { tensors: (tensors) => addRow(tensor(tensors, `${down}.SCB`)) },
      "artifact_invalid",
      /down_proj\.SCB" has the shape \[65\]/,
    ],
    [
      "says another group size than its scales have",
      "hqq-4bit",
      { tensors: (tensors) => void tensor(tensors, `${down}.group_size`).data.writeInt32LE(64) },
      "artifact_invalid",
      /down_proj\.scale" has the shape \[256, 1\].* groups of 64/,
    ],
    [
      "says another shape than its codes have",
      "hqq-8bit",
      { tensors: (tensors) => void tensor(tensors, `${down}.shape`).data.writeBigInt64LE(65n) },
      "artifact_invalid",
      /down_proj\.W_q" has 8192 bytes; \[65, 128\] at 8 bits takes 8320/,
    ],
    [
      "lacks the scale of the tensor",
      "ct-nvfp4",
      { tensors: (tensors) => void tensors.delete(`${down}.weight_global_scale`) },
      "artifact_invalid",
      /lacks tensor "model\.layers\.1\.mlp\.down_proj\.weight_global_scale"/,
    ],
    [
      "has scales of another shape",
      "modelopt-nvfp4",
      { tensors: (tensors) => addRow(tensor(tensors, `${down}.weight_scale`)) },
      "artifact_invalid",
      /down_proj\.weight_scale" has the shape \[65, 8\].* implies \[64, 8\]/,
    ],
    [
      "is sparse",
      "ct-w4a16",
      { config: settings({ sparsity_config: { format: "sparse-24-bitmask" } }) },
      "artifact_unsupported",
      /sparse-24/,
    ],
  ];
  for (const [what, fixture, change, code, message] of cases) {
    it(`because it ${what} (${fixture}) is refused with the tensor's name`, () =>
      assertRefused(openCheckpoint(changed(fixture, change)), code, message));
  }

  it("because its tensor's scale is zero is refused when it is loaded", async () => {
    const path = changed("ct-nvfp4", {
      tensors: (tensors) => void tensor(tensors, `${down}.weight_global_scale`).data.fill(0),
    });
    const checkpoint = await openCheckpoint(path);
    using backend = new ReferenceBackend();
    await assertRefused(
      ModelRunner.load(backend, checkpoint, 8, "f32"),
      "artifact_invalid",
      /down_proj\.weight_global_scale" is 0/,
    );
  });

  it("because a weight has another shape than the model needs is refused when it is planned", async () => {
    const path = changed("gptq-4bit", {
      config: (config) => void (config["intermediate_size"] = 256),
    });
    const checkpoint = await openCheckpoint(path);
    using backend = new ReferenceBackend();
    await assertRefused(
      ModelRunner.load(backend, checkpoint, 8, "f32"),
      "artifact_invalid",
      /gate_proj\.weight".*\[128, 64\].*\[256, 64\]/,
    );
  });

  it("because a code is NaN is refused when it is packed", async () => {
    const path = changed("ct-fp8", {
      tensors: (tensors) => void (tensor(tensors, `${down}.weight`).data[7] = 0xff),
    });
    const checkpoint = await openCheckpoint(path);
    using backend = createCpuBackend({ numThreads: 1 });
    await assertRefused(
      ModelRunner.load(backend, checkpoint, 8, "f32"),
      "artifact_invalid",
      /down_proj\.weight.*not finite/,
    );
  });

  it("because 8-bit codes are not as symmetric as its configuration says is refused when it is packed", async () => {
    const path = changed("gptq-8bit-act-order", {
      tensors: (tensors) => void tensor(tensors, `${down}.qzeros`).data.writeUInt8(3, 0),
    });
    using backend = new ReferenceBackend();
    await assertRefused(
      ModelRunner.load(backend, await openCheckpoint(path), 8, "f32"),
      "artifact_unsupported",
      /down_proj\.qzeros" holds the 8-bit zero point 4, although the configuration says sym/,
    );
  });
});
