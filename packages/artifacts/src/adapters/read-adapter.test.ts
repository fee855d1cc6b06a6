import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import type { ErrorCode } from "@octavo/protocol/errors";
import type { AdaptableModule } from "../program/model-plan.js";
import { writeSafetensors, type TensorToWrite } from "../testing/write-safetensors.js";
import { readAdapter } from "./read-adapter.js";

const root = mkdtempSync(join(tmpdir(), "octavo-adapter-"));
after(() => rmSync(root, { recursive: true }));
let numFolders = 0;

const q = "model.layers.0.self_attn.q_proj";
const up = "model.layers.10.mlp.up_proj";
const adaptable = new Map<string, AdaptableModule>([
  [q, { site: 0, column: 0, rows: 16, cols: 8 }],
  [up, { site: 1, column: 4, rows: 12, cols: 8 }],
]);

function tensor(name: string, ...shape: number[]): TensorToWrite {
  const data = new Float32Array(shape.reduce((product, size) => product * size, 1)).fill(0.5);
  return { name, type: "f32", shape, data };
}

function pair(module: string, rank: number, rows: number, cols = 8): TensorToWrite[] {
  const prefix = `base_model.model.${module}`;
  return [tensor(`${prefix}.lora_A.weight`, rank, cols), tensor(`${prefix}.lora_B.weight`, rows, rank)];
}

const plainConfig = { peft_type: "LORA", r: 2, lora_alpha: 6, bias: "none", target_modules: ["q_proj"] };

/** A folder as PEFT would save it. */
function folder(
  tensors: readonly TensorToWrite[] | undefined,
  config: object | string = plainConfig,
): string {
  const path = join(root, String(numFolders++));
  mkdirSync(path);
  if (config !== "")
    writeFileSync(
      join(path, "adapter_config.json"),
      typeof config === "string" ? config : JSON.stringify(config),
    );
  if (tensors !== undefined) writeSafetensors(join(path, "adapter_model.safetensors"), tensors);
  return path;
}

test("modules with their place, rank and scale", () => {
  const config = { ...plainConfig, alpha_pattern: { "layers.10.mlp.up_proj": 8, up_proj: 1, proj: 7 } };
  const modules = readAdapter(folder([...pair(q, 2, 16), ...pair(up, 4, 12)], config), adaptable, 8);
  assert.deepEqual(
    modules.map(({ name, rank, scale, target }) => ({ name, rank, scale, site: target.site })),
    [
      { name: q, rank: 2, scale: 3, site: 0 },
      { name: up, rank: 4, scale: 2, site: 1 },
    ],
  );
});

test("rank-stabilised scales, patterns anchored and escaped as PEFT's users write them, names of older files", () => {
  const config = {
    ...plainConfig,
    use_rslora: true,
    alpha_pattern: { "^model\\.layers\\.0\\.self_attn\\.q_proj$": 10 },
  };
  const tensors = pair(q, 4, 16).map((one) => ({
    ...one,
    name: one.name.replace(".weight", ".default.weight"),
  }));
  const [module] = readAdapter(folder(tensors, config), adaptable, 8);
  assert.equal(module?.scale, 10 / Math.sqrt(4));
});

