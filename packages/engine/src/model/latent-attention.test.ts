import assert from "node:assert/strict";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { openCheckpoint } from "@octavo/artifacts/checkpoint/open-checkpoint";
import { planModel } from "@octavo/artifacts/program/registry";
import { editSafetensors, type EditableTensor } from "@octavo/artifacts/testing/edit-safetensors";
import { fixtureCheckpoint } from "@octavo/artifacts/testing/model-fixtures";
import { createCpuBackend, kvLayersOf, kvTokenBytes } from "@octavo/kernels";
import { describeUnused } from "../llm/load-parts.js";
import { ModelRunner } from "../testing/oracles/model-runner.js";

const parent = mkdtempSync(join(tmpdir(), "octavo-latent-"));
after(() => rmSync(parent, { recursive: true }));

type Config = Record<string, unknown>;

/** A copy of the tiny DeepSeek V3, changed. */
function changed(
  name: string,
  edit: (tensors: Map<string, EditableTensor>) => void,
  config: (config: Config) => void = () => undefined,
): string {
  const folder = join(parent, name);
  cpSync(fixtureCheckpoint("deepseek-v3"), folder, { recursive: true });
  editSafetensors(join(folder, "model.safetensors"), edit);
  const path = join(folder, "config.json");
  const json = JSON.parse(readFileSync(path, "utf8")) as Config;
  config(json);
  writeFileSync(path, JSON.stringify(json));
  return folder;
}

/** The magnitudes of E4M3 (arXiv 2209.05433): steps of an eighth of their power of two, of 2^-9 below 2^-6. */
const magnitudes = Array.from({ length: 127 }, (_, code) =>
  code < 8 ? code / 512 : (1 + (code % 8) / 8) * 2 ** (Math.floor(code / 8) - 7),
);

/** Each tile of rows and columns over a scale of its own. */
function float8(
  values: Float32Array,
  [rows, cols]: readonly [number, number],
  tile: readonly [number, number],
) {
  const tilesAcross = Math.ceil(cols / tile[1]);
  const scales = new Float32Array(Math.ceil(rows / tile[0]) * tilesAcross);
  const tileOf = (at: number): number =>
    Math.floor(Math.floor(at / cols) / tile[0]) * tilesAcross + Math.floor((at % cols) / tile[1]);
  for (const [at, value] of values.entries())
    scales[tileOf(at)] = Math.max(scales[tileOf(at)] ?? 0, Math.fround(Math.abs(value) / 448));
  const codes = Buffer.alloc(values.length);
  const rounded = values.map((value, at) => {
    const scale = scales[tileOf(at)] ?? 1;
    const wanted = Math.abs(value) / scale;
    let code = 0;
    for (const [next, magnitude] of magnitudes.entries())
      if (Math.abs(magnitude - wanted) < Math.abs((magnitudes[code] ?? 0) - wanted)) code = next;
    codes[at] = code + (value < 0 ? 128 : 0);
    return Math.sign(value) * (magnitudes[code] ?? 0) * scale;
  });
  return { codes, scales, tilesAcross, rounded };
}

const floatsOf = ({ data }: EditableTensor): Float32Array => new Float32Array(Uint8Array.from(data).buffer);
const bytesOf = (values: Float32Array): Buffer => Buffer.from(values.slice().buffer);
const isSplit = (name: string): boolean => name.endsWith(".kv_b_proj.weight");

async function logitsOf(path: string): Promise<readonly Float32Array[]> {
  using backend = createCpuBackend({ numThreads: 2 });
  using runner = await ModelRunner.load(backend, await openCheckpoint(path), 64, "f32");
  return runner.logits(Array.from({ length: 40 }, (_, i) => (i * 7) % 250));
}

describe("latent attention", () => {
  test("FP8 in tiles gives the bits of the values that it stands for", async () => {
    const tile = [32, 24] as const;
    const each = (
      tensors: Map<string, EditableTensor>,
      store: (name: string, of: ReturnType<typeof float8>) => void,
    ) => {
      for (const [name, tensor] of tensors) {
        if (!isSplit(name)) continue;
        const [rows = 0, cols = 0] = tensor.shape;
        store(name, float8(floatsOf(tensor), [rows, cols], tile));
      }
    };
    const quantized = changed(
      "fp8",
      (tensors) =>
        each(tensors, (name, { codes, scales, tilesAcross }) => {
          const { shape } = tensors.get(name)!;
          tensors.set(name, { dtype: "F8_E4M3", shape, data: codes });
          tensors.set(`${name}_scale_inv`, {
            dtype: "F32",
            shape: [scales.length / tilesAcross, tilesAcross],
            data: bytesOf(scales),
          });
        }),
      (config) => {
        config["quantization_config"] = { quant_method: "fp8", weight_block_size: [...tile] };
      },
    );
    const floats = changed("floats", (tensors) =>
      each(tensors, (name, { rounded }) => {
        tensors.set(name, { ...tensors.get(name)!, data: bytesOf(rounded) });
      }),
    );
    const [actual, expected] = [await logitsOf(quantized), await logitsOf(floats)];
    assert.deepEqual(actual, expected);
    assert.notDeepEqual(actual, await logitsOf(fixtureCheckpoint("deepseek-v3")));
  });

  test("a kv_b_proj that cannot be taken apart by heads is refused by name", async () => {
    const checkpoint = await openCheckpoint(fixtureCheckpoint("deepseek-v3"));
    const tensors = new Map(checkpoint.tensors);
    const name = "model.layers.1.self_attn.kv_b_proj.weight";
    tensors.set(name, { ...tensors.get(name)!, type: "q8_0" });
    assert.throws(() => planModel(checkpoint.config, tensors), {
      code: "artifact_unsupported",
      message: /kv_b_proj\.weight".*is stored as q8_0.*attn_k_b/,
    });
  });

  test("the cache keeps one row of latent and rotated key a layer", async () => {
    const { config } = await openCheckpoint(fixtureCheckpoint("deepseek-v3"));
    const layers = kvLayersOf(planModel(config).ops);
    assert.deepEqual(
      layers,
      Array.from({ length: 3 }, () => ({ numKvHeads: 1, headDim: 40, isLatent: true })),
    );
    assert.equal(kvTokenBytes(layers, "bf16"), 3 * 40 * 2);
    using backend = createCpuBackend({ numThreads: 1 });
    using cache = backend.createKvCache({ layers, numBlocks: 5, blockSize: 16, dtype: "bf16" });
    assert.equal(cache.byteLength, 5 * 16 * 3 * 40 * 2);
  });

  test("layers that predict further tokens are left out, which a line says", async () => {
    const path = changed("mtp", (tensors) => {
      for (const [name, tensor] of tensors) {
        if (name.startsWith("model.layers.2.")) tensors.set(name.replace(".2.", ".3."), tensor);
      }
      tensors.set("model.layers.3.eh_proj.weight", { dtype: "F32", shape: [1], data: Buffer.alloc(4) });
    });
    const { tensors, config } = await openCheckpoint(path);
    const { unusedTensors } = planModel(config, tensors);
    const lines = describeUnused(unusedTensors, config);
    assert.equal(lines.length, 1);
    assert.match(lines[0] ?? "", /^\d+ tensors of layers that predict further tokens/);
    assert.match(
      describeUnused(["visual.a", ...unusedTensors], config)[1] ?? "",
      /not used by DeepseekV3ForCausalLM: visual\.a/,
    );
    assert.deepEqual(await logitsOf(path), await logitsOf(fixtureCheckpoint("deepseek-v3")));
  });
});
