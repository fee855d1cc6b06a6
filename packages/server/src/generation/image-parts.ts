import type { Account, LanguageModel, PromptImage } from "@octavo/engine";
import type { ChatCompletionRequest, ChatMessage } from "@octavo/protocol";
import { invalidField, unsupportedField } from "@octavo/protocol/refusal";
import type { Caller } from "./run.js";

interface PromptWithImages {
  readonly tokens: Int32Array;
  readonly images: readonly Uint8Array[];
}

/**
 * The images of a conversation as they came, in order. Nothing is decoded yet.
 * @param model absent: images are not taken here
 * @throws OctavoError `unsupported_parameter` where they are not taken, or would have to be fetched; `invalid_request` for broken URLs
 */
export function imagesOf(
  messages: readonly ChatMessage[],
  model: Pick<LanguageModel, "images" | "imageRefusal"> | undefined,
): Uint8Array[] {
  return messages.flatMap(({ role, content }, message) =>
    typeof content === "string"
      ? []
      : (content ?? []).flatMap((part, at) => {
          if (part.type !== "image_url") return [];
          const param = `messages[${message}].content[${at}]`;
          if (model === undefined) throw unsupportedField(`${param}.type`, "images are taken in chats alone");
          if (model.images === undefined)
            throw unsupportedField(`${param}.type`, model.imageRefusal ?? "this model reads text only");
          if (role !== "user")
            throw unsupportedField(`${param}.type`, "images are taken in messages of the user alone");
          return [bytesOf(part.image_url.url, `${param}.image_url.url`)];
        }),
  );
}

const dataUrl = /^data:([^;,]{0,100})((?:;[^;,]{0,100})*),/;

function bytesOf(url: string, param: string): Uint8Array {
  const [head = "", , parameters = ""] = dataUrl.exec(url.slice(0, 1_000)) ?? [];
  if (head === "") {
    const scheme = /^[a-z][a-z0-9+.-]{0,20}(?=:)/i.exec(url)?.[0];
    throw scheme === undefined || scheme.toLowerCase() === "data"
      ? invalidField(param, "expected a data URL: data:image/png;base64,...")
      : unsupportedField(
          param,
          `the server fetches nothing (${scheme}:); send a data URL: data:image/png;base64,...`,
        );
  }
  if (!parameters.split(";").includes("base64")) throw invalidField(param, "the data URL must be in base64");
  const text = url.slice(head.length);
  if (!/^[A-Za-z0-9+/_=-]+$/.test(text)) throw invalidField(param, "the data URL is not valid base64");
  return Buffer.from(text, "base64");
}

/** A prompt that is cut would have images without their tokens. */
export function refuseCutImages(
  { images }: Pick<PromptWithImages, "images">,
  { truncate_prompt_tokens: truncated }: Pick<ChatCompletionRequest, "truncate_prompt_tokens">,
): void {
  if (images.length > 0 && truncated !== undefined && truncated !== null)
    throw unsupportedField("truncate_prompt_tokens", "prompts with images are not cut");
}

/** Reads the images of a prompt that fits; undefined where there are none. */
export function placedImages(
  { images: input }: Pick<LanguageModel, "images">,
  { tokens, images }: PromptWithImages,
  { tenant, cacheScope }: Pick<Account, "tenant" | "cacheScope">,
  { signal }: Pick<Caller, "signal">,
): Promise<readonly PromptImage[]> | undefined {
  return images.length === 0 ? undefined : input?.place(tokens, images, { tenant, cacheScope, signal });
}
