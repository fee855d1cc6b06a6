import { OctavoError } from "@octavo/protocol";

const longestPattern = 500;
const mostAlternatives = 256;

/**
 * Whether a change of these files concerns a gate. Patterns are as in a workflow's `paths`: `*` within a folder, `**` across
 * folders, `?`, `{a,b}`; a pattern that begins with `!` takes back what those before it took, and the last that fits decides.
 * @throws OctavoError `invalid_option` for a pattern that cannot be read
 */
export function concerns(patterns: readonly string[], changedFiles: readonly string[]): boolean {
  const rules = patterns.map((pattern) => {
    const isTaken = !pattern.startsWith("!");
    return { isTaken, globs: globsOf(isTaken ? pattern : pattern.slice(1)) };
  });
  return changedFiles.some((file) => {
    const path = file.replaceAll("\\", "/").replace(/^\.\//, "");
    return rules.findLast(({ globs }) => globs.some((glob) => matches(glob, path)))?.isTaken ?? false;
  });
}

/** `within`: any characters of one name; `across`: any at all; `perhaps`: the next may be left out; `folder`: up to a slash. */
type GlobToken =
  | { readonly kind: "character"; readonly text: string }
  | { readonly kind: "one" | "within" | "across" | "perhaps" | "folder" };

function globsOf(pattern: string): readonly (readonly GlobToken[])[] {
  if (pattern === "" || pattern.length > longestPattern)
    throw new OctavoError("invalid_option", `a path pattern has 1 to ${longestPattern} characters`);
  return alternatives(pattern.replace(/^\.?\//, "")).map(tokensOf);
}

/** Expands a pattern with braces into patterns without. */
function alternatives(pattern: string): readonly string[] {
  const waiting = [pattern];
  const done: string[] = [];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const open = next.lastIndexOf("{");
    if (open === -1) {
      done.push(next);
      continue;
    }
    const close = next.indexOf("}", open);
    if (close === -1)
      throw new OctavoError("invalid_option", `the path pattern ${JSON.stringify(pattern)} lacks a }`);
    for (const choice of next.slice(open + 1, close).split(","))
      waiting.push(next.slice(0, open) + choice + next.slice(close + 1));
    if (waiting.length + done.length > mostAlternatives)
      throw new OctavoError(
        "invalid_option",
        `the path pattern ${JSON.stringify(pattern)} stands for more than ${mostAlternatives} patterns`,
      );
  }
  return done;
}

function tokensOf(pattern: string): readonly GlobToken[] {
  const tokens: GlobToken[] = [];
  for (const [part] of pattern.matchAll(/\*\*\/|\*+|[^]/gu)) {
    if (part === "**/") tokens.push({ kind: "perhaps" }, { kind: "folder" });
    else if (part === "*") tokens.push({ kind: "within" });
    else if (part.startsWith("*")) tokens.push({ kind: "across" });
    else tokens.push(part === "?" ? { kind: "one" } : { kind: "character", text: part });
  }
  return tokens;
}

/** Follows all ways through the pattern at once, so that the time is at most their product. */
function matches(tokens: readonly GlobToken[], path: string): boolean {
  let states = new Set<number>();
  enter(tokens, states, 0);
  for (const character of path) {
    const next = new Set<number>();
    for (const state of states) {
      const token = tokens[state];
      if (token === undefined) continue;
      const isSlash = character === "/";
      if (token.kind === "character" && token.text === character) enter(tokens, next, state + 1);
      else if (token.kind === "one" && !isSlash) enter(tokens, next, state + 1);
      else if (token.kind === "across" || (token.kind === "within" && !isSlash)) enter(tokens, next, state);
      else if (token.kind === "folder") enter(tokens, next, isSlash ? state + 1 : state);
      if (token.kind === "folder" && isSlash) enter(tokens, next, state);
    }
    states = next;
  }
  return states.has(tokens.length);
}

/** Adds a state and those that it can pass to without a character. */
function enter(tokens: readonly GlobToken[], states: Set<number>, from: number): void {
  if (states.has(from)) return;
  states.add(from);
  const kind = tokens[from]?.kind;
  if (kind === "within" || kind === "across" || kind === "perhaps") enter(tokens, states, from + 1);
  if (kind === "perhaps") enter(tokens, states, from + 2);
}
