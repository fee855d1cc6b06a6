import type { CallLayout, ToolFormat } from "../machine.js";
import { literalSpec } from "../shared/grammar-specs.js";
import { jsonArrayLayout, taggedJsonCalls } from "../shared/json-calls.js";

/** One object per pair of tags. */
function objectLayout(open: string, close: string, key = "arguments"): CallLayout {
  return {
    begin: (name) => [literalSpec(`${open}{"name": ${JSON.stringify(name)}, "${key}": `)],
    end: `}${close}`,
    separator: "\n",
    trigger: open.trim(),
  };
}

/**
 * `<tool_call>{"name": ..., "arguments": {...}}</tool_call>`, once per call. Format: NousResearch's Hermes Function Calling
 * prompt, taken over by Qwen 2.5/3, ERNIE 4.5 and octavo-mini.
 */
export const hermesFormat: ToolFormat = {
  name: "hermes",
  markers: ["<tool_call>", "</tool_call>"],
  machine: taggedJsonCalls(["<tool_call>"], ["</tool_call>"]),
  layout: objectLayout("<tool_call>\n", "\n</tool_call>"),
};

/** As Hermes's, between tags of its own. Format: the chat template of meituan-longcat/LongCat-Flash-Chat. */
export const longcatFormat: ToolFormat = {
  name: "longcat",
  markers: ["<longcat_tool_call>", "</longcat_tool_call>"],
  machine: taggedJsonCalls(["<longcat_tool_call>"], ["</longcat_tool_call>"]),
  layout: objectLayout("<longcat_tool_call>", "</longcat_tool_call>"),
};

/** `<|action_start|><|plugin|>{"name": ..., "parameters": {...}}<|action_end|>`. Format: InternLM2's chat format guide. */
export const internlmFormat: ToolFormat = {
  name: "internlm",
  markers: ["<|action_start|>", "<|plugin|>", "<|action_end|>"],
  machine: taggedJsonCalls(["<|action_start|><|plugin|>"], ["<|action_end|>"]),
  layout: objectLayout("<|action_start|><|plugin|>", "<|action_end|>", "parameters"),
};

/** `<function_call> {"name": ..., "arguments": {...}}`. Format: the model card of ibm-granite/granite-20b-functioncalling. */
export const granite20bFormat: ToolFormat = {
  name: "granite-20b-fc",
  markers: ["<function_call>"],
  machine: taggedJsonCalls(["<function_call>"], []),
  layout: objectLayout("<function_call> ", ""),
};

/**
 * `<|function_call|>{"name": ..., "arguments": {...}}`, in version 3.0 a message of the role `function call`. Format: the chat
 * templates of ai-sage's GigaChat 3 models.
 */
export const gigachat3Format: ToolFormat = {
  name: "gigachat3",
  markers: ["<|function_call|>", "<|message_sep|>", "<|role_sep|>", "<|message_sep|>\n\n", "<|role_sep|>\n"],
  machine: taggedJsonCalls(["<|function_call|>", "<|message_sep|>\n\nfunction call<|role_sep|>\n"], ["</s>"]),
  layout: { ...objectLayout("<|function_call|>", ""), trigger: "<|function_call|>" },
};

/**
 * `<tool_calls>[{"name": ..., "arguments": {...}}, ...]</tool_calls>`, or an object per line. Format: the chat templates of
 * tencent/Hunyuan-A13B-Instruct, ai21labs/Jamba and MiniMaxAI/MiniMax-M1.
 */
export const toolCallsFormat: ToolFormat = {
  name: "hunyuan_a13b",
  markers: ["<tool_calls>", "</tool_calls>"],
  machine: taggedJsonCalls(["<tool_calls>"], ["</tool_calls>"]),
  layout: { ...jsonArrayLayout("<tool_calls>", "<tool_calls>"), close: "]</tool_calls>" },
};

/**
 * `<|START_ACTION|>[{"tool_call_id": "0", "tool_name": ..., "parameters": {...}}, ...]<|END_ACTION|>`. Format: Cohere's guide to
 * Command's prompt format.
 */
export const cohereFormat: ToolFormat = {
  name: "cohere_command3",
  markers: ["<|START_ACTION|>", "<|END_ACTION|>"],
  machine: taggedJsonCalls(["<|START_ACTION|>"], ["<|END_ACTION|>"]),
  layout: {
    open: "<|START_ACTION|>[",
    close: "]<|END_ACTION|>",
    begin: (name) => [literalSpec(`{"tool_name": ${JSON.stringify(name)}, "parameters": `)],
    end: "}",
    separator: ", ",
    trigger: "<|START_ACTION|>",
  },
};

/** `<|tools_prefix|>[{"name": {...}}, ...]<|tools_suffix|>`. Format: the chat template of swiss-ai/Apertus. */
export const apertusFormat: ToolFormat = {
  name: "apertus",
  markers: ["<|tools_prefix|>", "<|tools_suffix|>"],
  machine: taggedJsonCalls(["<|tools_prefix|>"], ["<|tools_suffix|>"], { keyIsName: true }),
  layout: {
    open: "<|tools_prefix|>[",
    close: "]<|tools_suffix|>",
    begin: (name) => [literalSpec(`{${JSON.stringify(name)}: `)],
    end: "}",
    separator: ", ",
    trigger: "<|tools_prefix|>",
  },
};

/**
 * `<|tool_call|>[{"name": ..., "arguments": {...}}, ...]` (Granite 3.0 and 3.2), `<tool_call>[...]` (3.1) or one object per
 * `<tool_call>...</tool_call>` (4). Format: the chat templates of ibm-granite's models.
 */
export const graniteFormat: ToolFormat = {
  name: "granite",
  markers: ["<|tool_call|>", "<tool_call>", "</tool_call>"],
  machine: taggedJsonCalls(["<|tool_call|>", "<tool_call>"], ["</tool_call>"]),
  callStarts: ["<|tool_call|>", "<tool_call>"],
  layout: jsonArrayLayout("<tool_call>", "<tool_call>"),
};

/**
 * `functools[{"name": ..., "arguments": {...}}, ...]`, or the same array between `<|tool_call|>` and `<|/tool_call|>`.
 * Format: the model card and chat template of microsoft/Phi-4-mini-instruct.
 */
export const phi4MiniJsonFormat: ToolFormat = {
  name: "phi4_mini_json",
  markers: ["<|tool_call|>", "<|/tool_call|>"],
  machine: taggedJsonCalls(["functools", "<|tool_call|>"], ["<|/tool_call|>"]),
  callStarts: ["functools[", "<|tool_call|>"],
  layout: jsonArrayLayout("functools", "functools["),
};
