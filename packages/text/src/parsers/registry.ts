import { OctavoError } from "@octavo/protocol";
import { deepseekV3, deepseekV31 } from "./formats/deepseek-v3.js";
import { functionGemma } from "./formats/function-gemma.js";
import { glm45 } from "./formats/glm45.js";
import { granite } from "./formats/granite.js";
import { harmony, harmonyReasoningTags } from "./formats/harmony.js";
import { hermes } from "./formats/hermes.js";
import { kimiK2 } from "./formats/kimi-k2.js";
import { llama3Json } from "./formats/llama3-json.js";
import { mistral } from "./formats/mistral.js";
import { phi4MiniJson } from "./formats/phi4-mini.js";
import { llama4Pythonic, pythonic } from "./formats/pythonic.js";
import { qwen3Coder } from "./formats/qwen3-coder.js";
import type { ToolFormat } from "./machine.js";
import { type ReasoningFormat, reasoningFormats } from "./reasoning/reasoning-format.js";

export const toolFormats: readonly ToolFormat[] = [
  hermes,
  llama3Json,
  { ...llama3Json, name: "llama4_json" },
  llama4Pythonic,
  pythonic,
  mistral,
  qwen3Coder,
  { ...qwen3Coder, name: "qwen3_xml" },
  granite,
  { ...granite, name: "granite4" },
  phi4MiniJson,
  deepseekV3,
  deepseekV31,
  kimiK2,
  glm45,
  { ...glm45, name: "glm47" },
  harmony,
  functionGemma,
];

/** Reads reasoning and content as well, so that it is needed without tools too. */
export const harmonyTools: ToolFormat = harmony;

/** Reasoning in harmony's channels, which its tool format reads too. */
export const harmonyReasoning = "openai_gptoss";

const harmonyReasoningFormat: ReasoningFormat = { name: harmonyReasoning, ...harmonyReasoningTags };

/** How a model's output is read. */
export interface OutputFormats {
  readonly tools: ToolFormat | undefined;
  readonly reasoning: ReasoningFormat | undefined;
}

/** The tags around reasoning; undefined where they are not known. */
export function reasoningTags({ tools, reasoning }: OutputFormats): ReasoningFormat | undefined {
  return reasoning ?? (tools === harmony ? harmonyReasoningFormat : undefined);
}

/** `auto` goes by the chat template; `none` leaves the output as it is. */
export interface FormatNames {
  readonly toolCallParser: string;
  readonly reasoningParser: string;
}

/** Throws `invalid_option` for a name that is not known. */
export function resolveFormats(names: FormatNames, templates: readonly string[]): OutputFormats {
  const { toolCallParser, reasoningParser } = names;
  const template = templates.join("\n");
  const isHarmony =
    reasoningParser === harmonyReasoning ||
    (reasoningParser === "auto" && detectToolFormat(template) === harmony);
  return {
    tools: isHarmony && toolCallParser === "auto" ? harmony : resolveTools(toolCallParser, template),
    reasoning: isHarmony ? undefined : resolveReasoning(reasoningParser, template),
  };
}

function resolveTools(name: string, template: string): ToolFormat | undefined {
  if (name === "auto") return detectToolFormat(template);
  if (name === "none") return undefined;
  const wanted = name === "gpt_oss" || name === "harmony" ? "openai" : name;
  const format = toolFormats.find((candidate) => candidate.name === wanted);
  if (format !== undefined) return format;
  throw unknownName("toolCallParser", "tool call parser", name, toolFormats);
}

function resolveReasoning(name: string, template: string): ReasoningFormat | undefined {
  if (name === "auto") return detectReasoningFormat(template);
  if (name === "none") return undefined;
  const format = reasoningFormats.find((candidate) => candidate.name === name);
  if (format !== undefined) return format;
  throw unknownName("reasoningParser", "reasoning parser", name, [
    ...reasoningFormats,
    { name: harmonyReasoning },
  ]);
}

function unknownName(
  param: string,
  kind: string,
  name: string,
  known: readonly { readonly name: string }[],
): OctavoError {
  const names = ["auto", "none", ...known.map((format) => format.name)].join(", ");
  return new OctavoError(
    "invalid_option",
    `${param}: there is no ${kind} ${JSON.stringify(name)}; known are ${names}`,
    {
      param,
    },
  );
}

/** Rules in order: markup that one family alone has comes first. */
const toolRules: readonly (readonly [(template: string) => boolean, ToolFormat])[] = [
  [has("<|channel|>", "<|message|>"), harmony],
  [has("<start_function_call>"), functionGemma],
  [has("<\uff5ctool\u2581call\u2581begin\uff5c>"), deepseekV3],
  [has("<|tool_call_argument_begin|>"), kimiK2],
  [has("<arg_key>"), glm45],
  [has("<function="), qwen3Coder],
  [has("[TOOL_CALLS]"), mistral],
  [has("<|start_of_role|>", "tool_call"), granite],
  [has("<|/tool_call|>"), phi4MiniJson],
  [has("functools["), phi4MiniJson],
  [has("<tool_call>"), hermes],
  [has("<|python_start|>"), llama4Pythonic],
  [has("<|python_tag|>"), llama3Json],
  [has('{"name": function name, "parameters":'), llama3Json],
  [has("[func_name1(params_name1="), pythonic],
];

/** The format that a chat template teaches or replays; undefined when it shows none. */
export function detectToolFormat(template: string): ToolFormat | undefined {
  return toolRules.find(([applies]) => applies(template))?.[1];
}

export function detectReasoningFormat(template: string): ReasoningFormat | undefined {
  const byName = (name: string): ReasoningFormat | undefined =>
    reasoningFormats.find((format) => format.name === name);
  if (template.includes("[THINK]")) return byName("mistral");
  if (template.includes("Here is my thought process:")) return byName("granite");
  if (!template.includes("</think>")) return undefined;
  // R1's first template leaves the start tag to the model, which leaves it out at times
  const isR1 = template.includes("<\uff5cAssistant\uff5c>") && !template.includes("thinking");
  return byName(isR1 ? "deepseek_r1" : "qwen3");
}

function has(...texts: readonly string[]): (template: string) => boolean {
  return (template) => texts.every((text) => template.includes(text));
}
