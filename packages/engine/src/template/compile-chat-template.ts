import { Template } from "@huggingface/jinja";
import { OctavoError } from "@octavo/protocol";
import type { ChatTemplate, TemplateInput } from "./chat-template.js";

/** Special tokens a template may write: `bosToken` becomes `bos_token`, and so on. */
export type TemplateTokens = Readonly<Record<string, string | undefined>>;

/** Compiles a chat template once. Throws `template_error` for a syntax error. */
export function compileChatTemplate(source: string, tokens: TemplateTokens = {}): ChatTemplate {
  let template: Template;
  try {
    template = new Template(source);
  } catch (cause) {
    throw new OctavoError("template_error", `The chat template does not parse: ${String(cause)}`, { cause });
  }
  const specials = Object.fromEntries(
    Object.entries(tokens).map(([name, token]) => [
      name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
      token,
    ]),
  );
  return {
    source,
    render(input: TemplateInput): string {
      try {
        return template.render({
          ...specials,
          ...input.variables,
          messages: input.messages,
          tools: input.tools ?? null,
          documents: input.documents ?? null,
          add_generation_prompt: input.addGenerationPrompt ?? true,
        });
      } catch (cause) {
        throw new OctavoError("template_error", `The chat template failed: ${String(cause)}`, { cause });
      }
    },
  };
}
