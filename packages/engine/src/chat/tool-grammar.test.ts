import assert from "node:assert/strict";
import { after, describe, it } from "node:test";
import type { Grammar, GrammarSpec } from "@octavo/text/structured/grammar";
import { GrammarCompiler } from "@octavo/text/structured/grammar-compiler";
import { OutputParser } from "@octavo/text/parsers/output-parser";
import { reasoningFormats } from "@octavo/text/parsers/reasoning/reasoning-format";
import { toolFormats } from "@octavo/text/parsers/registry";
import { untaggedJsonCalls } from "@octavo/text/parsers/shared/json-calls";
import { toolSchemas } from "@octavo/text/parsers/shared/tool-schemas";
import { ByteTokenizer } from "@octavo/text/testing/byte-tokenizer";
import { Ajv2020 } from "ajv/dist/2020.js";
import { randomTokens } from "../testing/random-tokens.js";
import { toolChoice, afterReasoning, toolGrammar, withTools } from "./tool-grammar.js";

const tokenizer = new ByteTokenizer();
const compiler = new GrammarCompiler(tokenizer, { vocabSize: tokenizer.vocabSize });
after(() => compiler[Symbol.dispose]());

const tool = (
  name: string,
  strict: boolean,
): { type: "function"; function: { name: string; strict: boolean; parameters: object } } => ({
  type: "function",
  function: {
    name,
    strict,
    parameters: {
      type: "object",
      properties: { city: { enum: ["Oslo", "Bergen"] } },
      required: ["city"],
      additionalProperties: false,
    },
  },
});
const tools = [tool("get_weather", true), tool("get_time", false)] as never[];

/** Whether a text is a whole answer under the grammar. */
function allows(grammar: Grammar, text: string): boolean {
  const matcher = grammar.start();
  for (const token of tokenizer.encode(text, { addSpecialTokens: false }))
    if (!matcher.accept(token)) return false;
  return matcher.isComplete;
}

function randomAnswer(grammar: Grammar, seed: number): string {
  const tokens = randomTokens(
    grammar,
    tokenizer.vocabSize,
    seed,
    ({ isComplete, isFinished }, numTokens) =>
      numTokens < 4000 && !(isComplete && numTokens > 200) && !isFinished,
  );
  return tokenizer.decode(tokens, { skipSpecialTokens: false });
}

function compile(spec: GrammarSpec | undefined): Promise<Grammar> {
  assert.ok(spec !== undefined);
  return compiler.compile(spec);
}

describe("a required call", () => {
  for (const format of [...toolFormats, undefined]) {
    const name = format?.name ?? "no format";
    it(`is read back from every answer that the grammar allows: ${name}`, async () => {
      const grammar = await compile(toolGrammar({ tools }, "required", format));
      // A random walk does not find the end of reasoning that may come first.
      const mayReason = format?.layout?.answer !== undefined;
      let numRead = 0;
      for (let seed = 1; seed <= (mayReason ? 24 : 6); seed++) {
        const text = randomAnswer(grammar, seed);
        const parser = new OutputParser({
          machine: format?.layout === undefined ? untaggedJsonCalls : format.machine,
          reasoning: undefined,
          promptReasoning: "unknown",
          schemas: toolSchemas(tools),
        });
        const events = [...parser.push(text), ...parser.finish()];
        if (mayReason && parser.numCalls === 0) continue;
        numRead += 1;
        assert.ok(parser.numCalls >= 1, text);
        let written = "";
        for (const event of events) {
          assert.ok(event.kind !== "content" && event.kind !== "ignored", text);
          if (event.kind === "call-start") {
            assert.ok(["get_weather", "get_time"].includes(event.name), text);
            written = "";
          } else if (event.kind === "arguments") written += event.text;
          else if (event.kind === "call-end") {
            assert.equal(event.problem, undefined, text);
            const { city } = JSON.parse(written) as { city: string };
            assert.ok(["Oslo", "Bergen"].includes(city), text);
          }
        }
      }
      assert.ok(numRead >= 6, `${numRead} walks came to calls`);
    });
  }

  it("is the named one, once", async () => {
    const hermes = toolFormats.find(({ name }) => name === "hermes");
    const grammar = await compile(toolGrammar({ tools }, { named: "get_time" }, hermes));
    const call = (name: string): string =>
      `<tool_call>\n{"name": "${name}", "arguments": {"city": "Oslo"}}\n</tool_call>`;
    assert.ok(allows(grammar, call("get_time")));
    assert.ok(!allows(grammar, call("get_weather")));
    assert.ok(!allows(grammar, `${call("get_time")}\n${call("get_time")}`));
    const several = await compile(toolGrammar({ tools }, "required", hermes));
    assert.ok(allows(several, `${call("get_time")}\n${call("get_weather")}`));
    const single = await compile(toolGrammar({ tools, parallel_tool_calls: false }, "required", hermes));
    assert.ok(!allows(single, `${call("get_time")}\n${call("get_weather")}`));
  });

  it("may be reasoned about first", async () => {
    const hermes = toolFormats.find(({ name }) => name === "hermes");
    const qwen3 = reasoningFormats.find(({ name }) => name === "qwen3");
    const spec = toolGrammar({ tools }, { named: "get_time" }, hermes);
    assert.ok(spec !== undefined);
    const call = '<tool_call>\n{"name": "get_time", "arguments": {"city": "Oslo"}}\n</tool_call>';
    const open = await compile(afterReasoning(spec, qwen3, "open"));
    assert.ok(allows(open, `Hm, <tool_call> maybe.</think>\n\n${call}`));
    assert.ok(!allows(open, call));
    const unknown = await compile(afterReasoning(spec, qwen3, "unknown"));
    assert.ok(allows(unknown, call));
    assert.ok(allows(unknown, `<think>Hm.</think>${call}`));
    assert.ok(!allows(unknown, `Hm.</think>${call}`));
  });
});

