import { checkFormatNames, type FormatNames, harmonyReasoning, toolFormatName } from "./format-names.js";
import { deepseekV31Format, deepseekV3Format } from "./formats/deepseek-v3.js";
import { functionGemmaFormat, gemma4Format } from "./formats/gemma.js";
import { glm45Format, hyV3Format, solarOpen2Format } from "./formats/glm45.js";
import { harmonyFormat, harmonyReasoningTags } from "./formats/harmony.js";
import {
  apertusFormat,
  cohereFormat,
  gigachat3Format,
  granite20bFormat,
  graniteFormat,
  hermesFormat,
  internlmFormat,
  longcatFormat,
  phi4MiniJsonFormat,
  toolCallsFormat,
} from "./formats/json-objects.js";
import { kimiK2Format } from "./formats/kimi-k2.js";
import { llama3JsonFormat } from "./formats/llama3-json.js";
import { mistralFormat } from "./formats/mistral.js";
import { lfm2Format, llama4PythonicFormat, olmo3Format, pythonicFormat } from "./formats/pythonic.js";
import {
  deepseekV32Format,
  deepseekV41Format,
  deepseekV4Format,
  minimaxM2Format,
  qwen3CoderFormat,
  seedOssFormat,
  step3Format,
} from "./formats/tagged-parameters.js";
import { xlamFormat } from "./formats/xlam.js";
import type { ToolFormat } from "./machine.js";
import { type ReasoningFormat, reasoningFormats } from "./reasoning/reasoning-format.js";

/** A format, its other names, and how chat templates that use it are recognised: by any of these texts or groups of texts. */
interface FormatRow {
  readonly format: ToolFormat;
  readonly aliases?: readonly string[];
  readonly shownBy?: readonly (string | readonly string[])[];
}

/** In the order of detection: markup that only one family uses comes first. */
const rows: readonly FormatRow[] = [
  { format: harmonyFormat, shownBy: [["<|channel|>", "<|message|>"]] },
  { format: functionGemmaFormat, shownBy: ["<start_function_call>"] },
  { format: gemma4Format, shownBy: ["<|tool_call>call:"] },
  { format: deepseekV32Format, shownBy: [["\uff5cDSML\uff5c", "function_calls>"]] },
  { format: deepseekV41Format, shownBy: [["\uff5cDSML\uff5c", " calls>"]] },
  { format: deepseekV4Format, shownBy: ["\uff5cDSML\uff5c"] },
  { format: step3Format, shownBy: ["<steptml:invoke"] },
  { format: deepseekV3Format, shownBy: ["<\uff5ctool\u2581call\u2581begin\uff5c>"] },
  { format: deepseekV31Format },
  { format: kimiK2Format, shownBy: ["<|tool_call_argument_begin|>"] },
  { format: hyV3Format, shownBy: [["<tool_sep>", "<arg_key>"]] },
  { format: glm45Format, aliases: ["glm47", "ling3", "poolside_v1"], shownBy: ["<arg_key>"] },
  { format: solarOpen2Format, shownBy: ["<|tool_arg:start|>"] },
  { format: seedOssFormat, shownBy: ["<seed:tool_call>"] },
  { format: qwen3CoderFormat, aliases: ["qwen3_xml", "mimo", "step3p5"], shownBy: ["<function="] },
  { format: minimaxM2Format, shownBy: ["<minimax:tool_call>"] },
  { format: cohereFormat, aliases: ["cohere_command4"], shownBy: ["<|START_ACTION|>"] },
  { format: apertusFormat, shownBy: ["<|tools_prefix|>"] },
  { format: internlmFormat, aliases: ["internlm2"], shownBy: [["<|action_start|>", "<|plugin|>"]] },
  { format: longcatFormat, shownBy: ["<longcat_tool_call>"] },
  { format: gigachat3Format, shownBy: ["<|function_call|>", ["function call", "<|role_sep|>"]] },
  { format: lfm2Format, shownBy: ["<|tool_call_start|>", "<|tool_list_start|>"] },
  { format: olmo3Format, shownBy: ["<function_calls>"] },
  { format: mistralFormat, shownBy: ["[TOOL_CALLS]"] },
  { format: graniteFormat, aliases: ["granite4"], shownBy: [["<|start_of_role|>", "tool_call"]] },
  { format: granite20bFormat, shownBy: ["<function_call>"] },
  { format: phi4MiniJsonFormat, shownBy: ["<|/tool_call|>", "functools["] },
  { format: toolCallsFormat, aliases: ["jamba", "minimax"], shownBy: ["<tool_calls>"] },
  { format: hermesFormat, aliases: ["qwen3_json", "ernie45"], shownBy: ["<tool_call>"] },
  { format: llama4PythonicFormat, shownBy: ["<|python_start|>"] },
  {
    format: llama3JsonFormat,
    aliases: ["llama4_json"],
    shownBy: ["<|python_tag|>", '{"name": function name, "parameters":'],
  },
  { format: pythonicFormat, shownBy: ["[func_name1(params_name1="] },
  { format: xlamFormat },
];

