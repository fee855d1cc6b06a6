/**
 * GPT-2's printable stand-ins for bytes: printable Latin-1 characters stand for themselves, the other 68 bytes for
 * U+0100 onwards (openai/gpt-2, `bytes_to_unicode`).
 */
export const characterOfByte: readonly string[] = buildAlphabet();

/** Byte by UTF-16 code unit, -1 for a character outside the alphabet. */
const byteOfCode = new Int16Array(0x200).fill(-1);
for (const [byte, character] of characterOfByte.entries()) byteOfCode[character.charCodeAt(0)] = byte;

function buildAlphabet(): string[] {
  const characters: string[] = [];
  let next = 0x100;
  for (let byte = 0; byte < 256; byte++) {
    const isPrintable = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
    characters.push(String.fromCharCode(isPrintable ? byte : next++));
  }
  return characters;
}

const encoder = new TextEncoder();

/** The text's UTF-8 bytes, one stand-in character each. */
export function toByteAlphabet(text: string): string {
  let result = "";
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    if (code >= 0x80) return result + bytesToAlphabet(encoder.encode(text.slice(index)));
    result += characterOfByte[code]!;
  }
  return result;
}

function bytesToAlphabet(bytes: Uint8Array): string {
  let result = "";
  for (const byte of bytes) result += characterOfByte[byte]!;
  return result;
}

/** The bytes that a token in stand-in characters is; its own UTF-8 when it has any other character. */
export function fromByteAlphabet(token: string): Uint8Array {
  const bytes = new Uint8Array(token.length);
  for (let index = 0; index < token.length; index++) {
    const code = token.charCodeAt(index);
    const byte = code < 0x200 ? byteOfCode[code]! : -1;
    if (byte < 0) return encoder.encode(token);
    bytes[index] = byte;
  }
  return bytes;
}

/** The byte that `<0xNN>` names, undefined for another token. Rust accepts both cases of hex digits. */
export function byteOfFallbackToken(token: string): number | undefined {
  if (token.length !== 6 || !token.startsWith("<0x") || token[5] !== ">") return undefined;
  const digits = token.slice(3, 5);
  return /^(?:[0-9a-fA-F]{2}|\+[0-9a-fA-F])$/.test(digits) ? Number.parseInt(digits, 16) : undefined;
}

export function fallbackTokenOfByte(byte: number): string {
  return `<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`;
}
