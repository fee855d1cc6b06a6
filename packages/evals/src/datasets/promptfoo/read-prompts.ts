import { isRecord } from "@octavo/protocol";
import type { CaseMessage } from "../../cases/eval-case.js";
import { parseMessages } from "../case-messages.js";
import { invalidRecord, quoted } from "../place.js";
import type { ConfigFiles } from "./config-files.js";
import { fillDeep } from "./fill-template.js";
import { isReference } from "./read-tests.js";

/** A prompt's template: a text, or the messages of a chat. */
export interface PromptfooPrompt {
  readonly label: string;
  /** Text that is one message of the user, or what messages are made of: a value whose texts are filled in. */
  readonly content: unknown;
}

export async function readPrompts(value: unknown, files: ConfigFiles): Promise<PromptfooPrompt[]> {
  const given = isReference(value) && !isText(value) ? await files.readReference(value, "prompts") : value;
  const list = Array.isArray(given) ? given : given === undefined ? [] : [given];
  if (list.length === 0) throw files.fail("prompts", "is missing; a configuration needs a prompt");
  const prompts: PromptfooPrompt[] = [];
  for (const [index, prompt] of list.entries()) {
    prompts.push(...(await readPrompt(prompt, `prompts[${index}]`, files)));
  }
  return prompts;
}

/** Files of prompts that are texts hold several, between lines of three dashes. */
function isText(reference: string): boolean {
  return /\.(txt|md|j2)$/i.test(reference);
}

async function readPrompt(value: unknown, at: string, files: ConfigFiles): Promise<PromptfooPrompt[]> {
  if (isRecord(value)) {
    const { raw, id, label } = value;
    const inner = raw ?? id;
    if (inner === undefined) throw files.fail(at, "has neither `raw` nor `id`");
    const prompts = await readPrompt(inner, at, files);
    return typeof label === "string" ? prompts.map((prompt) => ({ ...prompt, label })) : prompts;
  }
  if (typeof value !== "string") throw files.fail(at, `must be a prompt, but is ${quoted(value)}`);
  if (!isReference(value)) return [{ label: at, content: parseChat(value) }];
  if (!isText(value)) return [{ label: value, content: await files.readReference(value, at) }];
  const text = await files.readText(value, at);
  const parts = text.split(/^---\s*$/m).map((part) => part.trim());
  return parts
    .filter((part) => part !== "")
    .map((part, index) => ({
      label: parts.length > 1 ? `${value}#${index + 1}` : value,
      content: parseChat(part),
    }));
}

/** Text that is a JSON list of messages stands for them; values are filled in after it is read, so that they need no escapes. */
function parseChat(text: string): unknown {
  if (!text.trimStart().startsWith("[")) return text;
  try {
    const value: unknown = JSON.parse(text);
    return Array.isArray(value) && value.every((one) => isRecord(one) && "role" in one) ? value : text;
  } catch {
    return text;
  }
}

/** The messages of a prompt with its texts filled in. */
export function promptMessages(
  { content }: PromptfooPrompt,
  fill: (text: string) => string,
  around: { readonly prefix: string; readonly suffix: string },
  files: ConfigFiles,
  at: string,
): readonly CaseMessage[] {
  if (typeof content === "string") {
    return [{ role: "user", content: `${fill(around.prefix)}${fill(content)}${fill(around.suffix)}` }];
  }
  const place = { path: files.path, unit: "element", number: 1 } as const;
  if (!Array.isArray(content)) throw invalidRecord(place, at, "must be a text or a list of messages");
  return parseMessages(fillDeep(content, fill), at, place);
}
