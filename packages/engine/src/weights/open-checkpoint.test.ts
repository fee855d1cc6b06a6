import assert from "node:assert/strict";
import { cpSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { assertRejected } from "../testing/artifact-assertions.js";
import { dequantize } from "../testing/dequantize.js";
import {
  tinyGgufMetadata,
  tinyGgufTensors,
  tinyModel,
  writeTinyFolder,
  writeTinyGguf,
  type TinyModel,
} from "../testing/tiny-checkpoint.js";
import { encodeGguf, writeGguf, type GgufValue } from "../testing/write-gguf.js";
import type { TensorToWrite } from "../testing/write-safetensors.js";
import { ArtifactFile } from "./artifact-file.js";
import type { Checkpoint } from "./checkpoint.js";
import { openCheckpoint } from "./open-checkpoint.js";

const scratch = mkdtempSync(join(tmpdir(), "octavo-checkpoint-"));
after(() => rmSync(scratch, { recursive: true, force: true }));
let counter = 0;

function freshPath(): string {
  return join(scratch, String(counter++));
}

function tinyFolder(
  changes: Partial<TinyModel> = {},
  options: Parameters<typeof writeTinyFolder>[2] = {},
  files: Readonly<Record<string, unknown>> = {},
): string {
  const path = freshPath();
  writeTinyFolder(path, changes, options);
  for (const [name, content] of Object.entries(files)) {
    writeFileSync(join(path, name), typeof content === "string" ? content : JSON.stringify(content));
  }
  return path;
}

function tinyGguf(changes: Partial<TinyModel> = {}, metadata: Record<string, GgufValue> = {}): string {
  const path = `${freshPath()}.gguf`;
  writeTinyGguf(path, changes, metadata);
  return path;
}

function values(checkpoint: Checkpoint, name: string): Float32Array {
  const tensor = checkpoint.tensors.get(name);
  assert.ok(tensor !== undefined, `${name} is missing`);
  const file = ArtifactFile.open(tensor.path);
  const bytes = file.read(tensor.offset, tensor.byteLength);
  file[Symbol.dispose]();
  return dequantize(tensor.type as "f32", bytes);
}

describe("a folder", () => {
  it("opens whole and sharded alike", async () => {
    const whole = await openCheckpoint(tinyFolder({ type: "bf16" }), { name: "tiny" });
    const sharded = await openCheckpoint(tinyFolder({ type: "bf16" }, { shards: 3 }));
    assert.equal(whole.format, "safetensors");
    assert.equal(whole.name, "tiny");
    assert.equal(whole.config.dtype, "bf16");
    assert.deepEqual(whole.config, sharded.config);
    assert.deepEqual([...whole.tensors.keys()].toSorted(), [...sharded.tensors.keys()].toSorted());
    for (const name of whole.tensors.keys()) assert.deepEqual(values(whole, name), values(sharded, name));
  });

  it("takes sampling defaults and joins end tokens from all that name them", async () => {
    const path = tinyFolder(
      {},
      { config: { eos_token_id: 3 } },
      {
        "generation_config.json": {
          eos_token_id: [5, 257, 99999],
          temperature: 0.6,
          top_k: 20,
          top_p: 0.95,
          min_p: null,
        },
      },
    );
    const { generation, config } = await openCheckpoint(path);
    assert.deepEqual(generation, { temperature: 0.6, topK: 20, topP: 0.95 });
    // 257 is also the tokenizer's eos_token; 99999 is beyond the vocabulary.
    assert.deepEqual(config.eosTokenIds, [3, 5, 257]);
  });

  it("stops at the tokenizer's end token although neither config names it", async () => {
    const path = tinyFolder({}, { config: { eos_token_id: 3 } }, { "generation_config.json": {} });
    assert.deepEqual((await openCheckpoint(path)).config.eosTokenIds, [3, 257]);
  });

  it("reads templates from every place, files first", async () => {
    const path = tinyFolder(
      {},
      {},
      {
        "tokenizer_config.json": {
          bos_token: { content: "<|bos|>", special: true },
          eos_token: "<|eos|>",
          pad_token: null,
          chat_template: [
            { name: "default", template: "from config" },
            { name: "tool_use", template: "tools" },
          ],
        },
        "special_tokens_map.json": { pad_token: "<|user|>", eos_token: "ignored" },
      },
    );
    const first = (await openCheckpoint(path)).tokenizer.config;
    assert.deepEqual([first.bosToken, first.eosToken, first.padToken], ["<|bos|>", "<|eos|>", "<|user|>"]);
    assert.equal(first.chatTemplate, "from config");
    assert.deepEqual([...first.namedChatTemplates], [["tool_use", "tools"]]);
    writeFileSync(join(path, "chat_template.json"), JSON.stringify({ chat_template: "from json" }));
    assert.equal((await openCheckpoint(path)).tokenizer.config.chatTemplate, "from json");
    writeFileSync(join(path, "chat_template.jinja"), "from jinja");
    mkdirSync(join(path, "additional_chat_templates"));
    writeFileSync(join(path, "additional_chat_templates", "rag.jinja"), "rag");
    const last = (await openCheckpoint(path)).tokenizer.config;
    assert.equal(last.chatTemplate, "from jinja");
    assert.deepEqual([...last.namedChatTemplates.keys()].toSorted(), ["rag", "tool_use"]);
  });

  it("says what is missing", async () => {
    await assertRejected(
      openCheckpoint(join(scratch, "nowhere")),
      "artifact_not_found",
      /no such file or folder/,
    );
    const empty = freshPath();
    mkdirSync(empty);
    await assertRejected(openCheckpoint(empty), "artifact_not_found", /neither a config\.json nor a \.gguf/);
    for (const [file, code, message] of [
      ["config.json", "artifact_not_found", /config\.json/],
      ["model.safetensors", "artifact_not_found", /no \.safetensors/],
      ["tokenizer.json", "artifact_not_found", /tokenizer is needed/],
    ] as const) {
      const path = tinyFolder();
      rmSync(join(path, file));
      await assertRejected(openCheckpoint(path), code, message);
    }
  });

  it("refuses pickled weights, slow tokenizers and files that are no model", async () => {
    const pickled = tinyFolder({}, {}, { "pytorch_model.bin": "x" });
    rmSync(join(pickled, "model.safetensors"));
    await assertRejected(openCheckpoint(pickled), "artifact_unsupported", /pytorch_model\.bin.*safetensors/);
    const slow = tinyFolder({}, {}, { "tokenizer.model": "x" });
    rmSync(join(slow, "tokenizer.json"));
    await assertRejected(
      openCheckpoint(slow),
      "artifact_unsupported",
      /tokenizer\.model but no tokenizer\.json/,
    );
    const path = tinyFolder();
    await assertRejected(
      openCheckpoint(join(path, "config.json")),
      "artifact_invalid",
      /neither a folder nor a \.gguf/,
    );
  });

  it("refuses broken JSON wherever it lies, naming file and field", async () => {
    for (const [name, content, message] of [
      ["config.json", "{", /config\.json: holds invalid JSON/],
      ["config.json", `{"a":${"[".repeat(70)}${"]".repeat(70)}}`, /nests/],
      ["generation_config.json", { temperature: "warm" }, /generation_config\.json: temperature/],
      ["generation_config.json", { top_p: 7 }, /top_p/],
      ["tokenizer.json", "[]", /tokenizer\.json: is not a JSON object/],
      ["tokenizer_config.json", { chat_template: 5 }, /tokenizer_config\.json: chat_template/],
      ["chat_template.jinja", "\u0000", undefined],
    ] as const) {
      const path = tinyFolder({}, {}, { [name]: content });
      if (message === undefined) await openCheckpoint(path);
      else await assertRejected(openCheckpoint(path), "artifact_invalid", message);
    }
  });

  it("names an unsupported architecture before it looks for weights", async () => {
    const path = tinyFolder({}, { config: { architectures: ["MambaForCausalLM"] } });
    rmSync(join(path, "model.safetensors"));
    const options = { architectures: ["LlamaForCausalLM"] };
    await assertRejected(
      openCheckpoint(path, options),
      "artifact_unsupported",
      /"MambaForCausalLM".*LlamaForCausalLM/,
    );
  });
});

describe("a GGUF file", () => {
  it("says the same of a model as the folder it was converted from", async () => {
    for (const architecture of ["LlamaForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM"] as const) {
      for (const tieWordEmbeddings of [false, true]) {
        const folder = await openCheckpoint(tinyFolder({ architecture, tieWordEmbeddings }));
        const gguf = await openCheckpoint(tinyGguf({ architecture, tieWordEmbeddings }));
        assert.equal(gguf.format, "gguf");
        const layout = architecture === "LlamaForCausalLM" ? "interleaved" : "neox";
        const { rope, rmsNormEps } = gguf.config;
        assert.ok(Math.abs(rmsNormEps - 1e-5) < 1e-10);
        assert.deepEqual(
          { ...gguf.config, rmsNormEps: 1e-5 },
          { ...folder.config, rope: { ...folder.config.rope, layout } },
        );
        assert.equal(rope.layout, layout);
        assert.deepEqual([...gguf.tensors.keys()], [...folder.tensors.keys()]);
        for (const [name, tensor] of folder.tensors) {
          assert.deepEqual(gguf.tensors.get(name)?.shape, tensor.shape);
          if (!/[qk]_proj\.weight/.test(name)) assert.deepEqual(values(gguf, name), values(folder, name));
        }
      }
    }
  });

  it("is the llama architecture for Mistral, and quantized as soon as a tensor is", async () => {
    const { config } = await openCheckpoint(tinyGguf({ architecture: "MistralForCausalLM", type: "q4_0" }));
    assert.deepEqual(
      [config.architecture, config.rope.layout, config.dtype],
      ["LlamaForCausalLM", "interleaved", "quantized"],
    );
  });

  it("hands its vocabulary and templates to the tokenizer", async () => {
    const { tokenizer } = await openCheckpoint(
      tinyGguf({}, { "tokenizer.chat_template.tool_use": { type: "string", value: "tools" } }),
    );
    assert.equal(tokenizer.kind, "gguf");
    assert.equal((tokenizer.metadata.get("tokenizer.ggml.tokens") as string[]).length, 260);
    assert.deepEqual([tokenizer.config.bosToken, tokenizer.config.eosToken], ["<|bos|>", "<|eos|>"]);
    assert.match(tokenizer.config.chatTemplate ?? "", /message/);
    assert.deepEqual([...tokenizer.config.namedChatTemplates], [["tool_use", "tools"]]);
  });

  it("ends at every end token that the vocabulary marks as one", async () => {
    const metadata = tinyGgufMetadata(tinyModel());
    const tokens = [...(metadata["tokenizer.ggml.tokens"] as { value: readonly string[] }).value];
    tokens[258] = "<|im_end|>";
    tokens[70] = "<|eot_id|>";
    const path = tinyGguf(
      {},
      {
        "tokenizer.ggml.tokens": { type: "array", of: "string", value: tokens },
        "tokenizer.ggml.eot_token_id": { type: "u32", value: 259 },
      },
    );
    // 70 is spelled like an end token but is an ordinary one.
    assert.deepEqual((await openCheckpoint(path)).config.eosTokenIds, [257, 259, 258]);
  });

  it("reads rope factors, scalings and windows", async () => {
    const model = tinyModel();
    const factors: TensorToWrite = {
      name: "rope_freqs.weight",
      type: "f32",
      shape: [8],
      data: Float32Array.from({ length: 8 }, (_, i) => i + 1),
    };
    const path = `${freshPath()}.gguf`;
    writeGguf(path, { metadata: tinyGgufMetadata(model), tensors: [...tinyGgufTensors(model), factors] });
    const factored = await openCheckpoint(path);
    assert.deepEqual(factored.config.rope.scaling, { kind: "factors", factors: factors.data });
    assert.ok(!factored.tensors.has("rope_freqs.weight"));

    const scaling = async (more: Record<string, GgufValue>): Promise<unknown> => {
      return (await openCheckpoint(tinyGguf({}, more))).config.rope.scaling;
    };
    const kind = (value: string): Record<string, GgufValue> => ({
      "llama.rope.scaling.type": { type: "string", value },
    });
    const factor: Record<string, GgufValue> = { "llama.rope.scaling.factor": { type: "f32", value: 4 } };
    assert.deepEqual(await scaling({ ...kind("linear"), ...factor }), { kind: "linear", factor: 4 });
    assert.deepEqual(await scaling(factor), { kind: "linear", factor: 4 });
    assert.deepEqual(await scaling({ ...kind("none"), ...factor }), { kind: "none" });
    assert.deepEqual(await scaling({ ...kind("yarn"), ...factor }), {
      kind: "yarn",
      factor: 4,
      originalMaxPositions: 256,
      betaFast: 32,
      betaSlow: 1,
      attentionFactor: undefined,
      mscale: undefined,
      mscaleAllDim: undefined,
      truncate: true,
    });
    await assertRejected(
      openCheckpoint(tinyGguf({}, kind("longrope"))),
      "artifact_unsupported",
      /"longrope"/,
    );
    const windowed = tinyGguf({}, { "llama.attention.sliding_window": { type: "u32", value: 128 } });
    assert.deepEqual((await openCheckpoint(windowed)).config.slidingWindows, [128, 128]);
  });

  it("refuses metadata that is missing, of another type, or beyond reason", async () => {
    const u32 = (value: number): GgufValue => ({ type: "u32", value });
    for (const [metadata, code, message] of [
      [
        { "general.architecture": { type: "string", value: "mamba" } },
        "artifact_unsupported",
        /"mamba"; supported are llama, qwen2, qwen2moe, qwen3, /,
      ],
      [{ "general.architecture": u32(3) }, "artifact_invalid", /general\.architecture is not a string/],
      [{ "llama.expert_count": u32(8) }, "artifact_invalid", /no llama\.expert_used_count/],
      [{ "llama.block_count": u32(4_000_000_000) }, "artifact_invalid", /numLayers 4000000000/],
      [
        { "llama.context_length": { type: "string", value: "long" } },
        "artifact_invalid",
        /context_length is not a number/,
      ],
      [{ "llama.attention.head_count_kv": u32(3) }, "artifact_invalid", /3 key-value heads/],
      [
        { "llama.attention.head_count_kv": { type: "array", of: "u32", value: [2, 4] } },
        "artifact_invalid",
        /differs between layers/,
      ],
      [{ "llama.attention.value_length": u32(8) }, "artifact_unsupported", /value heads of 8/],
      [{ "llama.attention.key_length": u32(0) }, "artifact_unsupported", /key heads of 0/],
      [{ "llama.rope.freq_base": { type: "f32", value: NaN } }, "artifact_invalid", /rope base NaN/],
      [
        { "tokenizer.ggml.tokens": { type: "array", of: "u8", value: [1] } },
        "artifact_invalid",
        /no tokenizer\.ggml\.tokens/,
      ],
      [
        {
          "tokenizer.ggml.tokens": {
            type: "array",
            of: "string",
            value: Array.from({ length: 999 }, String),
          },
        },
        "artifact_invalid",
        /999 tokens but embeddings for 260/,
      ],
    ] as const) {
      await assertRejected(openCheckpoint(tinyGguf({}, metadata)), code, message);
    }
    const model = tinyModel();
    const uniform = tinyGguf(
      {},
      { "llama.attention.head_count_kv": { type: "array", of: "u32", value: [2, 2] } },
    );
    assert.equal((await openCheckpoint(uniform)).config.numKvHeads, 2);
    for (const key of ["general.architecture", "llama.block_count", "llama.context_length"]) {
      const metadata = tinyGgufMetadata(model);
      delete metadata[key];
      const path = `${freshPath()}.gguf`;
      writeGguf(path, { metadata, tensors: tinyGgufTensors(model) });
      await assertRejected(openCheckpoint(path), "artifact_invalid", new RegExp(`has no ${key}`));
    }
  });

  it("refuses tensors that the architecture does not have", async () => {
    const model = tinyModel();
    const path = `${freshPath()}.gguf`;
    const extra: TensorToWrite = {
      name: "blk.0.ffn_gate_inp.weight",
      type: "f32",
      shape: [4],
      data: new Float32Array(4),
    };
    writeGguf(path, { metadata: tinyGgufMetadata(model), tensors: [...tinyGgufTensors(model), extra] });
    await assertRejected(openCheckpoint(path), "artifact_unsupported", /ffn_gate_inp.*llama model/);
    writeGguf(path, { metadata: tinyGgufMetadata(model), tensors: tinyGgufTensors(model).slice(1) });
    await assertRejected(openCheckpoint(path), "artifact_invalid", /no token_embd\.weight/);
  });
});

describe("GGUF in a folder", () => {
  it("is found when it is the only model there", async () => {
    const folder = freshPath();
    mkdirSync(folder);
    renameSync(tinyGguf(), join(folder, "tiny.gguf"));
    writeFileSync(join(folder, "mmproj-tiny.gguf"), "a projector");
    assert.equal((await openCheckpoint(folder)).format, "gguf");
    cpSync(join(folder, "tiny.gguf"), join(folder, "other.gguf"));
    await assertRejected(
      openCheckpoint(folder),
      "artifact_invalid",
      /2 GGUF models; name one of other\.gguf, tiny\.gguf/,
    );
  });
});

describe("a split GGUF model", () => {
  const model = tinyModel();

  /** Splits as llama.cpp's gguf-split does: metadata in the first, tensors spread. */
  function split(
    count: number,
    spoil: (index: number, metadata: Record<string, GgufValue>) => void = () => undefined,
  ): string {
    const folder = freshPath();
    mkdirSync(folder);
    const tensors = tinyGgufTensors(model);
    const number = (value: number): string => String(value).padStart(5, "0");
    for (let index = 0; index < count; index++) {
      const metadata: Record<string, GgufValue> = {
        ...(index === 0 && tinyGgufMetadata(model)),
        "split.no": { type: "u16", value: index },
        "split.count": { type: "u16", value: count },
        "split.tensors.count": { type: "i32", value: tensors.length },
      };
      spoil(index, metadata);
      const part = tensors.filter((_, at) => at % count === index);
      writeGguf(join(folder, `tiny-${number(index + 1)}-of-${number(count)}.gguf`), {
        metadata,
        tensors: part,
      });
    }
    return folder;
  }

  it("opens by its folder or by any of its files", async () => {
    const folder = split(3);
    const whole = await openCheckpoint(tinyGguf());
    for (const path of [
      folder,
      join(folder, "tiny-00001-of-00003.gguf"),
      join(folder, "tiny-00002-of-00003.gguf"),
    ]) {
      const checkpoint = await openCheckpoint(path);
      assert.deepEqual(checkpoint.config, whole.config);
      assert.deepEqual([...checkpoint.tensors.keys()].toSorted(), [...whole.tensors.keys()].toSorted());
      for (const name of whole.tensors.keys())
        assert.deepEqual(values(checkpoint, name), values(whole, name));
    }
  });

  it("names a part that is missing", async () => {
    const folder = split(3);
    rmSync(join(folder, "tiny-00002-of-00003.gguf"));
    await assertRejected(
      openCheckpoint(folder),
      "artifact_not_found",
      /tiny-00002-of-00003\.gguf: part 2 of 3/,
    );
  });

  it("refuses parts that contradict their names or each other", async () => {
    const swapped = split(2, (index, metadata) => (metadata["split.no"] = { type: "u16", value: 1 - index }));
    await assertRejected(
      openCheckpoint(swapped),
      "artifact_invalid",
      /says it is part 2 of 2, its name says 1 of 2/,
    );
    const short = split(2, (_, metadata) => (metadata["split.tensors.count"] = { type: "i32", value: 99 }));
    await assertRejected(openCheckpoint(short), "artifact_invalid", /99/);
    const renamed = join(split(2), "tiny-00001-of-00002.gguf");
    const alone = `${freshPath()}.gguf`;
    renameSync(renamed, alone);
    await assertRejected(openCheckpoint(alone), "artifact_invalid", /one of 2 split files/);
    const absurd = join(scratch, "absurd-00009-of-00002.gguf");
    writeFileSync(absurd, encodeGguf({ metadata: {}, tensors: [] }));
    await assertRejected(openCheckpoint(absurd), "artifact_invalid", /part 9 of 2/);
  });
});
