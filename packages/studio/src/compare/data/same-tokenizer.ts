import type { Checkpoint, Tokenizer } from "@octavo/engine";
import { OctavoError } from "@octavo/protocol";

interface Tokenized {
  readonly name: string;
  readonly checkpoint: Checkpoint;
  readonly tokenizer: Tokenizer;
}

/**
 * Predictions can be compared only over one vocabulary: as many logits, and every id that both know the same token. Ids
 * that pad a vocabulary and are known to one file format alone are let pass.
 * @throws OctavoError `invalid_option`
 */
export function checkSameTokenizer(baseline: Tokenized, variant: Tokenized): void {
  const size = baseline.checkpoint.config.vocabSize;
  const other = variant.checkpoint.config.vocabSize;
  const sizes = `${baseline.name} predicts ${size} tokens, ${variant.name} ${other}`;
  if (size !== other) throw differ(baseline, variant, sizes);
  for (let id = 0; id < size; id++) {
    const mine = baseline.tokenizer.idToToken(id);
    const theirs = variant.tokenizer.idToToken(id);
    if (mine === undefined || theirs === undefined || mine === theirs) continue;
    throw differ(
      baseline,
      variant,
      `token ${id} is ${JSON.stringify(mine)} in one and ${JSON.stringify(theirs)} in the other`,
    );
  }
}

/** @throws OctavoError `invalid_option` naming the line whose text the two split differently */
export function checkSameTokens(
  tokens: Int32Array,
  others: Int32Array,
  baseline: Tokenized,
  variant: Tokenized,
  where: string,
): void {
  const at = tokens.findIndex((token, index) => token !== others[index]);
  if (at === -1 && tokens.length === others.length) return;
  const index = at === -1 ? Math.min(tokens.length, others.length) : at;
  throw differ(baseline, variant, `the text of ${where} becomes other tokens from the one at ${index} on`);
}

function differ(baseline: Tokenized, variant: Tokenized, how: string): OctavoError {
  return new OctavoError(
    "invalid_option",
    `${baseline.name} and ${variant.name} have different tokenizers: ${how}. Only artifacts of one model can be compared token by token.`,
    { param: "variant" },
  );
}
