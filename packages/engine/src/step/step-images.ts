import type { StepPlan } from "@octavo/kernels";
import { type PromptImage, seesAhead } from "../scheduler/prompt-image.js";

/** The images of a step: rows in the place of their tokens, which see to the end of their image. */
export class StepImages {
  readonly #tokens: number[] = [];
  /** By token, of the tokens above. */
  readonly #lastSeen: number[] = [];
  /** By token, of the tokens above. */
  readonly #otherIds: (number | undefined)[] = [];
  readonly #rows: Float32Array[] = [];
  /** By layer. */
  readonly #added: Float32Array[][] = [];
  #looksAhead = false;

  clear(): void {
    this.#tokens.length = 0;
    this.#lastSeen.length = 0;
    this.#otherIds.length = 0;
    this.#rows.length = 0;
    this.#added.length = 0;
    this.#looksAhead = false;
  }

  /** Adds what a sequence computes of an image, of which positions [from, end) are the step's tokens from `firstToken` on. */
  add(image: Omit<PromptImage, "digest">, firstToken: number, from: number, end: number): void {
    const { start, numTokens, rows, added, otherId } = image;
    const [first, last] = [Math.max(start, from), Math.min(start + numTokens, end)];
    if (first >= last) return;
    const width = rows.length / numTokens;
    this.#rows.push(rows.subarray((first - start) * width, (last - start) * width));
    const numLayers = added === undefined ? 0 : added.length / rows.length;
    for (let layer = 0; layer < numLayers; layer += 1) {
      const at = layer * rows.length + (first - start) * width;
      (this.#added[layer] ??= []).push(added!.subarray(at, at + (last - first) * width));
    }
    const looksAhead = seesAhead(image);
    this.#looksAhead ||= looksAhead;
    for (let position = first; position < last; position += 1) {
      this.#tokens.push(firstToken + position - from);
      this.#lastSeen.push(looksAhead ? start + numTokens - 1 : position);
      this.#otherIds.push(otherId);
    }
  }

  /** Puts ids where embeddings beside the given rows take others than the images' own. */
  putIds(tokenIds: Int32Array): void {
    for (const [index, token] of this.#tokens.entries()) {
      const id = this.#otherIds[index];
      if (id !== undefined) tokenIds[token] = id;
    }
  }

  /** `positions`: of the step's tokens, in their sequences. */
  parts(positions: Int32Array, numTokens: number): Pick<StepPlan, "given" | "lastSeen"> {
    if (this.#tokens.length === 0) return {};
    const given = {
      tokens: Int32Array.from(this.#tokens),
      rows: joined(this.#rows),
      ...(this.#added.length > 0 && { added: joined(this.#added.flat()) }),
    };
    if (!this.#looksAhead) return { given };
    const lastSeen = positions.slice(0, numTokens);
    for (const [index, token] of this.#tokens.entries()) lastSeen[token] = this.#lastSeen[index] ?? 0;
    return { lastSeen, given };
  }
}

function joined(parts: readonly Float32Array[]): Float32Array {
  const [only] = parts;
  if (only !== undefined && parts.length === 1) return only;
  const whole = new Float32Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
