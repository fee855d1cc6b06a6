import type { ToolFormat } from "../machine.js";
import { jsonArrayLayout, taggedJsonCalls } from "../shared/json-calls.js";

/**
 * `<|tool_call|>[{"name": ..., "arguments": {...}}, ...]` (Granite 3.0 and 3.2), `<tool_call>[...]` (3.1) or one object per
 * `<tool_call>...</tool_call>` (4). Format: the chat templates of ibm-granite's models.
 */
export const graniteFormat: ToolFormat = {
  name: "granite",
  markers: ["<|tool_call|>", "<tool_call>", "</tool_call>"],
  machine: taggedJsonCalls(["<|tool_call|>", "<tool_call>"], ["</tool_call>"]),
  layout: jsonArrayLayout("<tool_call>", "<tool_call>"),
};
