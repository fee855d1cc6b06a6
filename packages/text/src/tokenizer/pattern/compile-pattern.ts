import { OctavoError } from "@octavo/protocol/errors";
import { CharacterSet, wordCharacters } from "../../regex/character-set.js";
import type { Anchor, Regex, RegexLook, RegexRepeat } from "../../regex/syntax-tree.js";

/** Tries to match from an offset; the end of the whole match, or -1. */
export type MatchStep = (index: number) => number;

/** Shared by the steps of one pattern. `steps` counts down; a RangeError ends the match at zero. */
export interface MatchState {
  text: string;
  steps: number;
  /** Counts the texts matched so far, so that a step discards what it remembers of an earlier text. */
  pass: number;
}

/** Code points beyond ASCII whose viable branches an alternation remembers. */
const maxRemembered = 32_768;

function spend(state: MatchState, count: number): void {
  state.steps -= count;
  if (state.steps < 0) throw new RangeError("step budget exhausted");
}

/**
 * Compiles a node into a step that goes on with `next`; backtracking is the return of -1. `isFixed` says that what
 * `next` answers depends on the offset alone, not on a loop around it.
 */
export function compileNode(node: Regex, next: MatchStep, state: MatchState, isFixed: boolean): MatchStep {
  switch (node.kind) {
    case "set":
      return compileSet(node.set, next, state);
    case "sequence":
      return node.items.reduceRight<MatchStep>(
        (following, item) => compileNode(item, following, state, isFixed),
        next,
      );
    case "choice":
      return compileAlternation(node.items, next, state, isFixed);
    case "repeat":
      if (node.item.kind === "set") return compileSetRepeat(node.item.set, node, next, state, isFixed);
      if (node.mode === "possessive") return compilePossessive(node, next, state);
      return node.max === 1 ? compileOptional(node, next, state, isFixed) : compileRepeat(node, next, state);
    case "atomic": {
      const body = compileNode(node.item, (index) => index, state, true);
      return (index) => {
        const end = body(index);
        return end < 0 ? -1 : next(end);
      };
    }
    case "look":
      return node.behind ? compileLookbehind(node, next, state) : compileLookahead(node, next, state);
    case "anchor":
      return compileAnchor(node.at, next, state);
  }
}

/**
 * The code points a match of the node can start with; undefined when it may match the empty text or begins with a lookaround.
 */
export function firstSet(node: Regex): CharacterSet | undefined {
  switch (node.kind) {
    case "set":
      return node.set;
    case "atomic":
      return firstSet(node.item);
    case "repeat":
      return node.min > 0 ? firstSet(node.item) : undefined;
    case "choice": {
      const sets = node.items.map(firstSet);
      return sets.some((set) => set === undefined) ? undefined : CharacterSet.union(sets as CharacterSet[]);
    }
    case "sequence": {
      const sets: CharacterSet[] = [];
      for (const item of node.items) {
        const certain = firstSet(item);
        if (certain !== undefined) return CharacterSet.union([...sets, certain]);
        if (item.kind !== "repeat" || item.min > 0) return undefined;
        const optional = firstSet(item.item);
        if (optional === undefined) return undefined;
        sets.push(optional);
      }
      return undefined;
    }
    case "look":
    case "anchor":
      return undefined;
  }
}

function compileSet(set: CharacterSet, next: MatchStep, state: MatchState): MatchStep {
  return (index) => {
    const codePoint = state.text.codePointAt(index);
    if (codePoint === undefined || !set.has(codePoint)) return -1;
    return next(index + (codePoint > 0xffff ? 2 : 1));
  };
}

