import { OctavoError } from "@octavo/protocol/errors";
import type { CodeSet } from "../regex/code-points.js";
import type { Anchor, Regex } from "../regex/syntax-tree.js";
import { all, choice, type Node, not, repeat, sequence } from "./node.js";

/** How characters are written in the output: literally, or as in a JSON string. */
export interface TextEncoding {
  characters(set: CodeSet): Node;
  /** Any text. */
  readonly anything: Node;
}

/** Most alternatives that anchors inside groups expand to. */
const maxAlternatives = 256;

/**
 * A regular expression as a grammar. `search` finds it anywhere in the text, as JSON schema's `pattern` does; without it the
 * whole text must match. Lookahead becomes an intersection with all that follows. Throws `invalid_request` for anchors
 * and lookahead inside repetitions.
 */
export function lowerRegex(regex: Regex, encoding: TextEncoding, search: boolean): Node {
  return new RegexLowering(encoding, search).whole(regex);
}

class RegexLowering {
  readonly #encoding: TextEncoding;
  readonly #search: boolean;
  #numAlternatives = 0;

  constructor(encoding: TextEncoding, search: boolean) {
    this.#encoding = encoding;
    this.#search = search;
  }

  whole(regex: Regex): Node {
    return choice(...spread(itemsOf(regex)).map((items) => this.#anchoredStart(items)));
  }

  #anchoredStart(items: readonly Regex[]): Node {
    if (++this.#numAlternatives > maxAlternatives) throw unsupported("has too many anchored alternatives");
    let first = 0;
    while (isAnchor(items[first], "textStart")) first += 1;
    const rest = this.#tail(items.slice(first));
    return this.#search && first === 0 ? sequence(this.#encoding.anything, rest) : rest;
  }

  /** The items and all that may follow them to the end of the text. */
  #tail(items: readonly Regex[], search = this.#search): Node {
    const before: Node[] = [];
    for (const [index, item] of items.entries()) {
      if (isAnchor(item, "textEnd")) {
        if (items.slice(index).some((after) => !isAnchor(after, "textEnd")))
          throw unsupported("has something after its end ($)");
        return sequence(...before);
      }
      if (item.kind === "look") {
        const ahead = choice(...spread(itemsOf(item.item)).map((inner) => this.#tail(inner, true)));
        const rest = this.#tail(items.slice(index + 1), search);
        return sequence(...before, all(item.negative ? not(ahead) : ahead, rest));
      }
      if (hasAssertion(item) && (item.kind === "choice" || item.kind === "sequence")) {
        const rest = items.slice(index + 1);
        const alternatives = spread(itemsOf(item)).map((inner) =>
          this.#alternative([...inner, ...rest], search),
        );
        return sequence(...before, choice(...alternatives));
      }
      before.push(this.#inner(item));
    }
    return search ? sequence(...before, this.#encoding.anything) : sequence(...before);
  }

  #alternative(items: readonly Regex[], search: boolean): Node {
    if (++this.#numAlternatives > maxAlternatives) throw unsupported("has too many anchored alternatives");
    return this.#tail(items, search);
  }

  #inner(regex: Regex): Node {
    switch (regex.kind) {
      case "set":
        return this.#encoding.characters(regex.set.ranges);
      case "sequence":
        return sequence(...regex.items.map((item) => this.#inner(item)));
      case "choice":
        return choice(...regex.items.map((item) => this.#inner(item)));
      case "repeat":
        return repeat(this.#inner(regex.item), regex.min, regex.max);
      case "look":
        throw unsupported("has a lookahead inside a repetition");
      case "atomic":
        throw unsupported("has an atomic group");
      case "anchor":
        throw unsupported("has an anchor (^ or $) where it can never match, or inside a repetition");
    }
  }
}

function isAnchor(regex: Regex | undefined, at: Anchor): boolean {
  return regex?.kind === "anchor" && regex.at === at;
}

function itemsOf(regex: Regex): readonly Regex[] {
  return regex.kind === "sequence" ? regex.items : [regex];
}

/** Turns leading alternatives that contain anchors into alternatives of whole sequences. */
function spread(items: readonly Regex[]): (readonly Regex[])[] {
  const [first, ...rest] = items;
  if (first?.kind === "choice" && (items.length === 1 || hasAssertion(first)))
    return first.items.flatMap((item) => spread([...itemsOf(item), ...rest]));
  if (first?.kind === "sequence") return spread([...first.items, ...rest]);
  return [items];
}

function hasAssertion(regex: Regex): boolean {
  switch (regex.kind) {
    case "set":
      return false;
    case "sequence":
    case "choice":
      return regex.items.some(hasAssertion);
    case "repeat":
    case "atomic":
      return hasAssertion(regex.item);
    case "look":
    case "anchor":
      return true;
  }
}

function unsupported(what: string): OctavoError {
  return new OctavoError("invalid_request", `The pattern ${what}, which is not supported; write it without.`);
}
