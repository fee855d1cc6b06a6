import assert from "node:assert/strict";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { editSafetensors } from "@octavo/artifacts/testing/edit-safetensors";
import { writeTinyFolder } from "@octavo/artifacts/testing/tiny-checkpoint";
import { type ErrorCode, OctavoError } from "@octavo/protocol";
import type { QuantizeOptions } from "./options.js";
import { quantize } from "./quantize.js";
import { weightError } from "./report/errors.js";
import { artifactValues, folderContents } from "./testing/artifact-values.js";

const scratch = mkdtempSync(join(tmpdir(), "octavo-quantize-"));
after(() => rmSync(scratch, { recursive: true, force: true }));
const tiny = join(scratch, "tiny");
writeTinyFolder(tiny, { type: "bf16", numLayers: 3 });
const texts = join(scratch, "texts.txt");
writeFileSync(texts, "The quick brown fox jumps over the lazy dog; 0123456789 times, or more. ".repeat(40));
let counter = 0;
const nextOut = (): string => join(scratch, `out-${counter++}`);

async function assertRefused(
  options: Partial<QuantizeOptions>,
  code: ErrorCode,
  message: RegExp,
  model = tiny,
): Promise<void> {
  const out = nextOut();
  await assert.rejects(quantize(model, { method: "fp8", out, ...options }), (error: unknown) => {
    assert.ok(error instanceof OctavoError, String(error));
    assert.equal(error.code, code, error.message);
    assert.match(error.message, message);
    return true;
  });
  assert.ok(!existsSync(out), "nothing may stand under the final name");
}

const calibrated = { calibration: texts, numSamples: 6, sampleTokens: 48, numThreads: 1 } as const;

describe("mixtures of experts", () => {
  const mixtral = fileURLToPath(
    new URL("../../../artifacts/fixtures/models/checkpoints/mixtral", import.meta.url),
  );

  test("each expert is quantised, the router is not", async () => {
    const out = nextOut();
    const { modules } = await quantize(mixtral, { method: "fp8", out });
    const names = modules.map(({ name }) => name);
    assert.ok(names.includes("model.layers.0.block_sparse_moe.experts.0.w2"));
    assert.ok(names.every((name) => !name.endsWith(".gate")));
    const router = "model.layers.0.block_sparse_moe.gate";
    const config = (folder: string): Record<string, Record<string, unknown>> =>
      JSON.parse(readFileSync(join(folder, "config.json"), "utf8")) as Record<
        string,
        Record<string, unknown>
      >;
    const ignored = config(out)["quantization_config"]?.["ignore"];
    assert.ok(
      Array.isArray(ignored) && ignored.includes(router),
      "other readers must leave the router alone too",
    );
    const rounded = nextOut();
    const ignore = ["lm_head", "re:.*experts"];
    await quantize(mixtral, { method: "gptq", groupSize: -1, roundToNearest: true, ignore, out: rounded });
    const { dynamic = {} } = config(rounded)["quantization_config"] ?? {};
    const patterns = Object.keys(dynamic as object);
    assert.ok(patterns.every((pattern) => pattern.startsWith("-:")));
    const isLeft = (module: string): boolean =>
      patterns.some((pattern) => new RegExp(`^(?:${pattern.slice(2)})`).test(module));
    assert.ok(isLeft(router) && !isLeft("model.layers.0.self_attn.q_proj"));
    const [original, values] = [await artifactValues(mixtral), await artifactValues(out)];
    for (const [name, expected] of original)
      assert.ok(weightError(expected, values.get(name)!) < 0.001, name);
  });

  const qwen = fileURLToPath(
    new URL("../../../artifacts/fixtures/models/checkpoints/qwen2-moe", import.meta.url),
  );
  for (const method of ["gptq", "awq", "int8"]) {
    test(`${method} with texts: every expert by the tokens that it gets, resumed or not`, async () => {
      // The shared expert of this checkpoint is too narrow for whole words.
      const ignore = ["lm_head", "re:.*shared_expert"];
      const options = { ...calibrated, method, ignore, ...(method !== "int8" && { groupSize: -1 }) } as const;
      const whole = nextOut();
      const { modules, errorOf } = await quantize(qwen, { ...options, out: whole });
      assert.equal(errorOf, "outputs");
      const experts = modules.filter(({ name }) => name.includes(".experts."));
      assert.equal(experts.length, 2 * 6 * 3);
      const errors = JSON.stringify(modules);
      assert.ok(
        modules.every(({ error }) => error > 0 && error < 0.05),
        errors,
      );
      const out = nextOut();
      const stop = new AbortController();
      const run = quantize(
        qwen,
        { ...options, out },
        { signal: stop.signal, onProgress: ({ doneUnits }) => doneUnits >= 2 && stop.abort() },
      );
      await assert.rejects(run, { code: "request_cancelled" });
      await quantize(qwen, { ...options, out });
      assert.deepEqual(folderContents(out), folderContents(whole));
    });
  }

  test("experts that lie in one tensor are computed with, and left as they are", async () => {
    const olmoe = fileURLToPath(
      new URL("../../../artifacts/fixtures/models/checkpoints/olmoe", import.meta.url),
    );
    const out = nextOut();
    const { modules } = await quantize(olmoe, { ...calibrated, method: "gptq", groupSize: -1, out });
    assert.ok(modules.every(({ name }) => name.includes(".self_attn.")));
    const [original, values] = [await artifactValues(olmoe), await artifactValues(out)];
    const name = "model.layers.0.mlp.experts.down_proj";
    assert.deepEqual(values.get(name), original.get(name));
  });

  test("GPT-OSS, whose experts are quantised already, is refused", async () => {
    const oss = fileURLToPath(
      new URL("../../../artifacts/fixtures/models/checkpoints/gpt-oss", import.meta.url),
    );
    await assertRefused(
      { ...calibrated, method: "gptq", groupSize: -1 },
      "artifact_unsupported",
      /quantised already/,
      oss,
    );
  });
});

