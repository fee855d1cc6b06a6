import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import { OctavoError } from "@octavo/protocol/errors";
import type { TokenizerFileConfig } from "./source.js";
import { createTokenizer } from "./create-tokenizer.js";
import { readTokenizerFolder } from "./read/tokenizer-folder.js";
import { plainConfig, readFixture, type FixtureName } from "./testing/contenders.js";
import type { Tokenizer } from "./tokenizer.js";

type Json = Record<string, unknown>;

function build(json: unknown, config: Partial<TokenizerFileConfig> = {}): Tokenizer {
  return createTokenizer({ kind: "tokenizer.json", json, config: { ...plainConfig, ...config } });
}

function fixture(name: FixtureName, change: (json: Json) => void = () => {}): Json {
  const json = JSON.parse(readFixture(name)) as Json;
  change(json);
  return json;
}

function refused(json: unknown, code: string, message: RegExp): void {
  assert.throws(
    () => build(json),
    (error) => {
      assert.ok(error instanceof OctavoError, String(error));
      assert.equal(error.code, code, error.message);
      assert.match(error.message, message);
      return true;
    },
  );
}

const tiny: Json = { model: { type: "BPE", vocab: { a: 0, b: 1, ab: 2 }, merges: ["a b"] } };

function tinyWith(model: Json, rest: Json = {}): Json {
  return { model: { ...(tiny["model"] as Json), ...model }, ...rest };
}

