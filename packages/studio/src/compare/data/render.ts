import type { ChatTemplate } from "@octavo/engine";
import { OctavoError } from "@octavo/protocol";
import type { Case, DataMessage, CaseToolCall } from "./cases.js";

/** A part of a text that a model wrote or should write. UTF-16 offsets. */
export interface RenderedAnswer {
  readonly start: number;
  readonly end: number;
  /** The message it is, where the data has it apart from the markup around it. */
  readonly message: DataMessage | undefined;
  /** Calls in the answer are tool calls: the message has some, or tools were offered. */
  readonly mayCallTools: boolean;
}

/** A text as a model sees it, with the parts that are scored. */
export interface ScoredText {
  readonly line: number;
  readonly text: string;
  readonly answers: readonly RenderedAnswer[];
  /** Whether the tokenizer adds its own special tokens; a chat template has written them. */
  readonly addSpecialTokens: boolean;
  /** A text that is not somebody's answer. */
  readonly isPlain: boolean;
}

export interface Templates {
  readonly default: ChatTemplate | undefined;
  /** For conversations with tools, where the checkpoint has one. */
  readonly toolUse: ChatTemplate | undefined;
  /** Whose they are, for errors. */
  readonly model: string;
}

/**
 * A case as texts to score. A conversation is laid out as the server would have seen it at each assistant turn: the
 * messages before it with the generation prompt, then the turn. Turns whose text only continues the one before share a
 * text; where a template changes earlier turns (drops their reasoning, for example), each turn has its own.
 * @throws OctavoError `template_error` that names the line
 */
export function renderCase(item: Case, templates: Templates, path: string): ScoredText[] {
  switch (item.kind) {
    case "text":
      return [plain(item.line, item.text, 0, true)];
    case "completion":
      return [plain(item.line, item.prompt + item.completion, item.prompt.length, false)];
    case "conversation":
      break;
  }
  const { line, messages, tools, completion } = item;
  const template = (tools.length > 0 ? templates.toolUse : undefined) ?? templates.default;
  if (template === undefined) {
    throw new OctavoError(
      "template_error",
      `${templates.model} has no chat template, which ${path}:${line} needs; give {prompt, completion} or {text} instead.`,
    );
  }
  const render = (some: readonly DataMessage[], addGenerationPrompt: boolean): string => {
    try {
      return template.render({
        messages: some,
        addGenerationPrompt,
        ...(tools.length > 0 && { tools }),
      });
    } catch (error) {
      const { message } = OctavoError.from(error);
      throw new OctavoError("template_error", `${path}:${line} cannot be laid out: ${message}`, {
        cause: error,
      });
    }
  };
  const texts: ScoredText[] = [];
  const add = (text: string, answer: RenderedAnswer): void => {
    const last = texts.at(-1);
    const continues = last !== undefined && text.startsWith(last.text);
    const answers = continues ? [...last.answers, answer] : [answer];
    if (continues) texts.pop();
    texts.push({ line, text, answers, addSpecialTokens: false, isPlain: false });
  };
  if (completion !== undefined) {
    const prompt = render(messages, true);
    const text = prompt + completion;
    add(text, { start: prompt.length, end: text.length, message: undefined, mayCallTools: tools.length > 0 });
    return texts;
  }
  for (const [index, message] of messages.entries()) {
    if (message.role !== "assistant") continue;
    const prompt = render(messages.slice(0, index), true);
    const text = render(messages.slice(0, index + 1), false);
    const start = commonPrefix(prompt, text);
    if (start >= text.length) continue;
    add(text, { start, end: text.length, message, mayCallTools: (message.tool_calls?.length ?? 0) > 0 });
  }
  return texts;
}

function plain(line: number, text: string, start: number, isPlain: boolean): ScoredText {
  const answer: RenderedAnswer = { start, end: text.length, message: undefined, mayCallTools: false };
  return { line, text, answers: [answer], addSpecialTokens: true, isPlain };
}

function commonPrefix(a: string, b: string): number {
  const most = Math.min(a.length, b.length);
  let length = 0;
  while (length < most && a.charCodeAt(length) === b.charCodeAt(length)) length++;
  return length;
}

/** Calls of an answer that the data lists; an answer without a message lists none. */
export function callsOf(answer: RenderedAnswer): readonly CaseToolCall[] {
  return answer.message?.tool_calls ?? [];
}
