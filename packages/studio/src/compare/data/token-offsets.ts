import type { Tokenizer } from "@octavo/engine";

/** How far behind the expected place a token's bytes are looked for, where a normaliser has changed the text. */
const reach = 256;

/**
 * The byte offset at which each token of an encoded text begins, and at the end that of the text's end. Tokens stand for
 * bytes that follow one another in the text; where they do not (a space put before the text, characters normalised), the
 * next token that is found again sets the place right, and tokens between begin where the gap does. Special tokens that
 * the tokenizer added take no bytes.
 */
export function tokenByteOffsets(text: string, tokens: Int32Array, tokenizer: Tokenizer): Uint32Array {
  const bytes = Buffer.from(text, "utf8");
  const offsets = new Uint32Array(tokens.length + 1);
  let at = 0;
  for (const [index, token] of tokens.entries()) {
    const own = tokenizer.tokenBytes(token);
    const place = placeOf(bytes, own, at, tokenizer.specialTokenIds.has(token));
    offsets[index] = place === undefined ? at : place.start;
    if (place !== undefined) at = place.end;
  }
  offsets[tokens.length] = bytes.length;
  return offsets;
}

interface Place {
  readonly start: number;
  readonly end: number;
}

const spaceByte = 0x20;

function placeOf(bytes: Buffer, own: Uint8Array, at: number, isSpecial: boolean): Place | undefined {
  if (own.length === 0) return undefined;
  if (startsWith(bytes, own, at)) return { start: at, end: at + own.length };
  if (isSpecial) {
    // An added token may swallow spaces before it; one that is not there was put in by the tokenizer.
    let next = at;
    while (bytes[next] === spaceByte || bytes[next] === 0x0a) next++;
    return startsWith(bytes, own, next) ? { start: next, end: next + own.length } : undefined;
  }
  if (own[0] === spaceByte && own.length > 1 && startsWith(bytes, own.subarray(1), at)) {
    return { start: at, end: at + own.length - 1 };
  }
  const found = bytes.subarray(at, at + reach).indexOf(own);
  return found === -1 ? undefined : { start: at + found, end: at + found + own.length };
}

function startsWith(bytes: Buffer, own: Uint8Array, at: number): boolean {
  if (at + own.length > bytes.length) return false;
  for (let i = 0; i < own.length; i++) if (bytes[at + i] !== own[i]) return false;
  return true;
}
