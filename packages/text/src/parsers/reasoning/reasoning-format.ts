import type { MachineContext } from "../machine.js";
import { takeSpace, type Waiting } from "../shared/input.js";
import { takeText, untilTag } from "../shared/tags.js";

/** Whether the prompt opened reasoning (the template wrote the start tag), closed it, or did neither. */
export type PromptReasoning = "open" | "closed" | "unknown";

export interface ReasoningFormat {
  /** vLLM's `--reasoning-parser` name. */
  readonly name: string;
  readonly startTags: readonly string[];
  readonly endTags: readonly string[];
  /** Answers begin inside reasoning even without a start tag. */
  readonly beginsOpen: boolean;
  /** Markup around the answer, which content leaves out. No tag may be a prefix of another. */
  readonly answerTags?: readonly string[];
}

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

const named = (names: string, format: Omit<ReasoningFormat, "name">): readonly ReasoningFormat[] =>
  names.split(" ").map((name) => ({ name, ...format }));

/** Formats by their tags. Sources: the models' chat templates and cards. */
export const reasoningFormats: readonly ReasoningFormat[] = [
  ...named("deepseek_r1 holo2 olmo3 step3 step3p5", openThink),
  ...named("qwen3 deepseek_v3 deepseek_v4 glm45 glm47 kimi_k2 hy_v3 mimo nemotron_v3 poolside_v1", think),
  { name: "minimax_m2", ...openThink, answerTags: ["</think>"] },
  { name: "ernie45", ...openThink, answerTags: ["<response>", "\n</response>", "</response>"] },
  { name: "hunyuan_a13b", ...think, answerTags: ["<answer>", "\n</answer>", "</answer>"] },
  { name: "seed_oss", startTags: ["<seed:think>"], endTags: ["</seed:think>"], beginsOpen: true },
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
