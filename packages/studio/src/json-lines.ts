import { isRecord, type OctavoError } from "@octavo/protocol";

export interface JsonLine {
  /** From 1 on. */
  readonly line: number;
  readonly record: Readonly<Record<string, unknown>>;
}

const maxLineBytes = 64 * 1024 * 1024;
const newline = 0x0a;

/**
 * The objects of a file of JSON lines; empty lines are passed over.
 * @param refuse the error for a line that is none, e.g. "is not JSON"
 */
export function* readJsonLines(
  content: Buffer,
  refuse: (line: number, problem: string, cause?: unknown) => OctavoError,
): Generator<JsonLine> {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let start = 0;
  for (let line = 1; start < content.length; line++) {
    const found = content.indexOf(newline, start);
    const bytes = content.subarray(start, found === -1 ? content.length : found);
    start += bytes.length + 1;
    if (bytes.length > maxLineBytes) throw refuse(line, `is longer than ${maxLineBytes} bytes`);
    let text: string;
    try {
      text = decoder.decode(bytes).trim();
    } catch (error) {
      throw refuse(line, "is not valid UTF-8", error);
    }
    if (text === "") continue;
    let record: unknown;
    try {
      record = JSON.parse(text);
    } catch (error) {
      throw refuse(line, `is not JSON (${error instanceof Error ? error.message : "unreadable"})`, error);
    }
    if (!isRecord(record)) throw refuse(line, "is not a JSON object");
    yield { line, record };
  }
}
