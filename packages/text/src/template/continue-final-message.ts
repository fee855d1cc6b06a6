import type { TemplateMessage } from "./chat-template.js";
import { templateError } from "./jinja/template-error.js";

/** transformers' mark; its trailing space tells whether the template kept the message's end as it was. */
const mark = "CONTINUE_FINAL_MESSAGE_TAG ";

/** The messages with a mark behind the final one's text. Throws `template_error` when there is no text to continue. */
export function markFinalMessage(messages: readonly TemplateMessage[]): readonly TemplateMessage[] {
  const final = messages.at(-1);
  if (final === undefined) throw templateError("continue_final_message is set, but there are no messages.");
  return [...messages.slice(0, -1), { ...final, content: markContent(final.content) as string | null }];
}

/** Content is text here, or a list of parts for templates that take those; the last text part is marked then. */
function markContent(content: unknown): unknown {
  if (typeof content === "string") return content + mark;
  if (Array.isArray(content)) {
    const parts = content as readonly unknown[];
    const at = parts.findLastIndex(hasText);
    const part = parts[at];
    if (hasText(part)) return parts.with(at, { ...part, text: part.text + mark });
  }
  throw templateError("continue_final_message is set, but the final message has no text to continue.");
}

function hasText(part: unknown): part is { readonly text: string } {
  return typeof part === "object" && part !== null && "text" in part && typeof part.text === "string";
}

/** Cuts a chat rendered from marked messages behind the final message's text, as transformers does. */
export function cutAtMark(rendered: string): string {
  const at = rendered.lastIndexOf(mark.trim());
  if (at < 0) {
    throw templateError(
      "continue_final_message is set, but the template does not write the final message's text unchanged, so it cannot be continued.",
    );
  }
  const before = rendered.slice(0, at);
  return rendered.startsWith(mark, at) ? before : before.trimEnd();
}
