/** What Python's `str.isspace` and `str.strip` take for white space, as UTF-16 units. */
const spaces = new Set<number>([
  ...range(0x09, 0x0d),
  ...range(0x1c, 0x20),
  0x85,
  0xa0,
  0x1680,
  ...range(0x2000, 0x200a),
  0x2028,
  0x2029,
  0x202f,
  0x205f,
  0x3000,
]);

/** What `str.splitlines` ends a line at. */
const lineEnds = new Set<number>([...range(0x0a, 0x0d), ...range(0x1c, 0x1e), 0x85, 0x2028, 0x2029]);

function range(first: number, last: number): number[] {
  return Array.from({ length: last - first + 1 }, (_, index) => first + index);
}

export function isSpaceAt(text: string, index: number): boolean {
  return spaces.has(text.charCodeAt(index));
}

export function isAllSpace(text: string): boolean {
  return skipSpace(text, 0) === text.length;
}

/** Offset of the first character from `start` on that is not white space. */
export function skipSpace(text: string, start: number): number {
  let index = start;
  while (index < text.length && isSpaceAt(text, index)) index++;
  return index;
}

/** Offset behind the last character that is not white space. */
export function endWithoutSpace(text: string): number {
  let end = text.length;
  while (end > 0 && isSpaceAt(text, end - 1)) end--;
  return end;
}

/** Lines with the characters that end them; CR LF is one end. */
export function splitLines(text: string): { readonly line: string; readonly end: string }[] {
  const lines: { line: string; end: string }[] = [];
  let start = 0;
  for (let index = 0; index < text.length; index++) {
    if (!lineEnds.has(text.charCodeAt(index))) continue;
    const after = index + (text.startsWith("\r\n", index) ? 2 : 1);
    lines.push({ line: text.slice(start, index), end: text.slice(index, after) });
    start = after;
    index = after - 1;
  }
  if (start < text.length) lines.push({ line: text.slice(start), end: "" });
  return lines;
}
