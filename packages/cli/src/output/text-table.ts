/** A column: its head and a row's cell. Numbers are right-aligned. */
export interface TextColumn<Row> {
  readonly head: string;
  readonly of: (row: Row) => string | number | null | undefined;
}

/** Rows as lines with aligned columns; missing cells are dashes. */
export function textTable<Row>(rows: readonly Row[], columns: readonly TextColumn<Row>[]): string {
  const cells = rows.map((row) => columns.map(({ of }) => of(row)));
  const texts = cells.map((line) => line.map(cellText));
  const widths = columns.map(({ head }, index) =>
    Math.max(head.length, ...texts.map((line) => line[index]?.length ?? 0)),
  );
  const isNumber = columns.map((_, index) => cells.some((line) => typeof line[index] === "number"));
  const pad = (text: string, index: number): string =>
    isNumber[index] === true ? text.padStart(widths[index] ?? 0) : text.padEnd(widths[index] ?? 0);
  return [columns.map(({ head }) => head), ...texts]
    .map((line) => `${line.map(pad).join("  ").trimEnd()}\n`)
    .join("");
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
