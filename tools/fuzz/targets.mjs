// What is fuzzed: everything that reads files and requests of strangers. A target runs one input; what it throws must be an
// `OctavoError` that blames the input.
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openGguf } from "../../packages/artifacts/dist/gguf/checkpoint.js";
import { readSafetensorsHeader } from "../../packages/artifacts/dist/safetensors/safetensors-file.js";
import { encodeGguf } from "../../packages/artifacts/dist/testing/write-gguf.js";
import { OctavoError } from "../../packages/protocol/dist/errors.js";
import {
  chatCompletionRequest,
  completionRequest,
  messagesRequest,
  parseWith,
  responsesRequest,
} from "../../packages/protocol/dist/index.js";
import { createSseDecoder } from "../../packages/protocol/dist/sse.js";
import { parseArtifactJson } from "../../packages/text/dist/files/bounded-json.js";
import { OutputParser } from "../../packages/text/dist/parsers/output-parser.js";
import { toolFormats } from "../../packages/text/dist/parsers/registry.js";
import { callWriters } from "../../packages/text/dist/parsers/testing/agreement-writers.js";
import { compileRules } from "../../packages/text/dist/structured/compile-rules.js";
import { compileChatTemplate } from "../../packages/text/dist/template/compile-chat-template.js";
import { createTokenizer } from "../../packages/text/dist/tokenizer/create-tokenizer.js";
import { withWork } from "../../packages/text/dist/work.js";
import { filesBelow, root } from "../lib/steps.mjs";

const read = (path) => readFileSync(join(root, path));
const folder = mkdtempSync(join(tmpdir(), "octavo-fuzz-"));
process.once("exit", () => rmSync(folder, { recursive: true, force: true }));

/** The input as a file. */
function asFile(bytes) {
  const path = join(folder, "input");
  writeFileSync(path, bytes);
  return path;
}

/** The small inputs kept in the tree: what people write, and what was found to go wrong. */
const corpusOf = (name) =>
  filesBelow("tools/fuzz/corpus", (path) => path.includes(`/corpus/${name}/`)).map(read);

/** As the compiling thread does. */
function compile(spec) {
  const tooMuch = () => new OctavoError("invalid_request", "too much work");
  try {
    withWork(400_000, tooMuch, () => compileRules(spec, new Set(["<|end|>"])));
  } catch (thrown) {
    // the thread takes the end of the stack for a constraint that is nested too deeply
    if (!(thrown instanceof RangeError)) throw thrown;
  }
}

const emptyConfig = { namedChatTemplates: new Map() };
const someText = "Hello, wörld! 12345 \u{1f98a}\n\t<s> don't  \u0e33\u0301";
const chat = {
  messages: [
    { role: "system", content: "Be brief." },
    { role: "user", content: [{ type: "text", text: "Hi" }] },
    {
      role: "assistant",
      content: null,
      tool_calls: [{ id: "c", type: "function", function: { name: "f", arguments: { a: [1] } } }],
    },
    { role: "tool", tool_call_id: "c", content: "7" },
  ],
  tools: [
    {
      type: "function",
      function: { name: "f", parameters: { type: "object", properties: { a: { type: "array" } } } },
    },
  ],
};
const snippets = () =>
  JSON.parse(read("packages/text/fixtures/templates/snippets.json")).cases.map((item) =>
    Buffer.from(item.source ?? item[0] ?? ""),
  );
const requests = [chatCompletionRequest, completionRequest, responsesRequest, messagesRequest];
const parserNames = toolFormats.map(({ name }) => name);

