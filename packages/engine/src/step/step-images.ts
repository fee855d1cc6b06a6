import type { StepPlan } from "@octavo/kernels";
import type { PromptImage } from "../scheduler/prompt-image.js";

/** The images of a step: rows in the place of their tokens, which see to the end of their image. */
export class StepImages {
  readonly #tokens: number[] = [];
  /** By token, of the tokens above. */
  readonly #lastSeen: number[] = [];
  readonly #rows: Float32Array[] = [];

  clear(): void {
    this.#tokens.length = 0;
    this.#lastSeen.length = 0;
    this.#rows.length = 0;
  }

  /** Adds what a sequence computes of an image, of which positions [from, end) are the step's tokens from `firstToken` on. */
  add(
    { start, numTokens, rows }: Pick<PromptImage, "start" | "numTokens" | "rows">,
    firstToken: number,
    from: number,
    end: number,
  ): void {
    const [first, last] = [Math.max(start, from), Math.min(start + numTokens, end)];
    if (first >= last) return;
    const width = rows.length / numTokens;
    this.#rows.push(rows.subarray((first - start) * width, (last - start) * width));
    for (let position = first; position < last; position += 1) {
      this.#tokens.push(firstToken + position - from);
      this.#lastSeen.push(start + numTokens - 1);
    }
  }

  /** `positions`: of the step's tokens, in their sequences. */
  parts(positions: Int32Array, numTokens: number): Pick<StepPlan, "given" | "lastSeen"> {
    if (this.#tokens.length === 0) return {};
    const lastSeen = positions.slice(0, numTokens);
    for (const [index, token] of this.#tokens.entries()) lastSeen[token] = this.#lastSeen[index] ?? 0;
    return { lastSeen, given: { tokens: Int32Array.from(this.#tokens), rows: joined(this.#rows) } };
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
