import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { callWriters } from "./testing/agreement-writers.js";
import { reasoningFormats } from "./reasoning/reasoning-format.js";
import { reasoningFormatNames, toolFormatNames } from "./format-names.js";
import { resolveFormats, toolFormats } from "./registry.js";

const auto = { toolCallParser: "auto", reasoningParser: "auto" } as const;

/** Formats whose calls look like another's, or like plain JSON. */
const ambiguous = new Set(["deepseek_v31", "gigachat3", "llama3_json", "muse_glimmer", "pythonic", "xlam"]);

it("flags are checked against the names of the formats that there are", () => {
  assert.deepEqual(
    toolFormatNames,
    toolFormats.map(({ name }) => name),
  );
  assert.deepEqual(
    reasoningFormatNames,
    [...reasoningFormats, ...toolFormats.flatMap(({ reasoning }) => reasoning ?? [])].map(({ name }) => name),
  );
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
    // As Meta's template shows calls, and as vLLM's does.
    ["<|header_start|><|python_start|>", "llama4_pythonic", undefined],
    [
      "<|header_start|> Use exact format: [func_name1(param1=value1, param2=value2)]",
      "llama4_pythonic",
      undefined,
    ],
    ["<minimax:tool_call></think><response>", "minimax_m2", "minimax_m2"],
    ["<|start_of_role|></think><response>tool_call", "granite", "granite_thinking_parser"],
    ["<|im_start|></think><response><tool_call>", "hermes", "ernie45"],
    ["<|startoftext|></think><tool_calls>", "hunyuan_a13b", "hunyuan_a13b"],
    ["<think></think>", undefined, "qwen3"],
    ["<|content_invoke_tool_json|>", "inkling", undefined],
    ["<|open|>think<|open|>tools", "kimi_k3", "kimi_k3"],
    ["<mm:think>]<]minimax[>[", "minimax_m3", "minimax_m3"],
    ["<think:6f></think:6f><tool_calls:6f><arg_key:6f>", "hy_v4", "hy_v4"],
  ] as const;
  for (const [template, tools, reasoning] of cases)
    it(`of ${template}`, () => {
      const found = resolveFormats(auto, [template]);
      assert.deepEqual([found.tools?.name, found.reasoning?.name], [tools, reasoning]);
    });
});

describe("a name", () => {
  it("of a parser that reads reasoning too chooses it for both", () => {
    const { tools, reasoning } = resolveFormats({ ...auto, reasoningParser: "musespark1x" }, []);
    assert.deepEqual([tools?.name, reasoning?.name], ["musespark1x", undefined]);
  });

  it("of a checkpoint whose tags end in a suffix reads them", () => {
    const names = { toolCallParser: "hy_v4", reasoningParser: "hy_v4" };
    const { tools, reasoning } = resolveFormats(names, ["<tool_calls:6f>"]);
    assert.deepEqual(reasoning?.endTags, ["</think:6f>"]);
    assert.equal(tools?.layout?.trigger, "<tool_calls:6f>");
  });

  it("of vLLM's that cannot be served is refused with the reason", () => {
    for (const [name, reason] of [
      ["hf", /response_template/],
      ["beam", /response_template/],
      ["minicpmv", /images/],
    ] as const)
      assert.throws(() => resolveFormats({ ...auto, reasoningParser: name }, []), reason);
    assert.throws(() => resolveFormats({ ...auto, toolCallParser: "hf" }, []), /response_template/);
  });
});
