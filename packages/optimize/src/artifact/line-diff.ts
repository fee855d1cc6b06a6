interface DiffLine {
  readonly sign: " " | "-" | "+";
  readonly text: string;
}

const contextLines = 3;
/** Beyond so many pairs of lines all that differs in the middle is shown as replaced. */
const mostPairs = 4_000_000;

/** What changes in a file, in the unified format that `git apply` and `patch -p1` take. */
export function fileDiff(path: string, before: string, after: string): string {
  const lines = diffLines(linesOf(before), linesOf(after));
  const hunks: string[] = [];
  for (let at = 0; at < lines.length;) {
    const first = lines.findIndex(({ sign }, index) => index >= at && sign !== " ");
    if (first < 0) break;
    let last = first;
    for (let index = first; index < lines.length && index - last <= 2 * contextLines; index += 1)
      if (lines[index]!.sign !== " ") last = index;
    const start = Math.max(at, first - contextLines);
    const end = Math.min(lines.length, last + 1 + contextLines);
    hunks.push(hunkOf(lines, start, end));
    at = end;
  }
  const from = before === "" ? "/dev/null" : `a/${path}`;
  return hunks.length === 0 ? "" : `--- ${from}\n+++ b/${path}\n${hunks.join("")}`;
}

function hunkOf(lines: readonly DiffLine[], start: number, end: number): string {
  const count = (sign: DiffLine["sign"], upTo: number, from = 0): number =>
    lines.slice(from, upTo).filter((line) => line.sign === " " || line.sign === sign).length;
  const range = (sign: "-" | "+"): string => {
    const length = count(sign, end, start);
    return `${sign}${count(sign, start) + (length === 0 ? 0 : 1)},${length}`;
  };
  const body = lines
    .slice(start, end)
    .map(
      ({ sign, text }) => `${sign}${text}${text.endsWith("\n") ? "" : "\n\\ No newline at end of file\n"}`,
    );
  return `@@ ${range("-")} ${range("+")} @@\n${body.join("")}`;
}

/** With their ends, so that a last line without one differs from one that has it. */
function linesOf(text: string): readonly string[] {
  return text.match(/[^\n]*\n|[^\n]+$/g) ?? [];
}

/** The longest common subsequence of lines stays. */
function diffLines(before: readonly string[], after: readonly string[]): readonly DiffLine[] {
  let head = 0;
  while (head < before.length && head < after.length && before[head] === after[head]) head += 1;
  let tail = 0;
  while (
    tail < Math.min(before.length, after.length) - head &&
    before[before.length - 1 - tail] === after[after.length - 1 - tail]
  )
    tail += 1;
  const kept = (text: string): DiffLine => ({ sign: " ", text });
  return [
    ...before.slice(0, head).map(kept),
    ...middle(before.slice(head, before.length - tail), after.slice(head, after.length - tail)),
    ...before.slice(before.length - tail).map(kept),
  ];
}

function middle(before: readonly string[], after: readonly string[]): readonly DiffLine[] {
  const removed = (text: string): DiffLine => ({ sign: "-", text });
  const put = (text: string): DiffLine => ({ sign: "+", text });
  if (before.length * after.length > mostPairs) return [...before.map(removed), ...after.map(put)];
  const width = after.length + 1;
  const longest = new Uint32Array((before.length + 1) * width);
  for (let i = before.length - 1; i >= 0; i -= 1)
    for (let j = after.length - 1; j >= 0; j -= 1)
      longest[i * width + j] =
        before[i] === after[j]
          ? longest[(i + 1) * width + j + 1]! + 1
          : Math.max(longest[(i + 1) * width + j]!, longest[i * width + j + 1]!);
  const lines: DiffLine[] = [];
  let [i, j] = [0, 0];
  while (i < before.length && j < after.length) {
    if (before[i] === after[j]) {
      lines.push({ sign: " ", text: before[i]! });
      i += 1;
      j += 1;
    } else if (longest[(i + 1) * width + j]! >= longest[i * width + j + 1]!)
      lines.push(removed(before[i++]!));
    else lines.push(put(after[j++]!));
  }
  return [...lines, ...before.slice(i).map(removed), ...after.slice(j).map(put)];
}
