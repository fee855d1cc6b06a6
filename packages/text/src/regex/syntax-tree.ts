import type { CharacterSet } from "./character-set.js";

/** A regular expression; groups capture nothing. */
export type Regex =
  | { readonly kind: "set"; readonly set: CharacterSet }
  | { readonly kind: "sequence"; readonly items: readonly Regex[] }
  | { readonly kind: "choice"; readonly items: readonly Regex[] }
  | RegexRepeat
  | { readonly kind: "atomic"; readonly item: Regex }
  | RegexLook
  | { readonly kind: "anchor"; readonly at: Anchor };

export interface RegexRepeat {
  readonly kind: "repeat";
  readonly item: Regex;
  readonly min: number;
  readonly max: number;
  readonly mode: "greedy" | "lazy" | "possessive";
}

/** Lookahead or lookbehind. */
export interface RegexLook {
  readonly kind: "look";
  readonly behind: boolean;
  readonly negative: boolean;
  readonly item: Regex;
}

/** A place that matches no character. */
export type Anchor =
  | "lineStart"
  | "lineEnd"
  | "textStart"
  | "textEnd"
  | "textEndOrLastNewline"
  | "wordBoundary"
  | "notWordBoundary";
