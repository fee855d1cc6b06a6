import { OctavoError } from "@octavo/protocol";
import { codeInjectionDetectors, promptInjectionDetectors } from "@octavo/text/sensitive/attacks";
import { partialPattern } from "@octavo/text/sensitive/partial-pattern";
import type { PatternDetector } from "@octavo/text/sensitive/detect";
import { personalDataDetectors } from "@octavo/text/sensitive/personal-data";
import { secretDetectors } from "@octavo/text/sensitive/secrets";
import {
  type StreamPattern,
  type StreamPatterns,
  streamPatterns,
} from "@octavo/text/sensitive/stream-scanner";
import { RE2JS } from "re2js";
import type { FindingRule } from "./guardrail-config.js";

const tables = {
  pii: personalDataDetectors,
  secrets: secretDetectors,
  injection: promptInjectionDetectors,
  code_injection: codeInjectionDetectors,
} as const;

/** What a rule looks for. Throws `invalid_option` for kinds that are none and patterns that do not compile. */
export function patternsOf(rule: FindingRule): StreamPatterns {
  switch (rule.check) {
    case "blocklist":
      return streamPatterns([blocklistDetector(rule.words)]);
    case "pattern":
      return mergePatterns(rule.patterns.map((source) => linearPattern(source, rule.ignore_case, rule.name)));
    case "pii":
    case "secrets":
    case "injection":
    case "code_injection":
      return streamPatterns(chosen(tables[rule.check], rule));
  }
}

export function mergePatterns(parts: readonly StreamPatterns[]): StreamPatterns {
  return { patterns: parts.flatMap(({ patterns }) => patterns), open: parts.flatMap(({ open }) => open) };
}

function chosen(
  detectors: readonly PatternDetector[],
  { name, kinds }: Extract<FindingRule, { check: keyof typeof tables }>,
): readonly PatternDetector[] {
  const known = new Set(detectors.map(({ kind }) => kind));
  const unknown = kinds?.find((kind) => !known.has(kind));
  if (unknown !== undefined) {
    throw new OctavoError(
      "invalid_option",
      `guardrails: rule ${name} names the kind ${unknown}; expected some of ${[...known].join(", ")}.`,
      { param: "kinds" },
    );
  }
  return kinds === undefined ? detectors : detectors.filter(({ kind }) => kinds.includes(kind));
}

/** A tree of the words' characters, so that each place of a text is read once whatever their number. */
type Tree = Map<string, Tree>;

const wordEnd = "";

function blocklistDetector(words: readonly string[]): PatternDetector {
  const root: Tree = new Map();
  for (const word of words) {
    let node = root;
    for (const character of word.trim().toLowerCase().split(/\s+/).join(" ")) {
      const next = node.get(character) ?? new Map<string, Tree>();
      node.set(character, next);
      node = next;
    }
    node.set(wordEnd, new Map());
  }
  const source = `(?<![\\p{L}\\p{N}_])${branchSource(root)}(?![\\p{L}\\p{N}_])`;
  return { kind: "blocklist", pattern: new RegExp(source, "giu") };
}

/** Longer words first: the end of a word is the last choice. */
function branchSource(node: Tree): string {
  const branches = [...node]
    .toSorted(([a], [b]) => Number(a === wordEnd) - Number(b === wordEnd))
    .map(([character, below]) => characterSource(character) + (below.size === 0 ? "" : branchSource(below)));
  return branches.length === 1 ? branches[0]! : `(?:${branches.join("|")})`;
}

function characterSource(character: string): string {
  if (character === " ") return "\\s{1,8}";
  return character.replace(/[\\^$.*+?()[\]{}|/]/, "\\$&");
}

/** One of the configuration's patterns, matched by RE2's algorithm. */
function linearPattern(source: string, ignoresCase: boolean, rule: string): StreamPatterns {
  const flags = RE2JS.MULTILINE | (ignoresCase ? RE2JS.CASE_INSENSITIVE : 0);
  const compile = (text: string): RE2JS => {
    try {
      return RE2JS.compile(text, flags);
    } catch (cause) {
      const { message } = cause as Error;
      throw new OctavoError("invalid_option", `guardrails: rule ${rule}: ${source}: ${message}`, {
        param: "patterns",
        cause,
      });
    }
  };
  const whole = compile(source);
  const partial = compile(partialPattern(source, "\\z").replaceAll("(?!)", "[^\\x{0}-\\x{10FFFF}]"));
  const first = (pattern: RE2JS, text: string, from: number): { start: number; end: number } | undefined => {
    const matcher = pattern.matcher(text);
    if (!matcher.find(from)) return undefined;
    return { start: matcher.start(), end: matcher.end() };
  };
  const pattern: StreamPattern = {
    detector: { kind: "pattern", pattern: /(?!)/g },
    find: (text, from) => (from > text.length ? undefined : first(whole, text, from)),
  };
  return {
    patterns: [pattern],
    open: [(text, from) => (from > text.length ? undefined : first(partial, text, from)?.start)],
  };
}
