import { existsSync, readFileSync } from "node:fs";

const tokenizerFile = new URL("../../../tokenizer.json", import.meta.url);

/**
 * The texts of the tokenizer's tokens that are letters only, without the space
 * before them, in the vocabulary's order. Empty while there is no tokenizer
 * yet, since it is itself trained on the generator's text.
 */
export function vocabularyPieces(): string[] {
  if (!existsSync(tokenizerFile)) return [];
  const { model } = JSON.parse(readFileSync(tokenizerFile, "utf8")) as {
    readonly model: { readonly vocab: Readonly<Record<string, number>> };
  };
  const texts = Object.keys(model.vocab).map((token) => token.replace(/^\u0120/, ""));
  return [...new Set(texts)].filter((text) => /^[A-Za-z]+$/.test(text));
}