/** Tries only the branches whose first character can match; which ones is remembered per code point. */
function compileAlternation(
  branches: readonly Regex[],
  next: MatchStep,
  state: MatchState,
  isFixed: boolean,
): MatchStep {
  const steps = branches.map((branch) => compileNode(branch, next, state, isFixed));
  const firsts = branches.map(firstSet);
  const viable = new Map<number, readonly MatchStep[]>();
  const ascii: (readonly MatchStep[] | undefined)[] = Array.from({ length: 128 });
  const choose = (codePoint: number): readonly MatchStep[] =>
    steps.filter(
      (_, branch) => firsts[branch] === undefined || (codePoint >= 0 && firsts[branch].has(codePoint)),
    );
  const atEnd = choose(-1);
  const lookup = (codePoint: number): readonly MatchStep[] => {
    if (codePoint < 128) return (ascii[codePoint] ??= choose(codePoint));
    let chosen = viable.get(codePoint);
    if (chosen === undefined) {
      chosen = choose(codePoint);
      if (viable.size >= maxRemembered) viable.clear();
      viable.set(codePoint, chosen);
    }
    return chosen;
  };
  return (index) => {
    const codePoint = state.text.codePointAt(index);
    const chosen = codePoint === undefined ? atEnd : lookup(codePoint);
    spend(state, 1);
    for (let branch = 0; branch < chosen.length; branch++) {
      const end = chosen[branch]!(index);
      if (end >= 0) return end;
    }
    return -1;
  };
}

/**
 * Repeats one character class: a scan forward, then steps back one character at a time, with no stack. A start inside
 * a run that failed from an earlier start has only ends that were tried then, so it fails at once: a search over a
 * long run stays linear.
 */
function compileSetRepeat(
  set: CharacterSet,
  bounds: RegexRepeat,
  next: MatchStep,
  state: MatchState,
  isFixed: boolean,
): MatchStep {
  const { min, max, mode } = bounds;
  const takeOne = (index: number): number => {
    const codePoint = state.text.codePointAt(index);
    return codePoint !== undefined && set.has(codePoint) ? index + (codePoint > 0xffff ? 2 : 1) : -1;
  };
  if (mode === "lazy") {
    return (start) => {
      let index = start;
      for (let count = 0; ; count++) {
        if (count >= min) {
          const end = next(index);
          if (end >= 0 || count >= max) return end;
        }
        spend(state, 1);
        index = takeOne(index);
        if (index < 0) return -1;
      }
    };
  }
  const remembers = isFixed && max === Infinity;
  let failedPass = -1;
  let failedFrom = 0;
  let failedTo = 0;
  return (start) => {
    if (failedPass === state.pass && start >= failedFrom && start < failedTo) return -1;
    const { text } = state;
    const length = text.length;
    let index = start;
    let count = 0;
    let shortest = min === 0 ? start : -1;
    while (count < max && index < length) {
      const codePoint = text.codePointAt(index)!;
      if (!set.has(codePoint)) break;
      index += codePoint > 0xffff ? 2 : 1;
      if (++count === min) shortest = index;
    }
    spend(state, count + 1);
    if (shortest < 0) return -1;
    const runEnd = index;
    for (;;) {
      const end = next(index);
      if (end >= 0) return end;
      if (mode === "possessive" || index <= shortest) break;
      index--;
      if ((text.charCodeAt(index) & 0xfc00) === 0xdc00 && (text.charCodeAt(index - 1) & 0xfc00) === 0xd800)
        index--;
      spend(state, 1);
    }
    if (remembers) {
      failedPass = state.pass;
      failedFrom = start;
      failedTo = runEnd;
    }
    return -1;
  };
}

function compilePossessive(node: RegexRepeat, next: MatchStep, state: MatchState): MatchStep {
  const body = compileNode(node.item, (index) => index, state, true);
  return (start) => {
    let index = start;
    for (let count = 0; count < node.max; count++) {
      spend(state, 1);
      const end = body(index);
      if (end < 0) {
        if (count < node.min) return -1;
        break;
      }
      if (end === index) break;
      index = end;
    }
    return next(index);
  };
}

function compileOptional(node: RegexRepeat, next: MatchStep, state: MatchState, isFixed: boolean): MatchStep {
  const present = compileNode(node.item, next, state, isFixed);
  if (node.min === 1) return present;
  const [first, second] = node.mode === "lazy" ? [next, present] : [present, next];
  return (index) => {
    const end = first(index);
    return end >= 0 ? end : second(index);
  };
}

/**
 * Repeats a group. `count` and `start` describe the loop being tried; every call leaves them as it found them,
 * so that backtracking into an earlier turn sees that turn's values.
 */
