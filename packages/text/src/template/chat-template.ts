/** Templates write what stands for an image. `image`: a PNG, JPEG, WebP or GIF as its file has it; templates do not see it. */
export type TemplatePart =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "image"; readonly image?: Uint8Array };

/** A chat message as templates see it: OpenAI's wire form with content flattened to text, or its text parts for templates that read parts. */
export interface TemplateMessage {
  readonly role: string;
  readonly content: string | null | readonly TemplatePart[];
  readonly name?: string;
  readonly tool_calls?: readonly unknown[];
  readonly tool_call_id?: string;
  readonly reasoning_content?: string;
  readonly [key: string]: unknown;
}

/** What a chat template is rendered with. */
export interface TemplateInput {
  readonly messages: readonly TemplateMessage[];
  readonly tools?: readonly unknown[];
  readonly documents?: readonly unknown[];
  /** Default true. */
  readonly addGenerationPrompt?: boolean;
  /** Leave the last message open so that the model goes on with it; excludes addGenerationPrompt. */
  readonly continueFinalMessage?: boolean;
  /** Extra variables (`chat_template_kwargs`). */
  readonly variables?: Readonly<Record<string, unknown>>;
}

/** How a template wants messages' content: as one text, or as a list of parts (`{type, text}`), that of a system message in front perhaps not. */
export type ContentFormat = "string" | "parts" | "text_then_parts";

/** A model's chat template, compiled once. Rendering failures throw `template_error`. */
export interface ChatTemplate {
  readonly source: string;
  readonly contentFormat: ContentFormat;
  /** Names that it reads; a variable of any other name has no effect. Absent where they are not known. */
  readonly variables?: ReadonlySet<string>;
  /** `maxWork`: steps that it may take, else `TemplateWorkError`; default `maxTemplateWork`. */
  render(input: TemplateInput, maxWork?: number): string;
}
