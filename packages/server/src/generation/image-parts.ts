import type { Account, LanguageModel, PromptImage } from "@octavo/engine";
import type { ChatCompletionRequest, ChatMessage } from "@octavo/protocol";
import { invalidField, unsupportedField } from "@octavo/protocol/refusal";
import { allowedMediaUrl, type MediaUrl } from "../media/media-url.js";
import type { Caller } from "./run.js";

/** An image as a request gives it: its bytes, or where they are. */
type ImageSource = Uint8Array | MediaUrl;

interface PromptWithImages {
  readonly tokens: Int32Array;
  readonly images: readonly Uint8Array[];
}

/**
 * The images of a conversation as they came, in order. Nothing is fetched or decoded yet.
 * @param model absent: images are not taken here
 * @param hosts what may be fetched from
 * @throws OctavoError `unsupported_parameter` where they are not taken, or may not be fetched; `invalid_request` for broken URLs
 */
export function imagesOf(
  messages: readonly ChatMessage[],
  model: Pick<LanguageModel, "images" | "imageRefusal"> | undefined,
  hosts: readonly string[],
): ImageSource[] {
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
          return [sourceOf(part.image_url.url, hosts, `${param}.image_url.url`)];
        }),
  );
}

const dataUrl = /^data:([^;,]{0,100})((?:;[^;,]{0,100})*),/;

function sourceOf(url: string, hosts: readonly string[], param: string): ImageSource {
  const [head = "", , parameters = ""] = dataUrl.exec(url.slice(0, 1_000)) ?? [];
  if (head === "") {
    if (/^(?!data:)[a-z][a-z0-9+.-]{0,20}:/i.test(url)) return allowedMediaUrl(url, hosts, param);
    throw invalidField(param, "expected a data URL: data:image/png;base64,...");
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
