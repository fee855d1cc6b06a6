import { createHash } from "node:crypto";
import { unlessAborted } from "@octavo/protocol/abort";
import { OctavoError } from "@octavo/protocol/errors";
import { Turns } from "@octavo/text/template/turns";
import type { Tokenizer } from "@octavo/text/tokenizer/tokenizer";
import type { PromptImage } from "../scheduler/prompt-image.js";
import type { ImageReader, SeenImage } from "./image-reader.js";

/** For whom images are read. */
export interface ImageCaller {
  /** Images of one tenant wait for each other before those of another. */
  readonly tenant?: string | undefined;
  /** Rows are kept for others of the same scope alone, as prefixes are. */
  readonly cacheScope?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Images that are decoded and run through the tower at a time: each holds its pixels. */
const maxAtOnce = 2;
/** Further ones are refused. */
const maxWaiting = 64;
/** Rows that are kept. */
const cacheBytes = 256 << 20;

/** Images of prompts: their places in the text, and the rows that stand for them. */
export class ImageInput {
  /** Of one request. */
  readonly maxImages: number;
  readonly #reader: ImageReader;
  readonly #layout: ReturnType<ImageReader["layout"]>;
  readonly #turns = new Turns(maxAtOnce);
  readonly #rows = new Map<string, Promise<SeenImage>>();
  /** Bytes of what is kept, by its key; of what is still read there are none. */
  readonly #sizes = new Map<string, number>();
  #numWaiting = 0;

  /** @throws OctavoError `artifact_invalid` for a tokenizer without the tokens of images */
  constructor(reader: ImageReader, tokenizer: Tokenizer, maxImages: number) {
    const { beginTokenId, endTokenId, imageTokenId } = reader;
    const [begin = "", end = "", image = ""] = [beginTokenId, endTokenId, imageTokenId].map((id) => {
      const text = tokenizer.idToToken(id);
      if (text === undefined)
        throw new OctavoError(
          "artifact_invalid",
          `The tokenizer has no token ${id}, which config.json names for images.`,
        );
      return text;
    });
    this.#reader = reader;
    this.maxImages = maxImages;
    this.#layout = reader.layout({ begin, end, image });
  }

  /** What a chat template writes where an image stands. */
  get placeholder(): string {
    return this.#layout.placeholder;
  }

  /** @throws OctavoError `invalid_request` for more images than are allowed */
  checkCount(numImages: number): void {
    if (numImages <= this.maxImages) return;
    throw invalid(
      `The request has ${numImages} images; at most ${this.maxImages} are taken (--limit-mm-per-prompt).`,
    );
  }

  /**
   * A rendered prompt with each image's tokens in its place, as the model's processor in transformers writes them.
   * @throws OctavoError `invalid_request` for more images than are allowed, other places than images, or what is no image
   */
  async expand(text: string, images: readonly Uint8Array[]): Promise<string> {
    const numImages = images.length;
    this.checkCount(numImages);
    const { mark } = this.#layout;
    const [first = "", ...rest] = text.split(mark);
    if (rest.length !== numImages)
      throw invalid(
        `The prompt has ${rest.length} places for ${numImages} images: beside images, texts must not contain ${mark}, ` +
          "and the chat template must write it for each image.",
      );
    const counts = await Promise.all(
      images.map(async (bytes, index) => named(index, async () => this.#reader.tokensOf(bytes))),
    );
    return first + rest.map((part, index) => `${this.#layout.expanded(counts[index] ?? 0)}${part}`).join("");
  }

  /**
   * Where images stand among tokens, with their rows. `tokens` are those of a text from `expand`.
   * @throws OctavoError `invalid_request` for images that cannot be decoded, `queue_full`, `request_cancelled`
   */
  async place(
    tokens: Int32Array,
    images: readonly Uint8Array[],
    caller: ImageCaller = {},
  ): Promise<PromptImage[]> {
    const runs = this.#runs(tokens);
    if (runs.length !== images.length)
      throw invalid(`The prompt has tokens of ${runs.length} images for ${images.length} images.`);
    const counting = images.map(async (bytes, index) =>
      named(index, async () => this.#reader.tokensOf(bytes)),
    );
    for (const [index, numTokens] of (await Promise.all(counting)).entries()) {
      const { length = 0 } = runs[index] ?? {};
      if (length !== numTokens)
        throw invalid(`The prompt has ${length} tokens of an image in a row; an image has ${numTokens}.`);
    }
    const reading = Promise.all(images.map((bytes, index) => this.#read(bytes, index, caller)));
    const read = await unlessAborted(reading, caller.signal, (reason) => OctavoError.from(reason));
    return read.map((image, index) => ({ ...image, start: runs[index]?.start ?? 0 }));
  }

  /** Runs of image tokens. */
  #runs(tokens: Int32Array): { readonly start: number; readonly length: number }[] {
    const { imageTokenId } = this.#reader;
    const runs: { readonly start: number; readonly length: number }[] = [];
    for (let at = tokens.indexOf(imageTokenId); at >= 0;) {
      let end = at;
      while (tokens[end] === imageTokenId) end += 1;
      runs.push({ start: at, length: end - at });
      at = tokens.indexOf(imageTokenId, end);
    }
    return runs;
  }

  async #read(
    bytes: Uint8Array,
    index: number,
    { tenant = "", cacheScope = "" }: ImageCaller,
  ): Promise<Omit<PromptImage, "start">> {
    const hash = createHash("sha256").update(bytes).digest();
    const digest = Int32Array.from({ length: hash.length / 4 }, (_, word) => hash.readInt32LE(4 * word));
    const key = `${hash.toString("hex")}${cacheScope}`;
    const known = this.#rows.get(key);
    // The latest stands last.
    this.#rows.delete(key);
    const pending = known ?? this.#rowsOf(bytes, tenant);
    this.#rows.set(key, pending);
    const forget = (): void => {
      if (this.#rows.get(key) === pending) this.#rows.delete(key);
    };
    pending.catch(forget);
    const seen = await named(index, () => pending);
    this.#sizes.set(key, seen.rows.byteLength + (seen.added?.byteLength ?? 0));
    this.#forgetOldest();
    return { ...seen, digest };
  }

  async #rowsOf(bytes: Uint8Array, tenant: string): Promise<SeenImage> {
    if (this.#numWaiting >= maxWaiting)
      throw new OctavoError("queue_full", `${this.#numWaiting} images wait to be read; try again later.`, {
        retryAfterSeconds: 5,
      });
    this.#numWaiting += 1;
    try {
      return await this.#turns.take(tenant, () => this.#reader.read(bytes));
    } finally {
      this.#numWaiting -= 1;
    }
  }

  /** Those that are still read do not count, and the latest stays. */
  #forgetOldest(): void {
    let bytes = [...this.#sizes.values()].reduce((sum, size) => sum + size, 0);
    for (const key of [...this.#rows.keys()].slice(0, -1)) {
      if (bytes <= cacheBytes) return;
      const size = this.#sizes.get(key);
      if (size === undefined) continue;
      bytes -= size;
      this.#sizes.delete(key);
      this.#rows.delete(key);
    }
  }
}

/** Says which image an error is about. */
async function named<T>(index: number, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (thrown) {
    const { code, message } = OctavoError.from(thrown);
    throw new OctavoError(code, `Image ${index}: ${message}`, { cause: thrown });
  }
}

function invalid(message: string): OctavoError {
  return new OctavoError("invalid_request", message, { param: "messages" });
}