export const targets = {
  gguf: {
    seeds: () => [
      ...filesBelow("packages/text/fixtures/tokenizers", (path) => path.endsWith(".gguf")).map(read),
      encodeGguf({
        metadata: {
          "general.architecture": { type: "string", value: "llama" },
          a: { type: "array", of: "f32", value: [1, 2] },
        },
        tensors: [{ name: "w", type: "f32", shape: [8], data: new Float32Array(8) }],
      }),
    ],
    words: ["GGUF", "general.alignment", "tokenizer.ggml.tokens", "general.architecture"],
    run(bytes) {
      for (const { offset, byteLength } of openGguf(asFile(bytes), "input").tensors.values())
        assert.ok(offset + byteLength <= bytes.length, "a tensor reaches beyond the file");
    },
  },
  safetensors: {
    seeds: () =>
      filesBelow("packages/artifacts/fixtures/adapters", (path) => path.endsWith(".safetensors"))
        .slice(0, 2)
        .map(read),
    words: ['"dtype":"F32"', '"shape":[', '"data_offsets":[0,', '"__metadata__":{', "BF16", "F8_E4M3"],
    run(bytes) {
      for (const { offset, byteLength } of readSafetensorsHeader(asFile(bytes)).tensors)
        assert.ok(offset >= 0 && offset + byteLength <= bytes.length, "a tensor reaches beyond the file");
    },
  },
  tokenizer: {
    isJson: true,
    seeds: () =>
      filesBelow("packages/text/fixtures/tokenizers", (path) =>
        /(?:gpt2|gemma|unigram|llama2-legacy)\.json$/.test(path),
      ).map(read),
    words: [
      '"type":"Sequence"',
      '"type":"Split"',
      '"type":"ByteLevel"',
      '"type":"NFKC"',
      '"type":"Precompiled"',
      '"pattern":{"Regex":"',
      '"merges":[',
      "null",
      '"vocab":{',
    ],
    run(bytes) {
      const json = parseArtifactJson(bytes, "input");
      const tokenizer = createTokenizer({ kind: "tokenizer.json", json, config: emptyConfig });
      const ids = tokenizer.encode(someText, { addSpecialTokens: true });
      for (const id of ids) assert.ok(id >= 0 && id < tokenizer.vocabSize, `token ${id}`);
      tokenizer.decode(ids, { skipSpecialTokens: false });
    },
  },
  jinja: {
    seeds: () => [...corpusOf("jinja"), ...snippets().slice(0, 80)],
    words: [
      "{%",
      "%}",
      "{{",
      "}}",
      "{%- if ",
      "{% for x in ",
      "{% endfor %}",
      "{% macro f(a) %}",
      "|tojson",
      "|map(attribute=",
      " namespace(",
      "loop.index0",
      "range(",
      ".items()",
      "['",
      "is defined",
      " ~ ",
      "messages[-1]",
      "{% generation %}",
      "raise_exception(",
      "[::-1]",
    ],
    maxBytes: 8192,
    run(bytes) {
      compileChatTemplate(bytes.toString("utf8")).render(chat, 100_000);
    },
  },
  regex: {
    seeds: () => corpusOf("regex"),
    words: [
      "(?:",
      "(?=",
      "(?!",
      "(?<=",
      "[^",
      "\\p{L}",
      "\\b",
      "{2,5}",
      "{0,1000}",
      "*?",
      "\\u{1f600}",
      "(?<a>",
      "\\1",
      "|",
      "$",
      "^",
    ],
    maxBytes: 2048,
    run: (bytes) => compile({ kind: "regex", pattern: bytes.toString("utf8") }),
  },
  schema: {
    isJson: true,
    seeds: () => corpusOf("schema"),
    words: [
      '"type":"object"',
      '"properties":{',
      '"$ref":"#/',
      '"anyOf":[',
      '"oneOf":[',
      '"allOf":[',
      '"not":',
      '"if":',
      '"multipleOf":',
      '"minimum":',
      '"enum":[',
      '"const":',
      '"pattern":"',
      '"uniqueItems":true',
      '"prefixItems":[',
      '"contains":',
      '"additionalProperties":',
      '"format":"',
      '"$defs":{',
      '"unevaluatedProperties":false',
      '"dependentRequired":{',
      "true",
      "null",
      "{}",
    ],
    maxBytes: 8192,
    run: (bytes) => compile({ kind: "json_schema", schema: parseArtifactJson(bytes, "input") }),
  },
  ebnf: {
    seeds: () => corpusOf("ebnf"),
    words: [
      "root ::= ",
      "start: ",
      "%import common.",
      "%ignore ",
      "[a-z]",
      "{2, 3}",
      "(",
      ")*",
      '"a"',
      "/[0-9]+/i",
      "-> ",
      "\n",
      "~2..5",
      "?x: ",
    ],
    maxBytes: 4096,
    run: (bytes) => compile({ kind: "grammar", source: bytes.toString("utf8") }),
  },
  request: {
    isJson: true,
    seeds: () => corpusOf("request"),
    words: [
      '"messages":[',
      '"role":"tool"',
      '"content":null',
      '"tool_calls":[',
      '"tools":[',
      '"stream":true',
      '"logit_bias":{',
      '"n":',
      "-1",
      "1e999",
      '"response_format":{"type":"json_schema"',
      '"__proto__":',
      "\\ud800",
      '"input":[',
      '"stop":[',
    ],
    maxBytes: 8192,
    run(bytes) {
      let body;
      try {
        body = JSON.parse(bytes.toString("utf8"));
      } catch {
        return;
      }
      for (const schema of requests) {
        try {
          parseWith(schema, body);
        } catch (thrown) {
          if (!(thrown instanceof OctavoError) || thrown.code === "internal_error") throw thrown;
        }
      }
    },
  },
  sse: {
    seeds: () => corpusOf("sse"),
    words: ["data: ", "\n\n", "\r", "event: ", "id: ", "\ufeff", ": comment", "data: [DONE]"],
    maxBytes: 4096,
    run(bytes) {
      const whole = createSseDecoder();
      const parts = createSseDecoder();
      const events = [...whole.push(bytes)];
      const apart = [...bytes].flatMap((byte) => [...parts.push(Uint8Array.of(byte))]);
      assert.deepEqual(apart, events, "the same events wherever chunks end");
    },
  },
  output: {
    // the first byte chooses the parser
    seeds: () =>
      parserNames.flatMap((name, index) => {
        const write = callWriters[name];
        return write === undefined
          ? []
          : [Buffer.concat([Buffer.of(index), Buffer.from(write([["f", { a: "x", b: [1, null] }]]))])];
      }),
    maxBytes: 2048,
    run(bytes) {
      const format = toolFormats[(bytes[0] ?? 0) % toolFormats.length];
      const text = bytes.subarray(1).toString("utf8");
      const parse = (pieces) => {
        const parser = new OutputParser({
          machine: format.machine,
          reasoning: format.reasoning,
          promptReasoning: "unknown",
          schemas: new Map(),
        });
        const events = [...pieces.flatMap((piece) => parser.push(piece)), ...parser.finish()];
        const texts = {};
        for (const event of events)
          texts[`${event.kind} ${event.index ?? ""}`] =
            (texts[`${event.kind} ${event.index ?? ""}`] ?? "") +
            (event.text ?? event.name ?? event.problem ?? "");
        return texts;
      };
      assert.deepEqual(
        parse(text.split("")),
        parse([text]),
        `${format.name}: the same events wherever chunks end`,
      );
    },
  },
};
