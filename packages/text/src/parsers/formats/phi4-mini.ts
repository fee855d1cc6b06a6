import type { ToolFormat } from "../machine.js";
import { jsonArrayLayout, taggedJsonCalls } from "../shared/json-calls.js";

/**
 * `functools[{"name": ..., "arguments": {...}}, ...]`, or the same array between `<|tool_call|>` and `<|/tool_call|>`.
 * Format: the model card and chat template of microsoft/Phi-4-mini-instruct.
 */
export const phi4MiniJsonFormat: ToolFormat = {
  name: "phi4_mini_json",
  markers: ["<|tool_call|>", "<|/tool_call|>"],
  machine: taggedJsonCalls(["functools", "<|tool_call|>"], ["<|/tool_call|>"]),
  layout: jsonArrayLayout("functools", "functools["),
};
