import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { callWriters } from "./testing/agreement-writers.js";
import { reasoningFormats } from "./reasoning/reasoning-format.js";
import { harmonyReasoning, reasoningFormatNames, toolFormatNames } from "./format-names.js";
import { resolveFormats, toolFormats } from "./registry.js";

const auto = { toolCallParser: "auto", reasoningParser: "auto" } as const;

/** Formats whose calls look like another's, or like plain JSON. */
const ambiguous = new Set(["deepseek_v31", "gigachat3", "llama3_json", "pythonic", "xlam"]);

it("flags are checked against the names of the formats that there are", () => {
  assert.deepEqual(
    toolFormatNames,
    toolFormats.map(({ name }) => name),
  );
  assert.deepEqual(reasoningFormatNames, [...reasoningFormats.map(({ name }) => name), harmonyReasoning]);
});

describe("a template that replays calls", () => {
  for (const { name, machine } of toolFormats) {
    const write = callWriters[name];
    if (write === undefined || ambiguous.has(name)) continue;
    it(`shows the format ${name}`, () => {
      const roles = name.startsWith("granite") ? "<|start_of_role|>" : "";
      const { tools } = resolveFormats(auto, [roles + write([["f", { key: "value" }]])]);
      assert.equal(tools?.machine, machine);
    });
  }
});

describe("a template", () => {
  const cases = [
    ["<{{ dsml }}function_calls> message.tool_calls \uff5cDSML\uff5c", "deepseek_v32", undefined],
    ["<|role_sep|> 'function call'", "gigachat3", undefined],
    ["<|tool_list_start|>", "lfm2", undefined],
    ["<minimax:tool_call></think><response>", "minimax_m2", "minimax_m2"],
    ["<|start_of_role|></think><response>tool_call", "granite", "granite_thinking_parser"],
    ["<|im_start|></think><response><tool_call>", "hermes", "ernie45"],
    ["<|startoftext|></think><tool_calls>", "hunyuan_a13b", "hunyuan_a13b"],
    ["<think></think>", undefined, "qwen3"],
  ] as const;
  for (const [template, tools, reasoning] of cases)
    it(`of ${template}`, () => {
      const found = resolveFormats(auto, [template]);
      assert.deepEqual([found.tools?.name, found.reasoning?.name], [tools, reasoning]);
    });
});
