import { checkFormatNames, type FormatNames, toolFormatName } from "./format-names.js";
import { deepseekV31Format, deepseekV3Format } from "./formats/deepseek-v3.js";
import { functionGemmaFormat, gemma4Format } from "./formats/gemma.js";
import { glm45Format, hunyuanFormat, k2HorizonFormat, solarOpen2Format } from "./formats/glm45.js";
import { harmonyFormat } from "./formats/harmony.js";
import { inklingFormat } from "./formats/inkling.js";
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
import { kimiK3Format } from "./formats/kimi-k3.js";
import { llama3JsonFormat } from "./formats/llama3-json.js";
import { minimaxM3Format } from "./formats/minimax-m3.js";
import { mistralFormat } from "./formats/mistral.js";
import { museFormat, museGlimmerFormat } from "./formats/muse.js";
import { plamo3Format } from "./formats/plamo3.js";
import { lfm2Format, llama4PythonicFormat, olmo3Format, pythonicFormat } from "./formats/pythonic.js";
import {
  deepseekV32Format,
  deepseekV41Format,
  deepseekV4Format,
  dotsFormat,
  minicpm5Format,
  minimaxM2Format,
  qwen3CoderFormat,
  seedOssFormat,
  step3Format,
} from "./formats/tagged-parameters.js";
import { xlamFormat } from "./formats/xlam.js";
import type { ReasoningFormat, ToolFormat } from "./machine.js";
import { reasoningFormats } from "./reasoning/reasoning-format.js";

/** A format, its other names, and how chat templates that use it are recognised: by any of these texts or groups of texts. */
interface FormatRow {
  readonly format: ToolFormat;
  readonly aliases?: readonly string[];
  readonly shownBy?: readonly (string | readonly string[])[];
}

/** In the order of detection: markup that only one family uses comes first. */
const rows: readonly FormatRow[] = [
  { format: harmonyFormat, shownBy: [["<|channel|>", "<|message|>"]] },
  { format: museFormat, aliases: ["musespark1x"], shownBy: ["<atem:invoke"] },
  { format: museGlimmerFormat },
  { format: inklingFormat, shownBy: ["<|content_invoke_tool_json|>"] },
  { format: functionGemmaFormat, shownBy: ["<start_function_call>"] },
  { format: gemma4Format, shownBy: ["<|tool_call>call:"] },
  { format: deepseekV32Format, shownBy: [["\uff5cDSML\uff5c", "function_calls>"]] },
  { format: deepseekV41Format, shownBy: [["\uff5cDSML\uff5c", " calls>"]] },
  { format: deepseekV4Format, shownBy: ["\uff5cDSML\uff5c"] },
  { format: step3Format, shownBy: ["<steptml:invoke"] },
  { format: deepseekV3Format, shownBy: ["<\uff5ctool\u2581call\u2581begin\uff5c>"] },
  { format: deepseekV31Format },
  { format: kimiK2Format, shownBy: ["<|tool_call_argument_begin|>"] },
  { format: kimiK3Format, shownBy: ["<|open|>"] },
  { format: k2HorizonFormat, shownBy: ["<ifm|tool_call>"] },
  { format: plamo3Format, shownBy: ["<|plamo:begin_tool_request"] },
  { format: dotsFormat, shownBy: ["<dots_function_call>"] },
  { format: minimaxM3Format, shownBy: ["]<]minimax[>["] },
  { format: minicpm5Format, shownBy: ["<function name="] },
  { format: hunyuanFormat("hy_v3"), shownBy: [["<tool_sep", "<arg_key"]] },
  { format: hunyuanFormat("hy_v4"), shownBy: [["<tool_calls", "<arg_key"]] },
  { format: glm45Format, aliases: ["glm47", "ling3", "poolside_v1"], shownBy: ["<arg_key>"] },
  { format: solarOpen2Format, shownBy: ["<|tool_arg:start|>"] },
  { format: seedOssFormat, shownBy: ["<seed:tool_call>"] },
  { format: qwen3CoderFormat, aliases: ["qwen3_xml", "mimo", "step3p5", "step5"], shownBy: ["<function="] },
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
  { format: llama4PythonicFormat, shownBy: ["<|python_start|>", ["<|header_start|>", "[func_name1("]] },
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
  ["kimi_k3", "<|open|>think"],
  ["k2_horizon", "<ifm|think>"],
  ["plamo3", "<|plamo:begin_think:plamo|>"],
  ["minimax_m3", "<mm:think>"],
  ["hy_v4", "</think:"],
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
  ...aliases.map((name) => ({
    ...format,
    name,
    ...(format.reasoning === undefined ? {} : { reasoning: { ...format.reasoning, name } }),
  })),
]);

/** How a model's output is read. */
export interface OutputFormats {
  readonly tools: ToolFormat | undefined;
  readonly reasoning: ReasoningFormat | undefined;
}

/** The tags around reasoning; undefined where they are not known. */
export function reasoningTags({ tools, reasoning }: OutputFormats): ReasoningFormat | undefined {
  return reasoning ?? tools?.reasoning;
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
  const detected =
    toolCallParser === "auto" || reasoningParser === "auto" ? detectToolFormat(template) : undefined;
  const whole =
    toolFormats.find(({ reasoning }) => reasoning?.name === reasoningParser) ??
    (reasoningParser === "auto" && detected?.reasoning !== undefined ? detected : undefined);
  const tools = toolCallParser === "auto" ? (whole ?? detected) : toolsOf(toolCallParser);
  const reasoning = whole === undefined ? resolveReasoning(reasoningParser, template) : undefined;
  return withSuffix({ tools, reasoning }, /<tool_calls(:[^\s>'"]+)>/.exec(template)?.[1] ?? "");
}

/** Hunyuan's tags end in a suffix of the checkpoint's. */
function withSuffix({ tools, reasoning }: OutputFormats, suffix: string): OutputFormats {
  if (suffix === "") return { tools, reasoning };
  const suffixed = (tag: string): string => tag.replace(">", `${suffix}>`);
  const name = tools?.name;
  return {
    tools: name === "hy_v3" || name === "hy_v4" ? hunyuanFormat(name, suffix) : tools,
    reasoning:
      reasoning?.name === "hy_v3" || reasoning?.name === "hy_v4"
        ? {
            ...reasoning,
            startTags: reasoning.startTags.map(suffixed),
            endTags: reasoning.endTags.map(suffixed),
          }
        : reasoning,
  };
}

function toolsOf(name: string): ToolFormat | undefined {
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
