import type { ChatTemplate, TemplateInput, TemplateMessage } from "./chat-template.js";
import { cutAtMark, markFinalMessage } from "./continue-final-message.js";
import { contentFormatOf } from "./detect-content-format.js";
import { TemplateEvaluator } from "./jinja/evaluator.js";
import { createGlobals } from "./jinja/globals.js";
import { parseTemplate } from "./jinja/parser.js";
import { templateError } from "./jinja/template-error.js";
import { toValue } from "./jinja/values.js";
import { maxTemplateWork, TemplateWorkError } from "./template-work.js";
import { variableNames } from "./variable-names.js";
import { withWork } from "../work.js";

/** Special tokens a template may write: `bosToken` is `bos_token` there, and so on. */
export interface TemplateTokens {
  readonly bosToken?: string | undefined;
  readonly eosToken?: string | undefined;
  readonly unkToken?: string | undefined;
  readonly padToken?: string | undefined;
}

/**
 * Compiles a chat template once, to be rendered as `apply_chat_template` of transformers 5 would: Jinja with
 * `trim_blocks`, `lstrip_blocks`, loop controls, `{% generation %}`, Python's values and methods, transformers'
 * `tojson`, `raise_exception` and `strftime_now`, in a sandbox that reaches nothing else. Work, depth and output are
 * bounded, so a hostile template ends with an error.
 *
 * Not as in Python: integers are exact to 2^53 only, and a whole number that came from JSON as `1.0` prints as `1`,
 * because JSON.parse does not tell them apart; template inheritance, imports and autoescaping are left out.
 *
 * Throws `template_error`, with the template's line, for a syntax error here and for failures in `render`.
 */
export function compileChatTemplate(source: string, tokens: TemplateTokens = {}): ChatTemplate {
  const template = parseTemplate(source);
  const specials: Record<string, string> = {};
  if (tokens.bosToken !== undefined) specials["bos_token"] = tokens.bosToken;
  if (tokens.eosToken !== undefined) specials["eos_token"] = tokens.eosToken;
  if (tokens.unkToken !== undefined) specials["unk_token"] = tokens.unkToken;
  if (tokens.padToken !== undefined) specials["pad_token"] = tokens.padToken;
  return {
    source,
    contentFormat: contentFormatOf(template),
    variables: variableNames(template),
    render(input: TemplateInput, maxWork = maxTemplateWork): string {
      const continues = input.continueFinalMessage === true;
      if (continues && input.addGenerationPrompt === true) {
        throw templateError(
          "continue_final_message and add_generation_prompt exclude each other: the final message is either continued or followed by a new one.",
        );
      }
      const marked = continues ? markFinalMessage(input.messages) : undefined;
      const given = {
        ...specials,
        messages: (marked?.messages ?? input.messages).map(withReasoningAliases),
        tools: input.tools ?? null,
        documents: input.documents ?? null,
        add_generation_prompt: !continues && (input.addGenerationPrompt ?? true),
        ...input.variables,
      };
      const variables = createGlobals(() => new Date());
      for (const [name, value] of Object.entries(given)) variables.set(name, toValue(value));
      const rendered = withWork(
        maxWork,
        () => new TemplateWorkError(maxWork),
        () => new TemplateEvaluator(variables).render(template),
      );
      return marked === undefined ? rendered : cutAtMark(rendered, marked.text);
    },
  };
}

const reasoningFields = ["reasoning_content", "thinking", "reasoning"];

/** Clients name reasoning differently; templates find it as `reasoning_content` and `thinking`, as transformers gives it. */
function withReasoningAliases(message: TemplateMessage): TemplateMessage {
  const field = reasoningFields.find((name) => message[name] !== undefined && message[name] !== null);
  if (field === undefined) return message;
  return { thinking: message[field], ...message, reasoning_content: message[field] as string };
}