describe("refusals", () => {
  test("options that do not exist or mean nothing", async () => {
    await assertRefused({ method: "int3" }, "invalid_option", /one of awq, gptq/);
    await assertRefused({ method: "gguf:Q9_K" }, "invalid_option", /Q4_K_M/);
    await assertRefused({ method: "fp8", bits: 4 }, "invalid_option", /bits/);
    await assertRefused({ method: "gptq", bits: 5 }, "invalid_option", /2, 3, 4 or 8/);
    await assertRefused({ method: "nf4", groupSize: 32 }, "invalid_option", /group_size/);
    await assertRefused({ ignore: ["re:("] }, "invalid_option", /regular expression/);
    await assertRefused({ ignore: ["model.layers", "lm_head"] }, "invalid_option", /nothing to quantise/);
  });

  test("awq and gptq without texts, or with too few", async () => {
    await assertRefused({ method: "awq" }, "invalid_option", /calibration/);
    await assertRefused({ method: "gptq" }, "invalid_option", /calibration/);
    const short = join(scratch, "short.txt");
    writeFileSync(short, "Hello.");
    await assertRefused(
      { method: "awq", groupSize: 32, calibration: short },
      "invalid_option",
      /holds 6 tokens/,
    );
    await assertRefused(
      { method: "awq", groupSize: 32, calibration: join(scratch, "none") },
      "artifact_not_found",
      /no such file/,
    );
    const broken = join(scratch, "broken.jsonl");
    writeFileSync(broken, '{"text": "a"}\n{"txt": "b"}\n');
    await assertRefused({ calibration: broken }, "invalid_option", /line 2/);
    writeFileSync(broken, "\n{");
    await assertRefused({ calibration: broken }, "invalid_option", /line 2 of .*is not JSON/);
    writeFileSync(broken, Buffer.from([0xff, 0xfe]));
    await assertRefused({ calibration: broken }, "invalid_option", /UTF-8/);
  });

  test("a group size that does not divide names the tensor", async () => {
    await assertRefused(
      { method: "gptq", roundToNearest: true, groupSize: 64 },
      "artifact_unsupported",
      /"model\.layers\.0\.mlp\.down_proj\.weight" has 96 inputs/,
    );
    const out = nextOut();
    await quantize(tiny, {
      method: "gptq",
      roundToNearest: true,
      groupSize: 64,
      ignore: ["lm_head", "down_proj"],
      out,
    });
    const config = JSON.parse(readFileSync(join(out, "config.json"), "utf8")) as {
      quantization_config: { modules_to_not_convert: string[] };
    };
    assert.deepEqual(config.quantization_config.modules_to_not_convert.toSorted(), [
      "lm_head",
      ...[0, 1, 2].map((layer) => `model.layers.${layer}.mlp.down_proj`),
    ]);
  });

  test("models that are quantised already, or GGUF files", async () => {
    const once = nextOut();
    await quantize(tiny, { method: "fp8", out: once });
    await assertRefused({}, "artifact_unsupported", /quantised already/, once);
    const gguf = nextOut();
    await quantize(tiny, { method: "gguf:F16", out: gguf });
    await assertRefused({}, "artifact_unsupported", /GGUF/, gguf);
  });

  test("sequences longer than the texts are as long as those; a count that is none is refused", async () => {
    const options = { method: "awq", groupSize: 32, calibration: texts, numThreads: 1 } as const;
    const long = join(scratch, "long");
    writeTinyFolder(long, { type: "bf16", numLayers: 1, maxPositionEmbeddings: 100_000 });
    const { calibration, modules } = await quantize(long, {
      ...options,
      sampleTokens: 65_536,
      out: nextOut(),
    });
    assert.equal(calibration?.sequences, 1);
    assert.equal(calibration.tokens, readFileSync(texts).byteLength);
    assert.ok(modules.every(({ error }) => error > 0));
    await assertRefused({ numSamples: 3 }, "invalid_option", /calibration_samples means nothing without/);
    await assertRefused({ ...options, numSamples: 0 }, "invalid_option", /calibration_samples/);
    await assertRefused({ ...options, sampleTokens: 1.5 }, "invalid_option", /calibration_tokens/);
  });

  test("a tokenizer with more ids than the embedding has rows", async () => {
    const mismatched = join(scratch, "mismatched");
    writeTinyFolder(mismatched, { type: "bf16", numLayers: 1 });
    const path = join(mismatched, "tokenizer.json");
    const json = JSON.parse(readFileSync(path, "utf8")) as {
      added_tokens: { id: number; content: string }[];
    };
    json.added_tokens.push({ ...json.added_tokens[0]!, id: 300, content: "fox" });
    writeFileSync(path, JSON.stringify(json));
    await assertRefused({ calibration: texts }, "artifact_invalid", /the id 300.*260 rows/, mismatched);
  });

  test("a licence may be a folder", async () => {
    const licensed = join(scratch, "licensed");
    writeTinyFolder(licensed, { type: "bf16", numLayers: 1 });
    mkdirSync(join(licensed, "LICENSES"));
    writeFileSync(join(licensed, "LICENSE.md"), "terms");
    const out = nextOut();
    await quantize(licensed, { method: "fp8", out });
    assert.ok(existsSync(join(out, "LICENSE.md")) && !existsSync(join(out, "LICENSES")));
  });

  test("a folder that exists is left alone", async () => {
    const out = nextOut();
    mkdirSync(out);
    writeFileSync(join(out, "mine"), "");
    await assert.rejects(quantize(tiny, { method: "fp8", out }), {
      code: "invalid_option",
      message: /exists already/,
    });
    assert.deepEqual(readdirSync(out), ["mine"]);
    const link = nextOut();
    symlinkSync(join(scratch, "nowhere"), link);
    await assert.rejects(quantize(tiny, { method: "fp8", out: link }), { message: /exists already/ });
    const empty = nextOut();
    mkdirSync(empty);
    await quantize(tiny, { method: "fp8", out: empty });
    assert.ok(existsSync(join(empty, "config.json")));
  });

  test("a full disk leaves nothing under the final name", { skip: !existsSync("/dev/full") }, async () => {
    const out = nextOut();
    const artifact = join(`${out}.partial`, "artifact");
    mkdirSync(artifact, { recursive: true });
    symlinkSync("/dev/full", join(artifact, "model-00002-of-00005.safetensors"));
    await assert.rejects(quantize(tiny, { method: "fp8", out }), { code: "disk_full", message: /goes on/ });
    assert.ok(!existsSync(out));
    rmSync(join(artifact, "model-00002-of-00005.safetensors"));
    const whole = nextOut();
    await quantize(tiny, { method: "fp8", out: whole });
    await quantize(tiny, { method: "fp8", out });
    assert.deepEqual(folderContents(out), folderContents(whole));
  });

  test("weights that are not finite are named", async () => {
    const broken = join(scratch, "broken");
    writeTinyFolder(broken, { type: "bf16", intermediateSize: 64, numLayers: 1 });
    const name = "model.layers.0.mlp.up_proj.weight";
    editSafetensors(join(broken, "model.safetensors"), (tensors) => {
      const found = tensors.get(name);
      assert.ok(found);
      found.data.set([0x80, 0x7f], 10);
    });
    for (const method of ["fp8", "int8", "nf4", "gguf:Q4_K_M"]) {
      await assertRefused({ method }, "artifact_invalid", /"model\.layers\.0\.mlp\.up_proj\.weight"/, broken);
    }
  });
});
