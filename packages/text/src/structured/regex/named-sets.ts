import { type CodeSet, lastCodePoint } from "../code-points.js";

const known = new Map<string, CodeSet | undefined>();

/** The code points of `\p{name}` as JavaScript knows it; undefined for a name that it does not. */
export function namedCodeSet(name: string): CodeSet | undefined {
  if (!known.has(name)) known.set(name, scan(name));
  return known.get(name);
}

function scan(name: string): CodeSet | undefined {
  let expression: RegExp;
  try {
    expression = new RegExp(`^\\p{${name}}$`, "u");
  } catch {
    return undefined;
  }
  const ranges: number[] = [];
  let isInside = false;
  for (let codePoint = 0; codePoint <= lastCodePoint + 1; codePoint += 1) {
    const matches = codePoint <= lastCodePoint && expression.test(String.fromCodePoint(codePoint));
    if (matches === isInside) continue;
    ranges.push(matches ? codePoint : codePoint - 1);
    isInside = matches;
  }
  return ranges;
}