describe("createTokenizer on hostile files", () => {
  it("refuses content that is not a tokenizer", () => {
    for (const json of [null, 1, "text", [], {}, { model: null }, { model: [] }])
      refused(json, "artifact_invalid", /tokenizer\.json.*must be/);
  });

  it("names models and steps that are not supported", () => {
    refused(
      { model: { type: "WordLevel", vocab: {} } },
      "artifact_unsupported",
      /model\.type is "WordLevel"; supported are BPE, Unigram, WordPiece/,
    );
    refused(
      tinyWith({}, { normalizer: { type: "Nmt" } }),
      "artifact_unsupported",
      /normalizer\.type is "Nmt"/,
    );
    refused(
      tinyWith({}, { pre_tokenizer: { type: "UnicodeScripts" } }),
      "artifact_unsupported",
      /UnicodeScripts/,
    );
    refused(tinyWith({}, { decoder: { type: "CTC" } }), "artifact_unsupported", /CTC/);
    refused(tinyWith({}, { post_processor: { type: "Nothing" } }), "artifact_unsupported", /Nothing/);
    refused(tinyWith({ dropout: 0.1 }), "artifact_unsupported", /dropout/);
  });

  it("refuses bad vocabularies and merges", () => {
    refused(tinyWith({ vocab: [] }), "artifact_invalid", /model\.vocab must be an object/);
    refused(tinyWith({ vocab: { a: -1 } }), "artifact_invalid", /integer from 0/);
    refused(tinyWith({ vocab: { a: 1.5 } }), "artifact_invalid", /integer from 0/);
    refused(tinyWith({ vocab: { a: 4_000_000_000 } }), "artifact_invalid", /integer from 0/);
    refused(tinyWith({ vocab: { a: "0" } }), "artifact_invalid", /integer from 0/);
    refused(
      tinyWith({ vocab: { a: 0, b: 0 }, merges: [] }),
      "artifact_invalid",
      /the id 0 to both "a" and "b"/,
    );
    refused(
      tinyWith({ vocab: { ["x".repeat(70_000)]: 0 }, merges: [] }),
      "artifact_invalid",
      /70000 characters/,
    );
    refused(tinyWith({ merges: ["a"] }), "artifact_invalid", /merges\[0\] must be two tokens/);
    refused(tinyWith({ merges: ["a b", ["a", "b", "c"]] }), "artifact_invalid", /merges\[1\]/);
    refused(tinyWith({ merges: [["a", 1]] }), "artifact_invalid", /merges\[0\]/);
    refused(
      tinyWith({ merges: ["b a"] }),
      "artifact_invalid",
      /merges "b" and "a", but the vocabulary has no "ba"/,
    );
    refused(tinyWith({ merges: {} }), "artifact_invalid", /merges must be an array/);
    refused(tinyWith({ unk_token: "<unk>" }), "artifact_invalid", /unk_token is "<unk>"/);
    refused(
      { model: { type: "Unigram", vocab: [["a"]] } },
      "artifact_invalid",
      /vocab\[0\] must be a token and its score/,
    );
    refused({ model: { type: "Unigram", vocab: [["a", NaN]] } }, "artifact_invalid", /vocab\[0\]/);
    refused(
      { model: { type: "Unigram", vocab: [["a", 0]], unk_id: 1 } },
      "artifact_invalid",
      /unk_id must be an integer from 0 to 0/,
    );
  });

  it("refuses bad added tokens and post-processors", () => {
    const added = (tokens: unknown): Json => tinyWith({}, { added_tokens: tokens });
    refused(added({}), "artifact_invalid", /added_tokens must be an array/);
    refused(
      added([{ id: 3 }]),
      "artifact_invalid",
      /added_tokens\[0\]\.content must be a string, but is missing/,
    );
    refused(added([{ id: -3, content: "x" }]), "artifact_invalid", /added_tokens\[0\]\.id/);
    refused(added([{ id: 2 ** 31, content: "x" }]), "artifact_invalid", /added_tokens\[0\]\.id/);
    refused(added([{ id: 1, content: "x" }]), "artifact_invalid", /gives "x" the id 1, which is already "b"/);
    refused(
      added([
        { id: 5, content: "x" },
        { id: 5, content: "y" },
      ]),
      "artifact_invalid",
      /which is already "x"/,
    );
    refused(
      added([{ id: 5, content: "x", lstrip: "yes" }]),
      "artifact_invalid",
      /lstrip must be true or false/,
    );
    const template = (single: unknown, special_tokens: unknown): Json =>
      tinyWith({}, { post_processor: { type: "TemplateProcessing", single, special_tokens } });
    refused(template([{ SpecialToken: { id: "<s>" } }], {}), "artifact_invalid", /special_tokens\.<s>/);
    refused(template([], {}), "artifact_unsupported", /holds it 0 times/);
    const far = { "<s>": { ids: [99] } };
    refused(
      template([{ SpecialToken: { id: "<s>" } }, { Sequence: { id: "A" } }], far),
      "artifact_invalid",
      /integer from 0 to 2/,
    );
  });

  it("refuses nonsense nested without end", () => {
    let deep: Json = { type: "NFC" };
    for (let depth = 0; depth < 1000; depth++) deep = { type: "Sequence", normalizers: [deep] };
    refused(tinyWith({}, { normalizer: deep }), "artifact_invalid", /nested at most/);
    const many = { type: "Sequence", normalizers: Array.from({ length: 1000 }, () => ({ type: "NFC" })) };
    refused(tinyWith({}, { normalizer: many }), "artifact_invalid", /too many steps/);
    const cyclic: Json = { type: "Sequence" };
    cyclic["pretokenizers"] = [cyclic];
    refused(tinyWith({}, { pre_tokenizer: cyclic }), "artifact_invalid", /nested at most/);
  });

  it("quotes patterns that it cannot read", () => {
    const split = (Regex: unknown): Json =>
      tinyWith(
        {},
        { pre_tokenizer: { type: "Split", pattern: { Regex }, behavior: "Isolated", invert: false } },
      );
    for (const pattern of [
      "(a)\\1",
      "(?<=a+)b",
      "\\p{Nonsense}",
      "[a",
      "(a",
      "a)",
      "*a",
      "\\X",
      "a{2,1}",
      "[b-a]",
      "(?(1)a)",
      "\\k<x>",
    ]) {
      refused(split(pattern), "artifact_unsupported", /pattern/);
    }
    refused(split(1), "artifact_invalid", /Regex must be a string/);
    refused(split("(".repeat(50_000)), "artifact_unsupported", /nested more than 200 deep/);
  });
});

