import { literalSpec } from "../shared/grammar-specs.js";
import type { ToolFormat } from "../machine.js";
import { taggedJsonCalls } from "../shared/json-calls.js";

/**
 * `<tool_call>{"name": ..., "arguments": {...}}</tool_call>`, once per call. Format: NousResearch's Hermes Function Calling
 * prompt, taken over by Qwen 2.5/3 and octavo-mini.
 */
export const hermesFormat: ToolFormat = {
  name: "hermes",
  markers: ["<tool_call>", "</tool_call>"],
  machine: taggedJsonCalls(["<tool_call>"], ["</tool_call>"]),
  layout: {
    begin: (name) => [literalSpec(`<tool_call>\n{"name": ${JSON.stringify(name)}, "arguments": `)],
    end: "}\n</tool_call>",
    separator: "\n",
    trigger: "<tool_call>",
  },
};