const good = pair(q, 2, 16);
const change = (fields: object): object => ({ ...plainConfig, ...fields });
const cases: readonly (readonly [string, () => string, ErrorCode, RegExp])[] = [
  ["no folder", () => join(root, "missing"), "artifact_not_found", /holds no adapter_config\.json/],
  ["no configuration", () => folder(good, ""), "artifact_not_found", /adapter_config\.json/],
  ["no weights", () => folder(undefined), "artifact_invalid", /holds no adapter_model\.safetensors/],
  ["broken JSON", () => folder(good, "{"), "artifact_invalid", /invalid JSON/],
  ["deep JSON", () => folder(good, `{"a":${"[".repeat(9000)}`), "artifact_invalid", /nests more than/],
  ["no rank", () => folder(good, { peft_type: "LORA", lora_alpha: 1 }), "artifact_invalid", /r: /],
  ["another method", () => folder(good, change({ peft_type: "IA3" })), "artifact_unsupported", /type IA3/],
  ["DoRA", () => folder(good, change({ use_dora: true })), "artifact_unsupported", /use_dora/],
  [
    "trained modules",
    () => folder(good, change({ modules_to_save: ["lm_head"] })),
    "artifact_unsupported",
    /modules_to_save/,
  ],
  [
    "trained tokens",
    () => folder(good, change({ trainable_token_indices: [1] })),
    "artifact_unsupported",
    /trainable_token_indices/,
  ],
  ["trained biases", () => folder(good, change({ bias: "all" })), "artifact_unsupported", /bias: "all"/],
  ["biases of B", () => folder(good, change({ lora_bias: true })), "artifact_unsupported", /lora_bias/],
  [
    "a hostile pattern",
    () => folder(good, change({ alpha_pattern: { "(a+)+$": 1 } })),
    "artifact_unsupported",
    /alpha_pattern/,
  ],
  ["no tensors", () => folder([]), "artifact_invalid", /no tensors/],
  ["half a pair", () => folder(good.slice(0, 1)), "artifact_invalid", /only one of lora_A and lora_B/],
  [
    "a module the model lacks",
    () => folder(pair("model.layers.0.mlp.experts.3.w1", 2, 16)),
    "artifact_invalid",
    /lacks; of its 2 modules adapters can reach q_proj, up_proj/,
  ],
  [
    "the output head",
    () => folder(pair("lm_head", 2, 16)),
    "artifact_unsupported",
    /output head cannot be adapted/,
  ],
  [
    "a rank beyond the bound",
    () => folder(pair(q, 9, 16)),
    "artifact_unsupported",
    /rank 9 .*at most 8 .*--max-lora-rank/,
  ],
  ["rank 0", () => folder(pair(q, 0, 16)), "artifact_invalid", /rank 0/],
  [
    "A of another width",
    () => folder(pair(q, 2, 16, 9)),
    "artifact_invalid",
    /shape \[2, 9\]; .*must be \[2, 8\]/,
  ],
  [
    "B of another model",
    () => folder(pair(q, 2, 17)),
    "artifact_invalid",
    /shape \[17, 2\]; .*must be \[16, 2\]/,
  ],
  [
    "A and B of different ranks",
    () => folder([good[0]!, pair(q, 3, 16)[1]!]),
    "artifact_invalid",
    /must be \[16, 2\]/,
  ],
  [
    "the same module twice",
    () => folder([...good, { ...good[0]!, name: good[0]!.name.replace(".weight", ".x.weight") }]),
    "artifact_invalid",
    /two down projections/,
  ],
  [
    "DoRA's magnitudes",
    () => folder([...good, tensor(`base_model.model.${q}.lora_magnitude_vector`, 16)]),
    "artifact_unsupported",
    /DoRA/,
  ],
  [
    "embeddings in LoRA's form",
    () => folder([...good, tensor("base_model.model.model.embed_tokens.lora_embedding_A", 2, 8)]),
    "artifact_unsupported",
    /trained embeddings/,
  ],
  [
    "embeddings in full",
    () => folder([...good, tensor("base_model.model.lm_head.weight", 4, 8)]),
    "artifact_unsupported",
    /output heads/,
  ],
  [
    "a bias",
    () => folder([...good, tensor(`base_model.model.${q}.bias`, 16)]),
    "artifact_unsupported",
    /biases/,
  ],
  [
    "a module in full",
    () => folder([...good, tensor("base_model.model.model.norm.weight", 8)]),
    "artifact_unsupported",
    /modules_to_save/,
  ],
];

for (const [name, make, code, message] of cases) {
  test(`refused: ${name}`, () => {
    assert.throws(() => readAdapter(make(), adaptable, 8), { code, message });
  });
}

test("a pickle is refused by name", () => {
  const path = folder(undefined);
  writeFileSync(join(path, "adapter_model.bin"), "");
  assert.throws(() => readAdapter(path, adaptable, 8), { code: "artifact_unsupported", message: /pickle/ });
});