describe("a strict tool that is left to the model", () => {
  for (const name of ["hermes", "mistral", "deepseek_v31", "kimi_k2", "phi4_mini_json", "granite"]) {
    it(`leaves text free and holds calls to the schema: ${name}`, async () => {
      const format = toolFormats.find((candidate) => candidate.name === name);
      const layout = format?.layout;
      assert.ok(layout !== undefined);
      const grammar = await compile(toolGrammar({ tools }, "auto", format));
      assert.ok(allows(grammar, "No call at all, but { and < and [."));
      const call = (tool_: string, body: string): string =>
        (layout.open ?? "") +
        layout
          .begin(tool_)
          .map((part) => (part.kind === "literal" ? part.text : "0"))
          .join("") +
        body +
        layout.end +
        (layout.close ?? "");
      assert.ok(allows(grammar, `Now: ${call("get_weather", '{"city": "Oslo"}')}`));
      assert.ok(!allows(grammar, call("get_weather", '{"city": "Rome"}')));
      assert.ok(allows(grammar, call("get_time", '{"zone": [1]}')), "the other tool is not strict");
      assert.ok(!allows(grammar, call("get_lost", "{}")));
    });
  }

  const written: Readonly<Record<string, (name: string, key: string, value: string) => string>> = {
    qwen3_coder: (name, key, value) =>
      `<tool_call>\n<function=${name}>\n<parameter=${key}>\n${value}\n</parameter>\n</function>\n</tool_call>`,
    glm45: (name, key, value) =>
      `<tool_call>${name}\n<arg_key>${key}</arg_key>\n<arg_value>${value}</arg_value>\n</tool_call>`,
    llama3_json: (name, key, value) =>
      `{"name": "${name}", "parameters": {"${key}": ${JSON.stringify(value)}}}`,
    pythonic: (name, key, value) => `[${name}(${key}=${JSON.stringify(value)})]`,
    llama4_pythonic: (name, key, value) => `<|python_start|>[${name}(${key}=${JSON.stringify(value)})]`,
    functiongemma: (name, key, value) =>
      `<start_function_call>call:${name}{${key}:<escape>${value}<escape>}<end_function_call>`,
    openai: (name, key, value) =>
      `<|channel|>commentary to=functions.${name} <|constrain|>json<|message|>{"${key}": ${JSON.stringify(value)}}`,
  };
  for (const [name, write] of Object.entries(written)) {
    it(`leaves text free and holds arguments that are listed to the schema: ${name}`, async () => {
      const format = toolFormats.find((candidate) => candidate.name === name);
      const grammar = await compile(toolGrammar({ tools }, "auto", format));
      assert.ok(allows(grammar, "No call at all, but { and < and [."));
      assert.ok(allows(grammar, write("get_weather", "city", "Oslo")));
      assert.ok(!allows(grammar, write("get_weather", "city", "Rome")));
      assert.ok(!allows(grammar, write("get_weather", "town", "Oslo")));
      assert.ok(allows(grammar, write("get_time", "zone", "1")), "the other tool is not strict");
      assert.ok(!allows(grammar, write("get_lost", "zone", "1")));
      if (name !== "qwen3_coder") return;
      const bare = (city: string): string => write("get_weather", "city", city).slice("<tool_call>\n".length);
      assert.ok(allows(grammar, bare("Oslo")));
      assert.ok(
        !allows(grammar, bare("Rome")),
        "a call may leave its first tag out, and is held all the same",
      );
    });

    it(`reads arguments of every type back as the schema has them: ${name}`, async () => {
      const format = toolFormats.find((candidate) => candidate.name === name)!;
      const parameters = {
        type: "object",
        properties: {
          query: { type: "string", maxLength: 20 },
          limit: { type: "integer", minimum: 1, maximum: 50 },
          exact: { type: "boolean" },
          ratio: { type: ["number", "null"] },
          tags: { type: "array", items: { type: "string", maxLength: 6 }, maxItems: 3 },
          mode: { anyOf: [{ type: "string", maxLength: 8 }, { type: "integer" }] },
          where: { $ref: "#/$defs/place" },
        },
        required: ["limit", "tags"],
        $defs: {
          place: {
            type: "object",
            properties: { city: { enum: ["a<b", "c"] } },
            required: ["city"],
            additionalProperties: false,
          },
        },
      };
      const searching = [
        { type: "function", function: { name: "search", strict: true, parameters } },
      ] as never[];
      const validate = new Ajv2020({ strict: false }).compile(parameters);
      const grammar = await compile(toolGrammar({ tools: searching }, "required", format));
      let numRead = 0;
      for (let seed = 1; seed <= 24; seed += 1) {
        const text = randomAnswer(grammar, seed);
        const parser = new OutputParser({
          machine: format.machine,
          reasoning: undefined,
          promptReasoning: "unknown",
          schemas: toolSchemas(searching),
        });
        const calls: string[] = [];
        for (const event of [...parser.push(text), ...parser.finish()]) {
          if (event.kind === "call-start") calls.push("");
          else if (event.kind === "arguments") calls[calls.length - 1] += event.text;
          else if (event.kind === "call-end") assert.equal(event.problem, undefined, text);
        }
        if (calls.length === 0 && format.layout?.answer !== undefined) continue;
        numRead += 1;
        assert.ok(calls.length > 0, text);
        for (const made of calls)
          assert.ok(validate(JSON.parse(made)), `${text}\n${made}\n${JSON.stringify(validate.errors)}`);
      }
      assert.ok(numRead >= 6, `${numRead} walks came to calls`);
    });
  }

  describe("in harmony's channels", () => {
    const harmony = toolFormats.find(({ name }) => name === "openai");
    const reasoning = "<|channel|>analysis<|message|>Need the weather, {maybe}.<|end|><|start|>assistant";
    const behind = (name: string, city: string): string =>
      `<|channel|>commentary to=functions.${name} <|constrain|>json<|message|>{"city": "${city}"}`;
    const before = (name: string, city: string): string =>
      ` to=functions.${name}<|channel|>commentary json<|message|>{"city": "${city}"}`;

    it("leaves every other message free", async () => {
      const grammar = await compile(toolGrammar({ tools }, "auto", harmony));
      const final = "<|channel|>final<|message|>It goes to=functions.get_lost, < 3.";
      assert.ok(allows(grammar, final));
      assert.ok(allows(grammar, reasoning + final));
      const preamble = "<|channel|>commentary<|message|>One moment.<|end|><|start|>assistant";
      for (const heading of [behind, before]) {
        assert.ok(allows(grammar, reasoning + preamble + heading("get_weather", "Oslo")));
        assert.ok(allows(grammar, `${heading("get_weather", "Oslo")}<|call|>`));
        assert.ok(!allows(grammar, reasoning + heading("get_weather", "Rome")));
        assert.ok(!allows(grammar, reasoning + heading("get_lost", "Oslo")));
      }
      assert.ok(!allows(grammar, "<|channel|>commentary to=python <|constrain|>code<|message|>1"));
    });

    it("allows reasoning before a required call, and no other text", async () => {
      const grammar = await compile(toolGrammar({ tools }, { named: "get_time" }, harmony));
      assert.ok(allows(grammar, reasoning + behind("get_time", "Oslo")));
      assert.ok(allows(grammar, before("get_time", "Bergen")));
      assert.ok(!allows(grammar, reasoning + behind("get_weather", "Oslo")));
      assert.ok(!allows(grammar, "<|channel|>final<|message|>No."));
      assert.ok(!allows(grammar, "No."));
    });

    it("applies a request's own constraint to content only", async () => {
      const own = { spec: { kind: "json_object" }, param: "response_format" } as const;
      const content = '{"a": 1}';
      const free = await compile(withTools(own, {}, "none", harmony)?.spec);
      const beside = await compile(withTools(own, { tools }, "auto", harmony)?.spec);
      for (const grammar of [free, beside]) {
        assert.ok(allows(grammar, content));
        assert.ok(allows(grammar, `${reasoning}<|channel|>final<|message|>${content}`));
        assert.ok(allows(grammar, `${reasoning}<|channel|>final <|constrain|>json<|message|>${content}`));
        assert.ok(!allows(grammar, `${reasoning}<|channel|>final<|message|>text`));
        assert.ok(!allows(grammar, reasoning + content));
      }
      assert.ok(allows(beside, reasoning + behind("get_weather", "Oslo")));
      assert.ok(!allows(free, reasoning + behind("get_weather", "Oslo")));
    });
  });

  it("names schemas that formats with listed arguments cannot enforce", () => {
    const format = toolFormats.find(({ name }) => name === "glm45");
    const withParameters = (parameters: object): never[] =>
      [{ type: "function", function: { name: "f", strict: true, parameters } }] as never[];
    const cases: readonly (readonly [object, RegExp])[] = [
      [{ anyOf: [{ required: ["a"] }] }, /have anyOf, which cannot be kept to/],
      [{ properties: { "a b>": {} } }, /include "a b>", a name that/],
      [{ properties: { a: {} }, required: ["b"] }, /require "b", which is not among/],
    ];
    for (const [parameters, message] of cases)
      assert.throws(() => toolGrammar({ tools: withParameters(parameters) }, "auto", format), {
        code: "invalid_request",
        message,
      });
  });

  it("combines a request's own constraint with calls", async () => {
    const hermes = toolFormats.find(({ name }) => name === "hermes");
    const own = { spec: { kind: "json_object" }, param: "response_format" } as const;
    const both = await compile(withTools(own, { tools }, "auto", hermes)?.spec);
    assert.ok(allows(both, '{"a": 1}'));
    assert.ok(allows(both, '<tool_call>\n{"name": "get_time", "arguments": {"zone": 1}}\n</tool_call>'));
    assert.ok(!allows(both, "text"));
    assert.equal(withTools(own, { tools }, "none", hermes), own);
    const forced = await compile(withTools(own, { tools }, "required", hermes)?.spec);
    assert.ok(!allows(forced, '{"a": 1}'));
  });

  it("leaves calls to the allowed tools only, in both modes", async () => {
    const hermes = toolFormats.find(({ name }) => name === "hermes");
    const allowed = (mode: "auto" | "required"): Promise<Grammar> => {
      const only = [{ type: "function" as const, function: { name: "get_time" } }];
      const choice = { type: "allowed_tools" as const, allowed_tools: { mode, tools: only } };
      const fields = { tools, tool_choice: choice };
      return compile(toolGrammar(fields, toolChoice(fields), hermes));
    };
    const call = (name: string): string =>
      `<tool_call>\n{"name": "${name}", "arguments": {"city": "Oslo"}}\n</tool_call>`;
    for (const mode of ["auto", "required"] as const) {
      const grammar = await allowed(mode);
      assert.ok(allows(grammar, call("get_time")));
      assert.ok(!allows(grammar, call("get_weather")));
      assert.equal(allows(grammar, "Hello."), mode === "auto");
    }
  });

  it("adds no constraint if no tool is strict", () => {
    assert.equal(toolGrammar({ tools: tools.slice(1) }, "auto", toolFormats[0]), undefined);
    assert.equal(toolGrammar({ tools }, "none", toolFormats[0]), undefined);
  });
});
