import assert from "node:assert/strict";
import { after, describe, it } from "node:test";
import type { ChatCustomTool } from "@octavo/protocol";
import type { ToolFormat } from "@octavo/text/parsers/machine";
import { toolFormats } from "@octavo/text/parsers/registry";
import type { Grammar } from "@octavo/text/structured/grammar";
import { GrammarCompiler } from "@octavo/text/structured/grammar-compiler";
import { ByteTokenizer } from "@octavo/text/testing/byte-tokenizer";
import { randomTokens } from "../testing/random-tokens.js";
import { ChatOutput, messageOf } from "./chat-output.js";

const tokenizer = new ByteTokenizer();
const compiler = new GrammarCompiler(tokenizer, { vocabSize: tokenizer.vocabSize });
after(() => compiler[Symbol.dispose]());

const custom = (syntax: "lark" | "regex", definition: string): ChatCustomTool => ({
  type: "custom",
  custom: { name: "run", format: { type: "grammar", grammar: { syntax, definition } } },
});
/** Quotes, backslashes, markup and line breaks, all of which some form of calls has to escape. */
const text = '(?:set|get)\\("[a-z<>/\\\\é]{1,6}"\\)';
const regex = custom("regex", `${text}(?:\\n${text}){0,2}`);
const lark = custom(
  "lark",
  String.raw`start: call ("\n" call)~0..2
call: ("set" | "get") "(\"" NAME "\")"
NAME: /[a-z<>\/\\é]{1,6}/`,
);
const expected = new RegExp(`^${text}(?:\\n${text}){0,2}$`, "u");
const recursive = custom("lark", 'start: "(" start ")" | "\\"x\\""');

function outputOf(format: ToolFormat | undefined, tool: ChatCustomTool): ChatOutput {
  const fields = { tools: [tool], tool_choice: "required" as const, messages: [] };
  return new ChatOutput({ tools: format, reasoning: undefined }, tokenizer, fields, "");
}

async function grammarOf(output: ChatOutput): Promise<Grammar> {
  const { spec } = output.constraint(undefined)!;
  return compiler.compile(spec);
}

/** Undefined where a random walk finds no end. */
function randomAnswer(grammar: Grammar, seed: number): number[] | undefined {
  let isEnded = false;
  const tokens = randomTokens(grammar, tokenizer.vocabSize, seed, ({ isComplete }, numTokens) => {
    isEnded = isComplete;
    return !isComplete && numTokens <= 2000;
  });
  return isEnded ? tokens : undefined;
}

function inputsOf(output: ChatOutput, tokens: readonly number[]): readonly string[] {
  const reader = output.createReader(new Int32Array(), { skipSpecialTokens: false }, true)!;
  const written = tokenizer.decode([...tokens], { skipSpecialTokens: false });
  const { tool_calls: calls = [] } = messageOf("assistant", "", [
    ...reader.push(written, tokens),
    ...reader.finish(),
  ]);
  return calls.map((call) => {
    assert.equal(call.octavo, undefined, written);
    assert.equal(call.type, "custom");
    return call.type === "custom" ? call.custom.input : "";
  });
}

describe("the format of a custom tool", () => {
  for (const format of [...toolFormats, undefined])
    it(`holds for its calls in the form of ${format?.name ?? "no format"}`, async () => {
      for (const tool of [regex, lark]) {
        const output = outputOf(format, tool);
        const grammar = await grammarOf(output);
        let numRead = 0;
        for (let seed = 1; seed <= 24 && numRead < 4; seed++) {
          const tokens = randomAnswer(grammar, seed);
          if (tokens === undefined) continue;
          const inputs = inputsOf(output, tokens);
          for (const input of inputs) assert.match(input, expected);
          numRead += inputs.length;
        }
        assert.ok(numRead > 0);
      }
    });

  it("may refer to itself where calls are JSON, and is refused by name where they are text between tags", async () => {
    for (const format of toolFormats) {
      const output = outputOf(format, recursive);
      const isText = format.layout?.notation?.textEnds !== undefined;
      if (isText) await assert.rejects(grammarOf(output), /line 1: uses "start" within itself/, format.name);
      else await grammarOf(output);
    }
    const hermes = outputOf(
      toolFormats.find(({ name }) => name === "hermes"),
      recursive,
    );
    const matcher = (await grammarOf(hermes)).start();
    const call = '<tool_call>\n{"name": "run", "arguments": {"input": "((\\"x\\"))"}}\n</tool_call>';
    for (const token of tokenizer.encode(call, { addSpecialTokens: false })) assert.ok(matcher.accept(token));
    assert.ok(matcher.isComplete);
  });

  it("that is no grammar is refused with its line", async () => {
    const bad = [
      ['start: "a"\nb{x}: x', /line 2: .*template/],
      ["start: missing", /line 1: uses "missing", which is not defined/],
      ['%declare X\nstart: "a"', /%declare/],
      ['begin: "a"', /no rule "start"/],
      ["start: /(?<=a)b/", /look/],
    ] as const;
    for (const [definition, message] of bad)
      await assert.rejects(grammarOf(outputOf(undefined, custom("lark", definition))), message, definition);
    await assert.rejects(grammarOf(outputOf(undefined, custom("regex", "(a"))), /pattern/);
  });
});
