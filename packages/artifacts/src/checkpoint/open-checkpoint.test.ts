import assert from "node:assert/strict";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { assertRejected } from "../testing/artifact-assertions.js";
import { tensorValues, TinyArtifacts } from "../testing/tiny-artifacts.js";
import { openCheckpoint } from "./open-checkpoint.js";

const tiny = new TinyArtifacts();
after(() => tiny[Symbol.dispose]());

describe("a folder", () => {
  it("opens whole and sharded alike", async () => {
    const whole = await openCheckpoint(tiny.folder({ type: "bf16" }), { name: "tiny" });
    const sharded = await openCheckpoint(tiny.folder({ type: "bf16" }, { shards: 3 }));
    assert.equal(whole.format, "safetensors");
    assert.equal(whole.name, "tiny");
    assert.equal(whole.config.dtype, "bf16");
    assert.deepEqual(whole.config, sharded.config);
    assert.deepEqual([...whole.tensors.keys()].toSorted(), [...sharded.tensors.keys()].toSorted());
    for (const name of whole.tensors.keys())
      assert.deepEqual(tensorValues(whole, name), tensorValues(sharded, name));
  });

  it("takes sampling defaults and joins end tokens from all that name them", async () => {
    const path = tiny.folder(
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
    const path = tiny.folder({}, { config: { eos_token_id: 3 } }, { "generation_config.json": {} });
    assert.deepEqual((await openCheckpoint(path)).config.eosTokenIds, [3, 257]);
  });

  it("reads templates from every place, files first", async () => {
    const path = tiny.folder(
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
      openCheckpoint(join(tiny.scratch, "nowhere")),
      "artifact_not_found",
      /no such file or folder/,
    );
    const empty = tiny.freshPath();
    mkdirSync(empty);
    await assertRejected(openCheckpoint(empty), "artifact_not_found", /neither a config\.json nor a \.gguf/);
    for (const [file, code, message] of [
      ["config.json", "artifact_not_found", /config\.json/],
      ["model.safetensors", "artifact_not_found", /no \.safetensors/],
      ["tokenizer.json", "artifact_not_found", /tokenizer is needed/],
    ] as const) {
      const path = tiny.folder();
      rmSync(join(path, file));
      await assertRejected(openCheckpoint(path), code, message);
    }
  });

  it("refuses pickled weights, slow tokenizers and files that are no model", async () => {
    const pickled = tiny.folder({}, {}, { "pytorch_model.bin": "x" });
    rmSync(join(pickled, "model.safetensors"));
    await assertRejected(openCheckpoint(pickled), "artifact_unsupported", /pytorch_model\.bin.*safetensors/);
    const slow = tiny.folder({}, {}, { "tokenizer.model": "x" });
    rmSync(join(slow, "tokenizer.json"));
    await assertRejected(
      openCheckpoint(slow),
      "artifact_unsupported",
      /tokenizer\.model but no tokenizer\.json/,
    );
    const path = tiny.folder();
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
      const path = tiny.folder({}, {}, { [name]: content });
      if (message === undefined) await openCheckpoint(path);
      else await assertRejected(openCheckpoint(path), "artifact_invalid", message);
    }
  });

  it("names an unsupported architecture before it looks for weights", async () => {
    const path = tiny.folder({}, { config: { architectures: ["MambaForCausalLM"] } });
    rmSync(join(path, "model.safetensors"));
    await assertRejected(
      openCheckpoint(path),
      "artifact_unsupported",
      /"MambaForCausalLM".*LlamaForCausalLM/,
    );
  });
});
