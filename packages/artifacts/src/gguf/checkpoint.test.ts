import assert from "node:assert/strict";
import { cpSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { assertRejected } from "../testing/artifact-assertions.js";
import { tensorValues, TinyArtifacts } from "../testing/tiny-artifacts.js";
import { tinyGgufMetadata, tinyGgufTensors, tinyModel } from "../testing/tiny-checkpoint.js";
import { encodeGguf, type GgufValue, writeGguf } from "../testing/write-gguf.js";
import type { TensorToWrite } from "../testing/write-safetensors.js";
import type { GgufStrings } from "@octavo/text/files/gguf-strings";
import { openCheckpoint } from "../checkpoint/open-checkpoint.js";

const tiny = new TinyArtifacts();
after(() => tiny[Symbol.dispose]());

describe("a GGUF file", () => {
  it("says the same of a model as the folder it was converted from", async () => {
    for (const architecture of ["LlamaForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM"] as const) {
      for (const tieWordEmbeddings of [false, true]) {
        const folder = await openCheckpoint(tiny.folder({ architecture, tieWordEmbeddings }));
        const gguf = await openCheckpoint(tiny.gguf({ architecture, tieWordEmbeddings }));
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
          if (!/[qk]_proj\.weight/.test(name))
            assert.deepEqual(tensorValues(gguf, name), tensorValues(folder, name));
        }
      }
    }
  });

  it("is the llama architecture for Mistral, and quantized as soon as a tensor is", async () => {
    const { config } = await openCheckpoint(tiny.gguf({ architecture: "MistralForCausalLM", type: "q4_0" }));
    assert.deepEqual(
      [config.architecture, config.rope.layout, config.dtype],
      ["LlamaForCausalLM", "interleaved", "quantized"],
    );
  });

  it("hands its vocabulary and templates to the tokenizer", async () => {
    const { tokenizer } = await openCheckpoint(
      tiny.gguf({}, { "tokenizer.chat_template.tool_use": { type: "string", value: "tools" } }),
    );
    assert.equal(tokenizer.kind, "gguf");
    assert.equal((tokenizer.metadata.get("tokenizer.ggml.tokens") as GgufStrings).length, 260);
    assert.deepEqual([tokenizer.config.bosToken, tokenizer.config.eosToken], ["<|bos|>", "<|eos|>"]);
    assert.match(tokenizer.config.chatTemplate ?? "", /message/);
    assert.deepEqual([...tokenizer.config.namedChatTemplates], [["tool_use", "tools"]]);
  });

  it("ends at every end token that the vocabulary marks as one", async () => {
    const metadata = tinyGgufMetadata(tinyModel());
    const tokens = [...(metadata["tokenizer.ggml.tokens"] as { value: readonly string[] }).value];
    tokens[258] = "<|im_end|>";
    tokens[70] = "<|eot_id|>";
    const path = tiny.gguf(
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
    const path = `${tiny.freshPath()}.gguf`;
    writeGguf(path, { metadata: tinyGgufMetadata(model), tensors: [...tinyGgufTensors(model), factors] });
    const factored = await openCheckpoint(path);
    assert.deepEqual(factored.config.rope.scaling, { kind: "factors", factors: factors.data });
    assert.ok(!factored.tensors.has("rope_freqs.weight"));

    const scaling = async (more: Record<string, GgufValue>): Promise<unknown> => {
      return (await openCheckpoint(tiny.gguf({}, more))).config.rope.scaling;
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
      openCheckpoint(tiny.gguf({}, kind("longrope"))),
      "artifact_unsupported",
      /"longrope"/,
    );
    const windowed = tiny.gguf({}, { "llama.attention.sliding_window": { type: "u32", value: 128 } });
    assert.deepEqual((await openCheckpoint(windowed)).config.slidingWindows, [128, 128]);
  });

  it("refuses metadata that is missing, of another type, or beyond reason", async () => {
    const u32 = (value: number): GgufValue => ({ type: "u32", value });
    for (const [metadata, code, message] of [
      [
        { "general.architecture": { type: "string", value: "mamba" } },
        "artifact_unsupported",
        /"mamba"; supported are llama, .*qwen2moe, /,
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
      await assertRejected(openCheckpoint(tiny.gguf({}, metadata)), code, message);
    }
    const model = tinyModel();
    const uniform = tiny.gguf(
      {},
      { "llama.attention.head_count_kv": { type: "array", of: "u32", value: [2, 2] } },
    );
    assert.equal((await openCheckpoint(uniform)).config.numKvHeads, 2);
    for (const key of ["general.architecture", "llama.block_count", "llama.context_length"]) {
      const metadata = tinyGgufMetadata(model);
      delete metadata[key];
      const path = `${tiny.freshPath()}.gguf`;
      writeGguf(path, { metadata, tensors: tinyGgufTensors(model) });
      await assertRejected(openCheckpoint(path), "artifact_invalid", new RegExp(`has no ${key}`));
    }
  });

  it("refuses tensors that the architecture does not have", async () => {
    const model = tinyModel();
    const path = `${tiny.freshPath()}.gguf`;
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
    const folder = tiny.freshPath();
    mkdirSync(folder);
    renameSync(tiny.gguf(), join(folder, "tiny.gguf"));
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
    const folder = tiny.freshPath();
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
    const whole = await openCheckpoint(tiny.gguf());
    for (const path of [
      folder,
      join(folder, "tiny-00001-of-00003.gguf"),
      join(folder, "tiny-00002-of-00003.gguf"),
    ]) {
      const checkpoint = await openCheckpoint(path);
      assert.deepEqual(checkpoint.config, whole.config);
      assert.deepEqual([...checkpoint.tensors.keys()].toSorted(), [...whole.tensors.keys()].toSorted());
      for (const name of whole.tensors.keys())
        assert.deepEqual(tensorValues(checkpoint, name), tensorValues(whole, name));
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
    const alone = `${tiny.freshPath()}.gguf`;
    renameSync(renamed, alone);
    await assertRejected(openCheckpoint(alone), "artifact_invalid", /one of 2 split files/);
    const absurd = join(tiny.scratch, "absurd-00009-of-00002.gguf");
    writeFileSync(absurd, encodeGguf({ metadata: {}, tensors: [] }));
    await assertRejected(openCheckpoint(absurd), "artifact_invalid", /part 9 of 2/);
  });
});
