import type { Account, LanguageModel, PromptImage } from "@octavo/engine";
import type { ChatCompletionRequest, ChatMessage } from "@octavo/protocol";
import { OctavoError } from "@octavo/protocol";
import { invalidField, unsupportedField } from "@octavo/protocol/refusal";
import type { MediaCaller, MediaFetcher } from "./media-fetcher.js";
import type { Caller } from "./run.js";

interface PromptWithImages {
  readonly tokens: Int32Array;
  readonly images: readonly Uint8Array[];
}

/** Where images of a conversation are taken. */
export interface ImageTaking {
  readonly model: Pick<LanguageModel, "images" | "imageRefusal">;
  readonly media: MediaFetcher;
  readonly caller: MediaCaller;
}

/**
 * The images of a conversation as they came, in order. Nothing is decoded yet.
 * @param taking absent: images are not taken here
 * @throws OctavoError `unsupported_parameter` where they are not taken, `invalid_request` for broken URLs, and what fetching them throws
 */
export async function imagesOf(
  messages: readonly ChatMessage[],
  taking: ImageTaking | undefined,
): Promise<Uint8Array[]> {
  const parts = messages.flatMap(({ role, content }, message) =>
    typeof content === "string"
      ? []
      : (content ?? []).flatMap((part, at) => {
          if (part.type !== "image_url") return [];
          const param = `messages[${message}].content[${at}]`;
          if (taking === undefined)
            throw unsupportedField(`${param}.type`, "images are taken in chats alone");
          const { images, imageRefusal } = taking.model;
          if (images === undefined)
            throw unsupportedField(`${param}.type`, imageRefusal ?? "this model reads text only");
          if (role !== "user")
            throw unsupportedField(`${param}.type`, "images are taken in messages of the user alone");
          return [{ url: part.image_url.url, param: `${param}.image_url.url` }];
        }),
  );
  if (taking === undefined) return [];
  taking.model.images?.checkCount(parts.length);
  const { media, caller } = taking;
  const { account, holdBytes } = caller;
  const rest = new AbortController();
  const signal = AbortSignal.any([caller.signal, rest.signal]);
  const fetched = new Map<string, Promise<Uint8Array>>();
  const reading = parts.map(async ({ url, param }) => {
    if (!media.isOn || /^data:/i.test(url)) return bytesOf(url, param);
    const pending = fetched.get(url) ?? media.fetch(url, param, { account, holdBytes, signal });
    fetched.set(url, pending);
    return pending;
  });
  try {
    return await Promise.all(reading);
  } finally {
    rest.abort(new OctavoError("request_cancelled", "another image of the request was refused"));
  }
}

const dataUrl = /^data:([^;,]{0,100})((?:;[^;,]{0,100})*),/i;

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
