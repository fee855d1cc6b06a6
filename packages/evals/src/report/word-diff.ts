import { clip, escapeHtml } from "@octavo/report";
/** A run of words that both texts have, that only the first has, or that only the second has. */
interface DiffPart {
  readonly kind: "same" | "removed" | "added";
  readonly text: string;
}

/** Edits beyond which texts count as different altogether: bounds the time; such a diff is unreadable anyway. */
const mostEdits = 160;
const mostWords = 3000;

/**
 * What changed between two texts, word by word: a shortest edit script (Myers 1986, the greedy algorithm) over words, runs of
 * white space and single signs. Texts that have little in common are one removal and one addition between what they begin and
 * end with alike.
 */
export function wordDiff(before: string, after: string): readonly DiffPart[] {
  const a = words(before);
  const b = words(after);
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end])
    end += 1;
  const middleA = a.slice(start, a.length - end);
  const middleB = b.slice(start, b.length - end);
  const script = shortestEdit(middleA, middleB) ?? [
    ...middleA.map((text) => ({ kind: "removed", text }) as const),
    ...middleB.map((text) => ({ kind: "added", text }) as const),
  ];
  return joined([
    ...a.slice(0, start).map((text) => ({ kind: "same", text }) as const),
    ...script,
    ...a.slice(a.length - end).map((text) => ({ kind: "same", text }) as const),
  ]);
}

function words(text: string): readonly string[] {
  return text.match(/\s+|[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu) ?? [];
}

/** Undefined when it takes more than `mostEdits`. */
function shortestEdit(a: readonly string[], b: readonly string[]): readonly DiffPart[] | undefined {
  if (a.length + b.length > mostWords) return undefined;
  const most = Math.min(a.length + b.length, mostEdits);
  const offset = most + 1;
  // furthest[offset + k] is how far into `a` a path on diagonal k has come
  let furthest = new Int32Array(2 * most + 3);
  const steps: Int32Array[] = [];
  for (let edits = 0; edits <= most; edits += 1) {
    steps.push(furthest);
    const next = furthest.slice();
    for (let k = -edits; k <= edits; k += 2) {
      let x = cameDown(furthest, offset, k, edits)
        ? (furthest[offset + k + 1] ?? 0)
        : (furthest[offset + k - 1] ?? 0) + 1;
      while (x < a.length && x - k < b.length && a[x] === b[x - k]) x += 1;
      next[offset + k] = x;
      if (x >= a.length && x - k >= b.length) return walkBack(a, b, steps, offset, edits);
    }
    furthest = next;
  }
  return undefined;
}

function cameDown(furthest: Int32Array, offset: number, k: number, edits: number): boolean {
  if (k === -edits) return true;
  return k !== edits && (furthest[offset + k - 1] ?? 0) < (furthest[offset + k + 1] ?? 0);
}

function walkBack(
  a: readonly string[],
  b: readonly string[],
  steps: readonly Int32Array[],
  offset: number,
  numEdits: number,
): readonly DiffPart[] {
  const reversed: DiffPart[] = [];
  let x = a.length;
  let y = b.length;
  for (let edits = numEdits; edits >= 0; edits -= 1) {
    const furthest = steps[edits] ?? new Int32Array();
    const k = x - y;
    const isDown = edits > 0 && cameDown(furthest, offset, k, edits);
    const previousK = isDown ? k + 1 : k - 1;
    const fromX = edits === 0 ? 0 : (furthest[offset + previousK] ?? 0);
    const fromY = edits === 0 ? 0 : fromX - previousK;
    while (x > fromX && y > fromY && a[x - 1] === b[y - 1]) {
      x -= 1;
      y -= 1;
      reversed.push({ kind: "same", text: a[x] ?? "" });
    }
    if (edits === 0) break;
    if (isDown) {
      y -= 1;
      reversed.push({ kind: "added", text: b[y] ?? "" });
    } else {
      x -= 1;
      reversed.push({ kind: "removed", text: a[x] ?? "" });
    }
  }
  return reversed.toReversed();
}

/** Neighbours of one kind become one part; removals stand before additions between the same words. */
function joined(parts: readonly DiffPart[]): readonly DiffPart[] {
  const result: DiffPart[] = [];
  let removed = "";
  let added = "";
  let same = "";
  const flushEdits = (): void => {
    if (removed !== "") result.push({ kind: "removed", text: removed });
    if (added !== "") result.push({ kind: "added", text: added });
    removed = added = "";
  };
  for (const { kind, text } of parts) {
    if (kind === "same") {
      flushEdits();
      same += text;
      continue;
    }
    if (same !== "") result.push({ kind: "same", text: same });
    same = "";
    if (kind === "removed") removed += text;
    else added += text;
  }
  flushEdits();
  if (same !== "") result.push({ kind: "same", text: same });
  return result;
}

/** Two texts as one, with what was removed and what was added marked as such. */
export function diffHtml(before: string, after: string, mostCharacters: number): string {
  const tags = { same: undefined, removed: "del", added: "ins" } as const;
  return wordDiff(clip(before, mostCharacters), clip(after, mostCharacters))
    .map(({ kind, text }) => {
      const tag = tags[kind];
      return tag === undefined ? escapeHtml(text) : `<${tag}>${escapeHtml(text)}</${tag}>`;
    })
    .join("");
}