/** How chat templates of reasoning formats are recognised; the first that applies. */
const reasoningRows: readonly (readonly [name: string, ...texts: string[]])[] = [
  ["mistral", "[THINK]"],
  ["granite", "Here is my thought process:"],
  ["seed_oss", "<seed:think>"],
  ["solar_open2", "<|think:start|>"],
  ["gemma4", "<|channel>thought"],
  ["cohere_command3", "<|START_THINKING|>"],
  ["minimax_m2", "</think>", "<minimax:tool_call>"],
  ["granite_thinking_parser", "</think>", "<response>", "<|start_of_role|>"],
  ["ernie45", "</think>", "<response>", "<|im_start|>"],
  ["hunyuan_a13b", "</think>", "<answer>"],
  ["hunyuan_a13b", "</think>", "<|startoftext|>", "<tool_calls>"],
];

export const toolFormats: readonly ToolFormat[] = rows.flatMap(({ format, aliases = [] }) => [
  format,
  ...aliases.map((name) => ({ ...format, name })),
]);

/** It also parses reasoning and content, so it is used without tools too. */
export const harmonyTools: ToolFormat = harmonyFormat;

const harmonyReasoningFormat: ReasoningFormat = { name: harmonyReasoning, ...harmonyReasoningTags };

/** How a model's output is read. */
export interface OutputFormats {
  readonly tools: ToolFormat | undefined;
  readonly reasoning: ReasoningFormat | undefined;
}

/** The tags around reasoning; undefined where they are not known. */
export function reasoningTags({ tools, reasoning }: OutputFormats): ReasoningFormat | undefined {
  return reasoning ?? (tools === harmonyFormat ? harmonyReasoningFormat : undefined);
}

/** Markup that begins a call, wherever it stands. */
export function callStarts({ callStarts: starts, layout }: ToolFormat): readonly string[] {
  return starts ?? (layout?.trigger === undefined ? [] : [layout.trigger]);
}

/** Throws `invalid_option` for a name that is not known. */
export function resolveFormats(names: FormatNames, templates: readonly string[]): OutputFormats {
  checkFormatNames(names);
  const { toolCallParser, reasoningParser } = names;
  const template = templates.join("\n");
  const isHarmony =
    reasoningParser === harmonyReasoning ||
    (reasoningParser === "auto" && detectToolFormat(template) === harmonyFormat);
  return {
    tools: isHarmony && toolCallParser === "auto" ? harmonyFormat : resolveTools(toolCallParser, template),
    reasoning: isHarmony ? undefined : resolveReasoning(reasoningParser, template),
  };
}

function resolveTools(name: string, template: string): ToolFormat | undefined {
  if (name === "auto") return detectToolFormat(template);
  return toolFormats.find((format) => format.name === toolFormatName(name));
}

function resolveReasoning(name: string, template: string): ReasoningFormat | undefined {
  if (name === "auto") return detectReasoningFormat(template);
  return reasoningFormats.find((format) => format.name === name);
}

/** The format that a chat template describes or replays; undefined when it shows none. */
function detectToolFormat(template: string): ToolFormat | undefined {
  const has = (texts: string | readonly string[]): boolean =>
    [texts].flat().every((text) => template.includes(text));
  return rows.find(({ shownBy = [] }) => shownBy.some(has))?.format;
}

function detectReasoningFormat(template: string): ReasoningFormat | undefined {
  const byName = (name: string): ReasoningFormat | undefined =>
    reasoningFormats.find((format) => format.name === name);
  const row = reasoningRows.find(([, ...texts]) => texts.every((text) => template.includes(text)));
  if (row !== undefined) return byName(row[0]);
  if (!template.includes("</think>")) return undefined;
  // R1's first template leaves the start tag to the model, which leaves it out at times
  const isR1 = template.includes("<\uff5cAssistant\uff5c>") && !template.includes("thinking");
  return byName(isR1 ? "deepseek_r1" : "qwen3");
}
