import type { TemplateMessage } from "./chat-template.js";
import { strip } from "./jinja/string-methods.js";
import { templateError } from "./jinja/template-error.js";

/** transformers' mark; its trailing space tells whether the template kept the message's end as it was. */
const mark = "CONTINUE_FINAL_MESSAGE_TAG ";

/** Messages with a mark behind the final one's text. */
interface MarkedMessages {
  readonly messages: readonly TemplateMessage[];
  /** The text in front of the mark. */
  readonly text: string;
}

/** Content is a text, or a list of parts for templates that take those; the last text part is marked then. */
export function markFinalMessage(messages: readonly TemplateMessage[]): MarkedMessages {
  const final = messages.at(-1);
  if (final === undefined) throw templateError("continue_final_message is set, but there are no messages.");
  const marked = (content: TemplateMessage["content"], text: string): MarkedMessages => ({
    messages: [...messages.slice(0, -1), { ...final, content }],
    text,
  });
  const { content } = final;
  if (typeof content === "string") return marked(content + mark, content);
  const parts: readonly unknown[] = content ?? [];
  const at = parts.findLastIndex(hasText);
  const part = parts[at];
  if (!hasText(part)) {
    throw templateError("continue_final_message is set, but the final message has no text to continue.");
  }
  const changed = parts.with(at, { ...part, text: part.text + mark });
  return marked(changed as TemplateMessage["content"], part.text);
}

function hasText(part: unknown): part is { readonly text: string } {
  return typeof part === "object" && part !== null && "text" in part && typeof part.text === "string";
}

/** Cuts a chat rendered from marked messages behind the final message's text, as transformers does. */
export function cutAtMark(rendered: string, text: string): string {
  const at = rendered.lastIndexOf(mark.trim());
  if (at < 0 || !rendered.includes(strip(text, undefined, true, true))) {
    throw templateError(
      "continue_final_message is set, but the template does not write the final message's text unchanged, so it cannot be continued.",
    );
  }
  const before = rendered.slice(0, at);
  return rendered.startsWith(mark, at) ? before : strip(before, undefined, false, true);
}
