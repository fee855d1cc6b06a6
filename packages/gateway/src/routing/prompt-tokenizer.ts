import { asObjects, asRecord, asString, type JsonFields, OctavoError, parseJson } from "@octavo/protocol";
import type { ChatTemplate, TemplateMessage } from "@octavo/text/template/chat-template";
import { compileChatTemplate } from "@octavo/text/template/compile-chat-template";
import { createTokenizer } from "@octavo/text/tokenizer/create-tokenizer";
import { readTokenizerFolder } from "@octavo/text/tokenizer/read/tokenizer-folder";
import type { Tokenizer } from "@octavo/text/tokenizer/tokenizer";
import type { Operation } from "../exchange/exchange.js";

/** Steps of a template on the event loop; a prompt that takes more is routed without its blocks. */
const maxTemplateSteps = 200_000;

/** Lays prompts out and tokenises them as the servers behind a route do. */
export class PromptTokenizer {
  readonly #tokenizer: Tokenizer;
  readonly #template: ChatTemplate | undefined;

  constructor(tokenizer: Tokenizer, template: ChatTemplate | undefined) {
    this.#tokenizer = tokenizer;
    this.#template = template;
  }

  /** Undefined for what a prompt's text alone does not say, such as images, and for what the template refuses. */
  async encode(operation: Operation, fields: JsonFields): Promise<Int32Array | undefined> {
    if (operation === "completions") {
      const prompt = asString(fields["prompt"]);
      return prompt === undefined ? undefined : this.#tokenizer.encodeAsync(prompt);
    }
    const text = this.#render(fields);
    return text === undefined ? undefined : this.#tokenizer.encodeAsync(text, { addSpecialTokens: false });
  }

  #render(fields: JsonFields): string | undefined {
    const messages = asObjects(fields["messages"]).map((message) => templateMessage(message));
    const tools = asObjects(fields["tools"]);
    if (this.#template === undefined || messages.includes(undefined)) return undefined;
    // how a server tells its model of custom tools is its own affair
    if (tools.some((tool) => tool["type"] === "custom")) return undefined;
    try {
      return this.#template.render(
        {
          messages: messages.filter((message) => message !== undefined),
          ...(tools.length > 0 && { tools }),
          variables: asRecord(fields["chat_template_kwargs"]),
        },
        maxTemplateSteps,
      );
    } catch {
      return undefined;
    }
  }
}

function templateMessage(message: JsonFields): TemplateMessage | undefined {
  const { content, tool_calls } = message;
  const parts = asObjects(content);
  if (parts.some((part) => part["type"] !== "text")) return undefined;
  const text =
    typeof content === "string" ? content : parts.map((part) => asString(part["text"]) ?? "").join("\n");
  return {
    ...message,
    role: asString(message["role"]) ?? "",
    content: text,
    ...(tool_calls !== undefined && {
      tool_calls: asObjects(tool_calls).map((call) => {
        const { name, arguments: args } = asRecord(call["function"]);
        return { ...call, function: { name, arguments: parseJson(String(args))?.value ?? args } };
      }),
    }),
  };
}

/** Throws `artifact_invalid` or `artifact_unsupported` for files that make no tokenizer. */
export function openPromptTokenizer(folder: string): PromptTokenizer {
  const source = readTokenizerFolder(folder);
  const { chatTemplate, bosToken, eosToken, unkToken, padToken } = source.config;
  if (chatTemplate === undefined)
    throw new OctavoError(
      "artifact_invalid",
      "the folder has no chat template, in tokenizer_config.json or beside it",
    );
  const template = compileChatTemplate(chatTemplate, { bosToken, eosToken, unkToken, padToken });
  return new PromptTokenizer(createTokenizer(source), template);
}
