import { createHash } from "node:crypto";

/** Numbers, ids and quoted values, which differ between findings of one cause. */
const volatileParts: readonly (readonly [RegExp, string])[] = [
  [/"(?:[^"\\]|\\.)*"/g, " _text_ "],
  [/\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/gi, " _id_ "],
  [/\b[a-z]{2,12}[-_][0-9a-z]*[0-9][0-9a-z]{6,}\b/gi, " _id_ "],
  [/\b[0-9a-f]{12,}\b/gi, " _id_ "],
  [/[+-]?\d+(?:[.,]\d+)*(?:e[+-]?\d+)?/gi, " _number_ "],
];

/** A text without what changes from one finding to the next: equal ones are one point. */
export function templateOf(text: string): string {
  let masked = text.normalize("NFC").toLowerCase();
  for (const [pattern, name] of volatileParts) masked = masked.replace(pattern, name);
  return masked.replace(/\s+/g, " ").trim();
}

export const lexicalDimensions = 256;

/**
 * Words and pairs of words of each text, hashed into signed counts and scaled to length 1 (Weinberger et al. 2009): what stands in
 * for an embedding model where there is none. Texts that share no word are at distance sqrt(2).
 */
export function lexicalVectors(texts: readonly string[]): Float32Array {
  const values = new Float32Array(texts.length * lexicalDimensions);
  const places = new Map<string, number>();
  for (const [row, text] of texts.entries()) {
    const words = text.match(/[\p{L}\p{N}_]+/gu) ?? [];
    for (const [index, word] of words.entries()) {
      addFeature(values, row, word, 1, places);
      if (index > 0) addFeature(values, row, `${words[index - 1]} ${word}`, 0.5, places);
    }
  }
  return scaledRows(values, lexicalDimensions);
}

function addFeature(
  values: Float32Array,
  row: number,
  feature: string,
  weight: number,
  places: Map<string, number>,
): void {
  let place = places.get(feature);
  if (place === undefined)
    places.set(feature, (place = createHash("sha1").update(feature).digest().readUInt16LE()));
  const at = row * lexicalDimensions + (place % lexicalDimensions);
  values[at] = values[at]! + (place & 0x8000 ? -weight : weight);
}

/** Rows scaled to length 1, in place; rows of zeros stay. */
export function scaledRows(values: Float32Array, dimensions: number): Float32Array {
  for (let start = 0; start < values.length; start += dimensions) {
    const row = values.subarray(start, start + dimensions);
    const length = Math.hypot(...row);
    if (length > 0) for (let i = 0; i < dimensions; i++) row[i] = row[i]! / length;
  }
  return values;
}
