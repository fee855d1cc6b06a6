import type { MachineContext } from "../machine.js";
import { takeSpace, type Waiting } from "../shared/input.js";
import { takeText, untilTag } from "../shared/tags.js";

/** Whether the prompt left reasoning open (templates that write the start tag), closed it, or said nothing. */
export type PromptReasoning = "open" | "closed" | "unknown";

export interface ReasoningFormat {
  /** vLLM's `--reasoning-parser` name. */
  readonly name: string;
  readonly startTags: readonly string[];
  readonly endTags: readonly string[];
  /** Models whose answers begin inside reasoning even where nothing shows it. */
  readonly beginsOpen: boolean;
}

/** Reads the reasoning at the output's beginning, if there is any, and leaves the rest to the next machine. */
export function* readReasoning(
  { input, sink }: MachineContext,
  format: ReasoningFormat,
  prompt: PromptReasoning,
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
  const end = yield* untilTag(input, format.endTags, (text) => sink.reasoning(text));
  sink.endReasoning(input.offset - (end?.length ?? 0));
}

/** Longest end of a prompt that is looked at. */
const tailLength = 256;

/** What a rendered prompt says about reasoning: whether it ends in a start or an end tag. */
export function promptReasoning(prompt: string, format: ReasoningFormat): PromptReasoning {
  const tail = prompt.slice(-tailLength).trimEnd();
  if (format.startTags.some((tag) => tail.endsWith(tag))) return "open";
  return format.endTags.some((tag) => tail.endsWith(tag)) ? "closed" : "unknown";
}

const think = { startTags: ["<think>"], endTags: ["</think>"] } as const;

/** Formats by their tags. Sources: the models' chat templates and cards (DeepSeek-R1, Qwen3, GLM-4.5, Kimi-K2-Thinking, Magistral, Granite 3.2). */
export const reasoningFormats: readonly ReasoningFormat[] = [
  { name: "deepseek_r1", ...think, beginsOpen: true },
  { name: "qwen3", ...think, beginsOpen: false },
  { name: "deepseek_v3", ...think, beginsOpen: false },
  { name: "glm45", ...think, beginsOpen: false },
  { name: "kimi_k2", ...think, beginsOpen: false },
  { name: "mistral", startTags: ["[THINK]"], endTags: ["[/THINK]"], beginsOpen: false },
  {
    name: "granite",
    startTags: ["Here is my thought process:", "Here's my thought process:"],
    endTags: ["Here is my response:", "Here's my response:"],
    beginsOpen: false,
  },
];
