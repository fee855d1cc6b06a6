import { createHash } from "node:crypto";
import type { VisionPart } from "@octavo/artifacts/checkpoint/checkpoint";
import { OctavoError } from "@octavo/protocol/errors";
import { Turns } from "@octavo/text/template/turns";
import type { Tokenizer } from "@octavo/text/tokenizer/tokenizer";
import type { PromptImage } from "../scheduler/prompt-image.js";
import { prepareImage } from "./prepare-image.js";
import type { VisionTower } from "./vision-tower.js";

/** For whom images are read. */
export interface ImageCaller {
  /** Images of one tenant wait for each other before those of another. */
  readonly tenant?: string | undefined;
  /** Rows are kept for others of the same scope alone, as prefixes are. */
  readonly cacheScope?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** What a tower is asked for. */
type Tower = Pick<VisionTower, "rows">;

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
  readonly #tower: Tower;
  readonly #vision: VisionPart;
  readonly #begin: string;
  readonly #expanded: string;
  readonly #turns = new Turns(maxAtOnce);
  readonly #rows = new Map<string, Promise<Float32Array>>();
  #numWaiting = 0;

  /** @throws OctavoError `artifact_invalid` for a tokenizer without the tokens of images */
  constructor(tower: Tower, vision: VisionPart, tokenizer: Tokenizer, maxImages: number) {
    const { beginTokenId, endTokenId, imageTokenId, tokensPerImage } = vision.config;
    const [begin, end, image] = [beginTokenId, endTokenId, imageTokenId].map((id) => {
      const text = tokenizer.idToToken(id);
      if (text === undefined)
        throw new OctavoError(
          "artifact_invalid",
          `The tokenizer has no token ${id}, which config.json names for images.`,
        );
      return text;
    });
    this.#tower = tower;
    this.#vision = vision;
    this.maxImages = maxImages;
    this.#begin = begin ?? "";
    this.#expanded = `\n\n${begin}${image?.repeat(tokensPerImage)}${end}\n\n`;
  }

  /** What a chat template writes where an image stands. */
  get placeholder(): string {
    return this.#begin;
  }

  /**
   * A rendered prompt with each image's tokens in its place, as transformers' Gemma3Processor writes them.
   * @throws OctavoError `invalid_request` for more images than are allowed, or other places than images
   */
  expand(text: string, numImages: number): string {
    if (numImages > this.maxImages)
      throw invalid(
        `The request has ${numImages} images; at most ${this.maxImages} are taken (--limit-mm-per-prompt).`,
      );
    const parts = text.split(this.#begin);
    if (parts.length - 1 !== numImages)
      throw invalid(
        `The prompt has ${parts.length - 1} places for ${numImages} images: beside images, texts must not contain ${this.#begin}, ` +
          "and the chat template must write it for each image.",
      );
    return parts.join(this.#expanded);
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
    const starts = this.#starts(tokens);
    if (starts.length !== images.length)
      throw invalid(`The prompt has tokens of ${starts.length} images for ${images.length} images.`);
    const reading = Promise.all(images.map((bytes, index) => this.#read(bytes, index, caller)));
    const read = await unlessAborted(reading, caller.signal);
    const numTokens = this.#vision.config.tokensPerImage;
    return read.map((image, index) => ({ ...image, start: starts[index] ?? 0, numTokens }));
  }

  /** Starts of the runs of image tokens; a run of another length is no image's. */
  #starts(tokens: Int32Array): number[] {
    const { imageTokenId, tokensPerImage } = this.#vision.config;
    const starts: number[] = [];
    for (let at = tokens.indexOf(imageTokenId); at >= 0;) {
      let end = at;
      while (tokens[end] === imageTokenId) end += 1;
      if (end - at !== tokensPerImage)
        throw invalid(
          `The prompt has ${end - at} tokens of an image in a row; an image has ${tokensPerImage}.`,
        );
      starts.push(at);
      at = tokens.indexOf(imageTokenId, end);
    }
    return starts;
  }

  async #read(
    bytes: Uint8Array,
    index: number,
    { tenant = "", cacheScope = "" }: ImageCaller,
  ): Promise<Pick<PromptImage, "digest" | "rows">> {
    const hash = createHash("sha256").update(bytes).digest();
    const digest = Int32Array.from({ length: hash.length / 4 }, (_, word) => hash.readInt32LE(4 * word));
    const key = `${hash.toString("hex")}${cacheScope}`;
    const known = this.#rows.get(key);
    // The latest stands last.
    this.#rows.delete(key);
    const pending = known ?? this.#rowsOf(bytes, tenant);
    this.#rows.set(key, pending);
    try {
      const rows = await pending;
      this.#forgetOldest(rows.byteLength);
      return { digest, rows };
    } catch (thrown) {
      if (this.#rows.get(key) === pending) this.#rows.delete(key);
      const { code, message } = OctavoError.from(thrown);
      throw new OctavoError(code, `Image ${index}: ${message}`, { cause: thrown });
    }
  }

  async #rowsOf(bytes: Uint8Array, tenant: string): Promise<Float32Array> {
    if (this.#numWaiting >= maxWaiting)
      throw new OctavoError("queue_full", `${this.#numWaiting} images wait to be read; try again later.`, {
        retryAfterSeconds: 5,
      });
    this.#numWaiting += 1;
    const { processing, config } = this.#vision;
    try {
      return await this.#turns.take(tenant, async () =>
        this.#tower.rows(await prepareImage({ bytes, processing, layout: config })),
      );
    } finally {
      this.#numWaiting -= 1;
    }
  }

  /** All images have rows of one size. Those that are still read do not count. */
  #forgetOldest(rowBytes: number): void {
    const most = Math.max(1, Math.floor(cacheBytes / rowBytes)) + this.#numWaiting;
    for (const key of this.#rows.keys()) {
      if (this.#rows.size <= most) return;
      this.#rows.delete(key);
    }
  }
}

/** Who asked may leave; what was begun goes on, for those who ask next. */
function unlessAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return work;
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(OctavoError.from(signal.reason));
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  });
}

function invalid(message: string): OctavoError {
  return new OctavoError("invalid_request", message, { param: "messages" });
}
