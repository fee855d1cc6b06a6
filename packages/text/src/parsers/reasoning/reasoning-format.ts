import type { MachineContext, ReasoningFormat } from "../machine.js";
import { takeSpace, type Waiting } from "../shared/input.js";
import { takeText, untilTag } from "../shared/tags.js";

/** Whether the prompt opened reasoning (the template wrote the start tag), closed it, or did neither. */
export type PromptReasoning = "open" | "closed" | "unknown";

/**
 * Reads reasoning at the beginning of the output, if there is any; the format's machine reads the rest. One of `callStarts`
 * ends it too, as in vLLM: models at times begin a call without closing their reasoning.
 */
export function* readReasoning(
  { input, sink }: MachineContext,
  format: ReasoningFormat,
  prompt: PromptReasoning,
  callStarts: readonly string[],
): Waiting {
  if (format.keptBehind !== undefined) return sink.content(format.keptBehind);
  let isOpen = prompt === "open" || (prompt === "unknown" && format.beginsOpen);
  const space = yield* takeSpace(input);
  for (const tag of format.startTags) {
    if (!(yield* takeText(input, tag))) continue;
    isOpen = true;
    break;
  }
  if (!isOpen) {
    input.unread(space);
    return;
  }
  sink.beginReasoning(input.offset);
  const end = yield* untilTag(input, [...format.endTags, ...callStarts], (text) => sink.reasoning(text));
  sink.endReasoning(input.offset - (end?.length ?? 0));
  if (end !== undefined && callStarts.includes(end)) input.unread(end);
}

/** Characters at the end of a prompt that are searched for tags. */
const tailLength = 256;

/** Whether a rendered prompt ends with a start or an end tag of reasoning. */
export function promptReasoning(prompt: string, format: ReasoningFormat): PromptReasoning {
  const tail = prompt.slice(-tailLength).trimEnd();
  if (format.startTags.some((tag) => tail.endsWith(tag.trimEnd()))) return "open";
  return format.endTags.some((tag) => tail.endsWith(tag)) ? "closed" : "unknown";
}

const think = { startTags: ["<think>"], endTags: ["</think>"], beginsOpen: false } as const;
const openThink = { ...think, beginsOpen: true } as const;
const cohere = {
  startTags: ["<|START_THINKING|>"],
  endTags: ["<|END_THINKING|>"],
  beginsOpen: false,
} as const;
const cohereAnswer = ["<|START_RESPONSE|>", "<|END_RESPONSE|>", "<|START_TEXT|>", "<|END_TEXT|>"] as const;

const response = ["<response>", "\n</response>", "</response>"] as const;

const named = (names: string, format: Omit<ReasoningFormat, "name">): readonly ReasoningFormat[] =>
  names.split(" ").map((name) => ({ name, ...format }));

/** Formats by their tags. Sources: the models' chat templates and cards. */
export const reasoningFormats: readonly ReasoningFormat[] = [
  ...named("deepseek_r1 holo2 olmo3 step3 step3p5 step5", openThink),
  ...named(
    "qwen3 deepseek_v3 deepseek_v4 deepseek_v41 glm45 glm47 kimi_k2 hy_v3 hy_v4 ling3 mimo nemotron_v3 poolside_v1",
    think,
  ),
  { name: "minimax_m2", ...openThink, answerTags: ["</think>"] },
  { name: "minimax_m2_append_think", ...openThink, keptBehind: "<think>" },
  { name: "minimax_m3", startTags: ["<mm:think>"], endTags: ["</mm:think>"], beginsOpen: false },
  { name: "ernie45", ...openThink, answerTags: response },
  { name: "granite_thinking_parser", ...think, answerTags: response },
  { name: "hunyuan_a13b", ...think, answerTags: ["<answer>", "\n</answer>", "</answer>"] },
  {
    name: "k2_horizon",
    startTags: ["<ifm|think>", "<ifm|think_fast>", "<ifm|think_faster>"],
    endTags: ["</ifm|think>", "</ifm|think_fast>", "</ifm|think_faster>"],
    beginsOpen: true,
  },
  {
    name: "kimi_k3",
    startTags: ["<|open|>think<|sep|>"],
    endTags: ["<|close|>think<|sep|>"],
    beginsOpen: false,
    answerTags: ["<|open|>response<|sep|>", "<|close|>response<|sep|>", "<|close|>message<|sep|>"],
  },
  {
    name: "plamo3",
    startTags: ["<|plamo:begin_think:plamo|>"],
    endTags: ["<|plamo:end_think:plamo|>"],
    beginsOpen: true,
    answerTags: ["<|plamo:end_think:plamo|>"],
  },
  { name: "seed_oss", startTags: ["<seed:think>"], endTags: ["</seed:think>"], beginsOpen: true },
  { name: "solar_open2", startTags: ["<|think:start|>"], endTags: ["<|think:end|>"], beginsOpen: false },
  ...named("cohere_command3 cohere_command4", { ...cohere, answerTags: cohereAnswer }),
  // the channel's name, where the model writes it, is markup
  {
    name: "gemma4",
    startTags: ["<|channel>thought\n", "<|channel>"],
    endTags: ["<channel|>"],
    beginsOpen: false,
  },
  { name: "mistral", startTags: ["[THINK]"], endTags: ["[/THINK]"], beginsOpen: false },
  {
    name: "granite",
    startTags: ["Here is my thought process:", "Here's my thought process:"],
    endTags: ["Here is my response:", "Here's my response:"],
    beginsOpen: false,
  },
];