function compileRepeat(node: RegexRepeat, next: MatchStep, state: MatchState): MatchStep {
  const { min, max, mode } = node;
  let count = 0;
  let start = -1;
  const iterate: MatchStep = (index) => {
    const turns = count;
    const previous = start;
    spend(state, 1);
    const again = (): number => {
      if (turns >= max || index === previous) return -1;
      count = turns + 1;
      start = index;
      const end = body(index);
      count = turns;
      start = previous;
      return end;
    };
    const leave = (): number => (turns < min && index !== previous ? -1 : next(index));
    if (mode === "lazy") {
      const end = leave();
      return end >= 0 ? end : again();
    }
    const end = again();
    return end >= 0 ? end : leave();
  };
  const body = compileNode(node.item, iterate, state, false);
  return (index) => {
    const outerCount = count;
    const outerStart = start;
    count = 0;
    start = -1;
    try {
      return iterate(index);
    } finally {
      count = outerCount;
      start = outerStart;
    }
  };
}

function compileLookahead(node: RegexLook, next: MatchStep, state: MatchState): MatchStep {
  const body = compileNode(node.item, (index) => index, state, true);
  return (index) => (body(index) >= 0 === node.negative ? -1 : next(index));
}

/** Each alternative of a lookbehind must have one fixed length in code points. */
function compileLookbehind(node: RegexLook, next: MatchStep, state: MatchState): MatchStep {
  const branches = node.item.kind === "choice" ? node.item.items : [node.item];
  let target = -1;
  const tries = branches.map((branch) => ({
    width: fixedWidth(branch),
    step: compileNode(branch, (index) => (index === target ? index : -1), state, false),
  }));
  const matches = (index: number): boolean =>
    tries.some(({ width, step }) => {
      let from = index;
      for (let count = 0; count < width; count++) {
        if (from <= 0) return false;
        from -= from > 1 && (state.text.charCodeAt(from - 1) & 0xfc00) === 0xdc00 ? 2 : 1;
      }
      const outer = target;
      target = index;
      const end = step(from);
      target = outer;
      return end >= 0;
    });
  return (index) => (matches(index) === node.negative ? -1 : next(index));
}

function fixedWidth(node: Regex): number {
  const varying = new OctavoError(
    "artifact_unsupported",
    "A tokenizer pattern has a lookbehind of varying length, which is not supported.",
  );
  switch (node.kind) {
    case "set":
      return 1;
    case "sequence":
      return node.items.reduce((width, item) => width + fixedWidth(item), 0);
    case "choice": {
      const widths = node.items.map(fixedWidth);
      if (widths.some((width) => width !== widths[0])) throw varying;
      return widths[0] ?? 0;
    }
    case "repeat":
      if (node.min !== node.max) throw varying;
      return node.min * fixedWidth(node.item);
    case "atomic":
      return fixedWidth(node.item);
    case "look":
    case "anchor":
      return 0;
  }
}

function compileAnchor(at: Anchor, next: MatchStep, state: MatchState): MatchStep {
  const isWordAt = (index: number): boolean => {
    const codePoint = state.text.codePointAt(index);
    return codePoint !== undefined && wordCharacters.has(codePoint);
  };
  const isWordBefore = (index: number): boolean => {
    if (index === 0) return false;
    const isPair = index > 1 && (state.text.charCodeAt(index - 1) & 0xfc00) === 0xdc00;
    return isWordAt(index - (isPair ? 2 : 1));
  };
  const holds: Record<Anchor, (index: number) => boolean> = {
    lineStart: (index) => index === 0 || (state.text[index - 1] === "\n" && index < state.text.length),
    lineEnd: (index) => index === state.text.length || state.text[index] === "\n",
    textStart: (index) => index === 0,
    textEnd: (index) => index === state.text.length,
    textEndOrLastNewline: (index) =>
      index === state.text.length || (index === state.text.length - 1 && state.text[index] === "\n"),
    wordBoundary: (index) => isWordBefore(index) !== isWordAt(index),
    notWordBoundary: (index) => isWordBefore(index) === isWordAt(index),
  };
  const check = holds[at];
  return (index) => (check(index) ? next(index) : -1);
}
