import { OctavoError } from "@octavo/protocol/errors";
import type { Tokenizer } from "@octavo/text/tokenizer/tokenizer";

interface Named {
  readonly name: string;
  readonly tokenizer: Tokenizer;
}

/** Models of one family are padded, and given special tokens, to somewhat different sizes. */
const mostExtraTokens = 128;

/** Throws `invalid_option` unless ids mean the same to a draft model and to the model it drafts for. */
export function checkSameVocabulary(draft: Named, target: Named): void {
  const sizes = [draft.tokenizer.vocabSize, target.tokenizer.vocabSize] as const;
  if (Math.abs(sizes[0] - sizes[1]) > mostExtraTokens)
    throw other(draft, target, `it has ${sizes[0]} tokens, not ${sizes[1]}`);
  for (let id = 0; id < Math.min(...sizes); id += 1) {
    const mine = draft.tokenizer.idToToken(id);
    const its = target.tokenizer.idToToken(id);
    if (mine !== its && mine !== undefined && its !== undefined)
      throw other(draft, target, `token ${id} is ${quoted(mine)} there and ${quoted(its)} here`);
  }
}

function other(draft: Named, target: Named, difference: string): OctavoError {
  return new OctavoError(
    "invalid_option",
    `The draft model ${draft.name} has another vocabulary than ${target.name}: ${difference}. ` +
      "Take a smaller model of the same family.",
    { param: "speculative_config" },
  );
}

function quoted(token: string): string {
  return JSON.stringify(token.slice(0, 40));
}
