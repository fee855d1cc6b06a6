import type { ModelShape } from "../shape/model-shape.js";

export type KvFormat = "bf16" | "fp8" | "int8";

export const kvFormats: readonly KvFormat[] = ["bf16", "fp8", "int8"];

/** Positions of a block of the cache; a sequence holds whole blocks. */
const blockTokens = 16;

/** Bytes one token adds in one layer: int8 keeps an f32 scale per head, fp8 one per layer, which is not counted. */
function layerBytes(elements: number, vectors: number, format: KvFormat): number {
  switch (format) {
    case "bf16":
      return elements * 2;
    case "fp8":
      return elements;
    case "int8":
      return elements + 4 * vectors;
  }
}

/** Bytes of one more token of context in every layer. */
export function kvBytesPerToken(shape: ModelShape, format: KvFormat): number {
  return shape.attention.reduce(
    (sum, { kvElements, kvVectors }) => sum + layerBytes(kvElements, kvVectors, format),
    0,
  );
}

const stateElementBytes = 4;

/** Bytes of a sequence's recurrent state. */
export function stateBytes({ stateElements }: ModelShape): number {
  return stateElementBytes * stateElements;
}

/** Bytes a sequence of `tokens` moves in a decode step: layers with a window hold no more than it, state is read and written. */
export function kvBytes(shape: ModelShape, format: KvFormat, tokens: number): number {
  return shape.attention.reduce(
    (sum, { kvElements, kvVectors, window = Infinity }) =>
      sum + layerBytes(kvElements, kvVectors, format) * Math.min(tokens, window),
    2 * stateBytes(shape),
  );
}

/** As `kvBytes` in whole blocks: what a sequence of `tokens` takes of the memory. */
export function kvBytesReserved(shape: ModelShape, format: KvFormat, tokens: number): number {
  return shape.attention.reduce(
    (sum, { kvElements, kvVectors, window = Infinity }) =>
      sum +
      layerBytes(kvElements, kvVectors, format) *
        Math.ceil(Math.min(tokens, window) / blockTokens) *
        blockTokens,
    stateBytes(shape),
  );
}
