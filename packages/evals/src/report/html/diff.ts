import { wordDiff } from "../word-diff.js";
import { clip, escapeHtml } from "./escape.js";

/** Two texts as one, with what went and what came marked as such. */
export function diffHtml(before: string, after: string, mostCharacters: number): string {
  const parts = wordDiff(clip(before, mostCharacters), clip(after, mostCharacters));
  return parts
    .map(({ kind, text }) => {
      const escaped = escapeHtml(text);
      if (kind === "same") return escaped;
      return kind === "removed" ? `<del>${escaped}</del>` : `<ins>${escaped}</ins>`;
    })
    .join("");
}
