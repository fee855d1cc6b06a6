import { OctavoError } from "@octavo/protocol/errors";
import type { ChatTemplate } from "@octavo/text/template/chat-template";
import { compileChatTemplate, type TemplateTokens } from "@octavo/text/template/compile-chat-template";
import type { TokenizerFileConfig } from "@octavo/text/tokenizer/source";

export interface ModelTemplates {
  readonly chatTemplate: ChatTemplate | undefined;
  readonly namedChatTemplates: ReadonlyMap<string, ChatTemplate>;
  /** Special tokens that templates may write. */
  readonly tokens: TemplateTokens;
}

/**
 * Compiles a checkpoint's templates, or the one given instead. A broken one of the checkpoint is a warning, since completions work
 * without it: the default one throws its `template_error` when it is rendered, a named one is left out. A broken one that was asked for throws here.
 */
export function compileTemplates(
  config: TokenizerFileConfig,
  override: string | undefined,
  onWarning: ((message: string) => void) | undefined,
): ModelTemplates {
  const tokens: TemplateTokens = {
    bosToken: config.bosToken,
    eosToken: config.eosToken,
    unkToken: config.unkToken,
    padToken: config.padToken,
  };
  if (override !== undefined) {
    return { chatTemplate: compileChatTemplate(override, tokens), namedChatTemplates: new Map(), tokens };
  }
  const compile = (name: string, source: string): ChatTemplate | undefined => {
    try {
      return compileChatTemplate(source, tokens);
    } catch (cause) {
      const why = `The checkpoint's ${name} chat template cannot be used: ${OctavoError.from(cause).message}`;
      onWarning?.(why);
      if (name !== "default") return undefined;
      const render = (): never => {
        throw new OctavoError("template_error", why, { cause });
      };
      return { source, contentFormat: "string", render };
    }
  };
  const named = new Map<string, ChatTemplate>();
  for (const [name, source] of config.namedChatTemplates) {
    const template = compile(name, source);
    if (template !== undefined) named.set(name, template);
  }
  const { chatTemplate } = config;
  return {
    chatTemplate: chatTemplate === undefined ? undefined : compile("default", chatTemplate),
    namedChatTemplates: named,
    tokens,
  };
}
