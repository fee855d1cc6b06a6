/** A column: its head and a row's cell. Numbers are right-aligned. */
export interface TextColumn<Row> {
  readonly head: string;
  readonly of: (row: Row) => string | number | null | undefined;
  /** Texts that are figures are right-aligned and never broken inside, as numbers are. */
  readonly isFigure?: boolean;
}

const gap = "  ";
/** Columns of words are not broken inside words to fewer characters. */
const narrowest = 8;

/**
 * Rows as lines with aligned columns; missing cells are dashes. Where lines are longer than `width`, the widest columns of words wrap;
 * nothing is cut.
 */
export function textTable<Row>(
  rows: readonly Row[],
  columns: readonly TextColumn<Row>[],
  width: number = terminalWidth(),
): string {
  const cells = rows.map((row) => columns.map(({ of }) => of(row)));
  const isNumber = columns.map(
    ({ isFigure = false }, index) => isFigure || cells.some((line) => typeof line[index] === "number"),
  );
  const texts = [columns.map(({ head }) => head), ...cells.map((line) => line.map(cellText))];
  const byColumn = columns.map((_, index) => texts.map((line) => line[index] ?? ""));
  const whole = byColumn.map(longest);
  const words = byColumn.map((column) => longest(column.flatMap((text) => text.split(" "))));
  const parts = words.map((word, index) => (isNumber[index] === true ? word : Math.min(word, narrowest)));
  const room = width - gap.length * (columns.length - 1);
  const widths = shrunk(shrunk(whole, words, room), parts, room);
  const pad = (text: string, index: number): string =>
    isNumber[index] === true ? text.padStart(widths[index] ?? 0) : text.padEnd(widths[index] ?? 0);
  return texts
    .flatMap((line) => {
      const wrapped = line.map((text, index) => wrap(text, widths[index] ?? 0));
      const height = Math.max(...wrapped.map(({ length }) => length));
      return Array.from({ length: height }, (_, at) => wrapped.map((lines) => lines[at] ?? ""));
    })
    .map((line) => `${line.map(pad).join(gap).trimEnd()}\n`)
    .join("");
}

/** A table whose first column says what the figures to its right are of. */
export function figureTable(
  [first = "", ...figures]: readonly string[],
  rows: readonly (readonly (string | undefined)[])[],
  width?: number,
): string {
  const columns = [first, ...figures].map((head, index) => ({
    head,
    of: (row: readonly (string | undefined)[]) => row[index] ?? "",
    isFigure: index > 0,
  }));
  return textTable(rows, columns, width);
}

/** Characters that a person's terminal shows in one line; anything else that reads gets whole lines. */
export function terminalWidth(): number {
  // a terminal that does not know its size says 0
  return process.stdout.isTTY ? process.stdout.columns || Infinity : Infinity;
}

function longest(texts: readonly string[]): number {
  return Math.max(0, ...texts.map(({ length }) => length));
}

/** Widths that add up to `room`, or come as near as `floors` let them; the widest gives first. */
function shrunk(widths: readonly number[], floors: readonly number[], room: number): readonly number[] {
  const left = [...widths];
  for (let excess = left.reduce((sum, one) => sum + one, -room); excess > 0; excess -= 1) {
    const widest = Math.max(...left.filter((one, index) => one > (floors[index] ?? 0)));
    if (widest < 0) break;
    const index = left.findIndex((one, at) => one === widest && one > (floors[at] ?? 0));
    left[index] = widest - 1;
  }
  return left;
}

/** A cell's lines: broken at spaces, and inside words that are longer than a line. */
function wrap(text: string, width: number): readonly string[] {
  if (text.length <= width) return [text];
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    if (line !== "" && line.length + 1 + word.length <= width) {
      line += ` ${word}`;
      continue;
    }
    if (line !== "") lines.push(line);
    line = word;
    for (; line.length > width; line = line.slice(width)) lines.push(line.slice(0, width));
  }
  return [...lines, line];
}

function cellText(cell: string | number | null | undefined): string {
  if (cell === null || cell === undefined) return "-";
  if (typeof cell === "string") return printable(cell);
  return Number.isInteger(cell) ? String(cell) : cell.toFixed(Math.abs(cell) < 10 ? 2 : 1);
}

/** Untrusted text without control characters. */
export function printable(text: string): string {
  return text.replaceAll(/\p{Cc}/gu, "\ufffd");
}
