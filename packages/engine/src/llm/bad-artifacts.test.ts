import assert from "node:assert/strict";
import { readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { OctavoError } from "@octavo/protocol/errors";
import { ChangedCheckpoint } from "@octavo/artifacts/testing/model-fixtures";
import { LLM } from "./llm.js";
import type { LoadOptions } from "./load-options.js";

const sizes = { maxModelLen: 64, maxNumSeqs: 2, maxNumBatchedTokens: 64, numThreads: 1 };

interface BadArtifact {
  readonly what: string;
  readonly checkpoint?: string;
  readonly config?: Readonly<Record<string, unknown>>;
  readonly spoil?: (folder: string) => void;
  readonly dtype?: LoadOptions["dtype"];
  readonly code: string;
  readonly message: RegExp;
}

const artifacts: readonly BadArtifact[] = [
  {
    what: "NaN in a matrix",
    spoil: (folder) => overwrite(folder, "model.layers.1.mlp.down_proj.weight", 100, Number.NaN),
    code: "artifact_invalid",
    message: /model\.layers\.1\.mlp\.down_proj\.weight/,
  },
  {
    what: "infinity in the middle of a stacked projection",
    spoil: (folder) =>
      overwrite(folder, "model.layers.0.self_attn.k_proj.weight", 7, Number.NEGATIVE_INFINITY),
    code: "artifact_invalid",
    message: /model\.layers\.0\.self_attn\.k_proj\.weight/,
  },
  {
    what: "NaN in a norm",
    spoil: (folder) => overwrite(folder, "model.norm.weight", 3, Number.NaN),
    code: "artifact_invalid",
    message: /model\.norm\.weight/,
  },
  {
    what: "a layer less than the configuration says",
    config: { num_hidden_layers: 3 },
    code: "artifact_invalid",
    message: /lacks the tensor "model\.layers\.2\.input_layernorm\.weight"/,
  },
  {
    what: "another size than the configuration says",
    config: { intermediate_size: 128 },
    code: "artifact_invalid",
    message: /has the shape \[96, 64\]; the model's configuration implies \[128, 64\]/,
  },
  {
    what: "a vocabulary that the embedding does not have",
    config: { vocab_size: 300 },
    code: "artifact_invalid",
    message: /embed_tokens\.weight.*\[272, 64\].*\[300, 64\]/,
  },
  {
    what: "an untied head that is not there",
    checkpoint: "qwen3",
    config: { tie_word_embeddings: false },
    code: "artifact_invalid",
    message: /lacks the tensor "lm_head\.weight"/,
  },
  {
    what: "an architecture nobody knows",
    config: { architectures: ["MysteryForCausalLM"], model_type: "mystery" },
    code: "artifact_unsupported",
    message: /MysteryForCausalLM.*LlamaForCausalLM/,
  },
  {
    what: "a file cut short",
    spoil: (folder) => truncateSync(join(folder, "model.safetensors"), 200_000),
    code: "artifact_invalid",
    message: /model\.safetensors/,
  },
  {
    what: "a shard that is missing",
    checkpoint: "qwen2",
    spoil: (folder) => rmSync(join(folder, "model-00002-of-00003.safetensors")),
    code: "artifact_not_found",
    message: /model-00002-of-00003\.safetensors/,
  },
  {
    what: "no tokenizer",
    spoil: (folder) => rmSync(join(folder, "tokenizer.json")),
    code: "artifact_not_found",
    message: /tokenizer\.json/,
  },
  {
    what: "weights beyond the range of the dtype asked for",
    spoil: (folder) => overwrite(folder, "model.layers.0.mlp.up_proj.weight", 5, 1e6),
    dtype: "f16",
    code: "artifact_invalid",
    message: /model\.layers\.0\.mlp\.up_proj\.weight/,
  },
];

describe("bad artifacts", () => {
  for (const { what, checkpoint = "llama3", config = {}, spoil, dtype, code, message } of artifacts) {
    test(what, async () => {
      using folder = new ChangedCheckpoint(checkpoint, config);
      spoil?.(folder.path);
      await assert.rejects(LLM.load(folder.path, { ...sizes, dtype }), (error) => {
        assert.ok(error instanceof OctavoError, String(error));
        assert.equal(error.code, code, error.message);
        assert.match(error.message, message);
        return true;
      });
    });
  }
});

/** Writes one f32 element of a tensor in model.safetensors. */
function overwrite(folder: string, tensor: string, element: number, value: number): void {
  const path = join(folder, "model.safetensors");
  const bytes = readFileSync(path);
  const headerBytes = Number(bytes.readBigUInt64LE(0));
  const header = JSON.parse(bytes.toString("utf8", 8, 8 + headerBytes)) as Record<
    string,
    { readonly data_offsets: readonly [number, number] }
  >;
  const start = header[tensor]?.data_offsets[0];
  assert.ok(start !== undefined, `no tensor ${tensor}`);
  bytes.writeFloatLE(value, 8 + headerBytes + start + 4 * element);
  writeFileSync(path, bytes);
}