describe("special tokens of a checkpoint", () => {
  it("come from tokenizer_config.json", () => {
    const tokenizer = build(fixture("llama3"), { bosToken: "<|begin_of_text|>", eosToken: "<|eot_id|>" });
    assert.equal(tokenizer.idToToken(tokenizer.bosTokenId!), "<|begin_of_text|>");
    assert.equal(tokenizer.idToToken(tokenizer.eosTokenId!), "<|eot_id|>");
    assert.equal(build(fixture("llama3"), { bosToken: "<none>" }).bosTokenId, undefined);
  });

  it("are added by the post-processor alone: add_bos_token beside a tokenizer.json has no effect, as in transformers 5", () => {
    const folder = mkdtempSync(join(tmpdir(), "octavo-tokenizer-"));
    try {
      // DeepSeek V3's files say add_bos_token, and its post-processor adds nothing
      for (const [name, bos, ids] of [
        ["deepseek", "<\uff5cbegin\u2581of\u2581sentence\uff5c>", [64]],
        ["qwen2", "<|im_start|>", [64]],
      ] as const) {
        writeFileSync(join(folder, "tokenizer.json"), JSON.stringify(fixture(name)));
        const config = { bos_token: bos, add_bos_token: true, add_eos_token: true };
        writeFileSync(join(folder, "tokenizer_config.json"), JSON.stringify(config));
        assert.deepEqual([...createTokenizer(readTokenizerFolder(folder)).encode("a")], ids, name);
      }
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
    const llama = build(fixture("llama3"), { bosToken: "<|begin_of_text|>", eosToken: "<|eot_id|>" });
    assert.deepEqual([...llama.encode("a")], [llama.bosTokenId, 64]);
  });

  it("go around the text as BERT-like post-processors say", () => {
    const post = {
      type: "RobertaProcessing",
      sep: ["b", 1],
      cls: ["a", 0],
      trim_offsets: true,
      add_prefix_space: false,
    };
    assert.deepEqual([...build(tinyWith({}, { post_processor: post })).encode("ab")], [0, 2, 1]);
  });
});

describe("tokenBytes", () => {
  const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex");

  it("gives the bytes behind a byte-level token", () => {
    const tokenizer = build(fixture("qwen2"));
    const ids = tokenizer.encode(" Zürich 😀<|im_end|>", { addSpecialTokens: false });
    const bytes = Buffer.concat([...ids].map((id) => tokenizer.tokenBytes(id)));
    assert.equal(bytes.toString("utf8"), " Zürich 😀<|im_end|>");
    assert.equal(hex(tokenizer.tokenBytes(99_999)), "");
  });

  it("gives the bytes behind a SentencePiece token", () => {
    const tokenizer = build(fixture("llama2-legacy"));
    assert.equal(hex(tokenizer.tokenBytes(tokenizer.tokenToId("<0xF0>")!)), "f0");
    assert.equal(hex(tokenizer.tokenBytes(tokenizer.tokenToId("▁the")!)), hex(Buffer.from(" the")));
    assert.equal(hex(tokenizer.tokenBytes(1)), hex(Buffer.from("<s>")));
  });
});

describe("createDetokenizer", () => {
  it("emits a character when its last byte comes", () => {
    const tokenizer = build(fixture("gpt2"));
    const detokenizer = tokenizer.createDetokenizer();
    const pieces = [...tokenizer.encode("a😀b")].map((id) => detokenizer.push(id));
    assert.deepEqual(pieces, ["a", "", "", "", "😀", "b"]);
    assert.equal(detokenizer.flush(), "");
  });

  it("gives U+FFFD for what never became a character", () => {
    const tokenizer = build(fixture("gpt2"));
    const detokenizer = tokenizer.createDetokenizer();
    const [first] = tokenizer.encode("😀");
    assert.equal(detokenizer.push(first!), "");
    assert.equal(detokenizer.flush(), "\ufffd");
  });

  it("goes on from a prompt: spaces stay, and half characters are completed", () => {
    const llama = build(fixture("llama2-legacy"));
    const prompt = llama.encode("Hello");
    const next = llama.tokenToId("▁the")!;
    assert.equal(llama.createDetokenizer().push(next), "the");
    assert.equal(llama.createDetokenizer({ promptTokens: prompt }).push(next), " the");
    const gpt2 = build(fixture("gpt2"));
    const emoji = gpt2.encode("😀");
    const detokenizer = gpt2.createDetokenizer({ promptTokens: emoji.subarray(0, 2) });
    assert.equal([...emoji.subarray(2)].map((id) => detokenizer.push(id)).join(""), "😀");
  });
});
