import { fencedBlocks } from "../text/fences.js";

/** Deeper values are refused: what walks them afterwards may recurse. */
const maxDepth = 256;
/** Places at which an output is tried for JSON. */
const maxAttempts = 64;

type JsonRead = { readonly value: unknown } | { readonly problem: string };

/** A whole text as JSON, with why it is none. */
export function readJson(text: string): JsonRead {
  if (text.trim() === "") return { problem: "it is empty" };
  if (isTooDeep(text)) return { problem: `it is nested deeper than ${maxDepth} levels` };
  try {
    return { value: JSON.parse(text) };
  } catch (thrown) {
    return { problem: thrown instanceof Error ? thrown.message.slice(0, 200) : "it does not parse" };
  }
}

/** The first code block of a text as JSON, or all of it where it has none. */
export function readFencedJson(text: string): JsonRead {
  const [block] = fencedBlocks(text);
  return readJson(block === undefined ? text : block.code);
}

/** The first object or array that stands anywhere in a text and that `isWanted` takes. */
export function findJson(text: string, isWanted: (value: unknown) => boolean = () => true): JsonRead {
  let start = 0;
  for (let attempt = 0; attempt < maxAttempts; attempt++) {
    const offset = text.slice(start).search(/[[{]/);
    if (offset < 0) break;
    start += offset;
    const end = closingOf(text, start);
    const read = end === undefined ? undefined : readJson(text.slice(start, end));
    if (read !== undefined && "value" in read && isWanted(read.value)) return read;
    start += 1;
  }
  return { problem: "no part of it is a JSON object or array" };
}

/** Past the bracket that closes the one at `start`; undefined where none does. */
function closingOf(text: string, start: number): number | undefined {
  let depth = 0;
  let isString = false;
  for (let at = start; at < text.length; at++) {
    const character = text[at];
    if (isString) {
      if (character === "\\") at++;
      else if (character === '"') isString = false;
    } else if (character === '"') isString = true;
    else if (character === "{" || character === "[") depth++;
    else if (character === "}" || character === "]") {
      depth--;
      if (depth === 0) return at + 1;
    }
  }
  return undefined;
}

function isTooDeep(text: string): boolean {
  if (text.length <= maxDepth) return false;
  let depth = 0;
  let isString = false;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (isString) {
      if (code === 92) at++;
      else if (code === 34) isString = false;
    } else if (code === 34) isString = true;
    else if (code === 91 || code === 123) {
      if (++depth > maxDepth) return true;
    } else if (code === 93 || code === 125) depth--;
  }
  return false;
}
