import { asObject, asObjects, type JsonFields, OctavoError } from "@octavo/protocol";

/**
 * Refuses bodies that two readers may read differently: what the stages judged would not be what the target does. Names that
 * stand twice in an object (the first counts for some readers, the last for others), and names that differ from one with a
 * meaning in case alone (readers in Go take them for it). Throws `invalid_json` or `invalid_request`.
 */
export function requireUnambiguous(bytes: Buffer, fields: JsonFields): void {
  if (numNames(bytes) !== countNames(fields))
    throw new OctavoError("invalid_json", "The body has an object in which a name stands twice.");
  requireOwnCase(fields);
  for (const name of ["messages", "input", "system", "prompt"])
    for (const message of asObjects(fields[name])) {
      requireOwnCase(message);
      for (const part of asObjects(message["content"])) requireOwnCase(part);
    }
}

/** Names of members in the text of a JSON document that is known to be valid: strings before a colon. */
function numNames(bytes: Buffer): number {
  let count = 0;
  for (let open = bytes.indexOf(quote); open >= 0;) {
    const close = closingQuote(bytes, open);
    let at = close + 1;
    while (isSpace(bytes[at])) at += 1;
    if (bytes[at] === colon) count += 1;
    open = bytes.indexOf(quote, at);
  }
  return count;
}

const quote = 0x22;
const colon = 0x3a;
const backslash = 0x5c;

const isSpace = (byte: number | undefined): boolean =>
  byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;

function closingQuote(bytes: Buffer, open: number): number {
  for (let at = bytes.indexOf(quote, open + 1); ; at = bytes.indexOf(quote, at + 1)) {
    if (at < 0) throw new OctavoError("invalid_json", "The body is not JSON.");
    let escapes = at - 1;
    while (bytes[escapes] === backslash) escapes -= 1;
    // an even number of backslashes escape each other
    if ((at - 1 - escapes) % 2 === 0) return at;
  }
}

/** Without recursion: JSON may be nested as deeply as its parser allows. */
function countNames(fields: JsonFields): number {
  let count = 0;
  const waiting: unknown[] = [fields];
  while (waiting.length > 0) {
    const value = waiting.pop();
    if (Array.isArray(value)) {
      for (const item of value) if (typeof item === "object" && item !== null) waiting.push(item);
      continue;
    }
    const object = asObject(value);
    for (const name in object) {
      count += 1;
      const inner = object[name];
      if (typeof inner === "object" && inner !== null) waiting.push(inner);
    }
  }
  return count;
}

/** Names that stages, routing or translation read. */
const meaningful: ReadonlySet<string> = new Set(
  [
    "model messages prompt suffix input instructions system query documents text_1",
    "text_2 stream stream_options n best_of seed priority metadata user max_tokens",
    "max_completion_tokens max_output_tokens cache_salt tools tool_choice role content text type tool_calls",
    "function arguments output octavo reasoning_content image_url response_format temperature top_p stop",
    "options",
  ].flatMap((line) => line.split(" ")),
);

function requireOwnCase(object: JsonFields): void {
  for (const name in object) {
    // most names are known as they are; through capitals, as the long s and the sign of Kelvin are letters to some readers
    if (meaningful.has(name)) continue;
    const folded = name.toUpperCase().toLowerCase();
    if (folded === name || !meaningful.has(folded)) continue;
    throw new OctavoError("invalid_request", `${JSON.stringify(name.slice(0, 64))}: write it as ${folded}.`, {
      param: folded,
    });
  }
}
