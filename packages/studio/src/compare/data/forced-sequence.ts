import type { Tokenizer } from "@octavo/engine";
import { paintRoles } from "../roles/paint-roles.js";
import { roleIndex, roles } from "../roles/role.js";
import type { ScoredText } from "./render.js";
import { tokenByteOffsets } from "./token-offsets.js";

/** Marks a token that is not scored. */
export const unscored = -1;

/** A text's tokens, and for each what it is scored as. Arrays are parallel to `tokens`. */
export interface ForcedSequence {
  readonly line: number;
  readonly tokens: Int32Array;
  /** Index into `roles`, or `unscored`. */
  readonly roles: Int8Array;
  /** Place among the scored tokens of its answer, from 0. */
  readonly positions: Int32Array;
  /** Which of the sequence's answers, from 0. */
  readonly answers: Int32Array;
  readonly numAnswers: number;
  readonly isPlain: boolean;
}

/**
 * Assigns roles to tokens by the bytes they cover: a token has the role of most of its bytes, white space aside. An answer
 * of a chat ends with its first end token; what the template writes behind it nobody generates. The first token of all is
 * never scored, since nothing predicts it.
 */
export function forcedSequence(
  scored: ScoredText,
  tokens: Int32Array,
  tokenizer: Tokenizer,
  endTokens: ReadonlySet<number>,
): ForcedSequence {
  const offsets = tokenByteOffsets(scored.text, tokens, tokenizer);
  const ofToken = new Int8Array(tokens.length).fill(unscored);
  const positions = new Int32Array(tokens.length).fill(unscored);
  const answers = new Int32Array(tokens.length).fill(unscored);
  let token = 0;
  let bytesBefore = 0;
  let unitsBefore = 0;
  let numAnswers = 0;
  for (const answer of scored.answers) {
    const start = bytesBefore + Buffer.byteLength(scored.text.slice(unitsBefore, answer.start));
    const byteRoles = rolesOfBytes(
      scored.text.slice(answer.start, answer.end),
      paintRoles(scored.text, answer),
    );
    const end = start + byteRoles.length;
    while (token < tokens.length && (offsets[token] ?? 0) < start) token++;
    let position = 0;
    for (; token < tokens.length && (offsets[token] ?? 0) < end; token++) {
      const id = tokens[token] ?? 0;
      const isSpecial = tokenizer.specialTokenIds.has(id);
      const from = (offsets[token] ?? 0) - start;
      const to = (offsets[token + 1] ?? 0) - start;
      if (token === 0 || (isSpecial && from === to)) continue;
      ofToken[token] = isSpecial ? roleIndex("structure") : roleOfBytes(byteRoles, from, to);
      positions[token] = position++;
      answers[token] = numAnswers;
      if (!scored.isPlain && endTokens.has(id)) {
        token++;
        break;
      }
    }
    if (position > 0) numAnswers++;
    bytesBefore = end;
    unitsBefore = answer.end;
  }
  return {
    line: scored.line,
    tokens,
    roles: ofToken,
    positions,
    answers,
    numAnswers,
    isPlain: scored.isPlain,
  };
}

/** UTF-8 bytes with the roles of the UTF-16 units they come from; white space is marked by the high bit. */
function rolesOfBytes(text: string, ofUnits: Uint8Array): Uint8Array {
  const out = new Uint8Array(Buffer.byteLength(text));
  let at = 0;
  for (let unit = 0; unit < text.length;) {
    const code = text.codePointAt(unit) ?? 0;
    const length = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x1_0000 ? 3 : 4;
    const isSpace = code === 0x20 || (code >= 0x09 && code <= 0x0d);
    out.fill((ofUnits[unit] ?? 0) | (isSpace ? spaceMark : 0), at, at + length);
    at += length;
    unit += code > 0xffff ? 2 : 1;
  }
  return out;
}

const spaceMark = 0x80;

function roleOfBytes(byteRoles: Uint8Array, from: number, to: number): number {
  const counts = roles.map(() => 0);
  for (let byte = from; byte < Math.min(to, byteRoles.length); byte++) {
    const role = byteRoles[byte] ?? 0;
    // White space counts where there is nothing else.
    counts[role & ~spaceMark] = (counts[role & ~spaceMark] ?? 0) + (role & spaceMark ? 0.001 : 1);
  }
  const most = Math.max(...counts);
  return most === 0 ? (byteRoles[from] ?? 0) & ~spaceMark : counts.indexOf(most);
}
