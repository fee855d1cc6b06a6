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
}

/** Reads reasoning at the beginning of the output, if there is any; the format's machine reads the rest. */
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

/** Characters at the end of a prompt that are searched for tags. */
const tailLength = 256;

/** Whether a rendered prompt ends with a start or an end tag of reasoning. */
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
