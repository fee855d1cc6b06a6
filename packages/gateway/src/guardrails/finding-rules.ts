import { OctavoError } from "@octavo/protocol";
import { unmasked } from "@octavo/text/sensitive/attacks";
import { type ScannedPiece, StreamScanner, type StreamPatterns } from "@octavo/text/sensitive/stream-scanner";
import type { GuardrailRecord, LedgerEntry } from "../exchange/ledger-entry.js";
import type { FindingRule, GuardrailRule } from "./guardrail-config.js";
import { mergePatterns, patternsOf } from "./rule-patterns.js";

/** A rule with all that it looks for. */
export interface CompiledFindingRule {
  readonly rule: FindingRule;
  readonly patterns: StreamPatterns;
}

type Direction = GuardrailRecord["direction"];

/** Rules that are followed together: findings of the one that is listed first count where they begin together. */
export interface RuleGroup {
  readonly patterns: StreamPatterns;
  /** The rule of each pattern. */
  readonly rules: readonly FindingRule[];
  readonly mostHeld: number;
  readonly parts: readonly CompiledFindingRule[];
}

export function compileFindingRules(rules: readonly FindingRule[]): CompiledFindingRule[] {
  return rules.map((rule) => ({ rule, patterns: patternsOf(rule) }));
}

export function groupOf(compiled: readonly CompiledFindingRule[]): RuleGroup {
  return {
    parts: compiled,
    patterns: mergePatterns(compiled.map(({ patterns }) => patterns)),
    rules: compiled.flatMap(({ rule, patterns }) => patterns.patterns.map(() => rule)),
    mostHeld: Math.min(
      Infinity,
      ...compiled.map(({ rule }) => (rule.check === "pattern" ? rule.max_held_characters : Infinity)),
    ),
  };
}

/** One text, whole or in pieces, as the rules of a group leave it. Throws `guardrail_blocked` at a finding that blocks. */
export class RuledText {
  #group: RuleGroup;
  #scanner: StreamScanner;
  readonly #direction: Direction;
  readonly #ledger: LedgerEntry;

  constructor(group: RuleGroup, direction: Direction, ledger: LedgerEntry) {
    this.#group = group;
    this.#scanner = new StreamScanner(group.patterns);
    this.#direction = direction;
    this.#ledger = ledger;
  }

  push(text: string): string {
    const passed = this.#apply(this.#scanner.push(text));
    return this.#scanner.held > this.#group.mostHeld ? passed + this.#giveUp() : passed;
  }

  /** Goes on without the rules for which too much text waits, where they fail open. */
  #giveUp(): string {
    const isWaiting = ({ rule }: CompiledFindingRule): boolean =>
      rule.check === "pattern" && rule.max_held_characters < this.#scanner.held;
    for (const { rule } of this.#group.parts.filter(isWaiting))
      ruleFailed(rule, this.#direction, this.#ledger, "more text waits for a match to end than is allowed");
    this.#group = groupOf(this.#group.parts.filter((part) => !isWaiting(part)));
    const waiting = this.#scanner.waiting;
    this.#scanner = new StreamScanner(this.#group.patterns);
    return this.push(waiting);
  }

  /** `last` is the last piece, or the whole. */
  end(last = ""): string {
    return this.#apply(this.#scanner.end(last));
  }

  #apply(pieces: readonly ScannedPiece[]): string {
    let passed = "";
    for (const { text, found } of pieces) {
      if (found === undefined) {
        passed += text;
        continue;
      }
      const rule = this.#group.rules[found]!;
      const { kind } = this.#group.patterns.patterns[found]!.detector;
      noteRule(this.#ledger, rule, this.#direction, rule.action, kind);
      if (rule.action === "block") throw blocked(rule, this.#direction, kind);
      passed += rule.action === "redact" ? `[${kind}]` : text;
    }
    return passed;
  }
}

/** A whole text as the rules leave it. Attacks are looked for in what a model would read, whatever hides it from people. */
export function ruledWhole(
  group: RuleGroup,
  direction: Direction,
  ledger: LedgerEntry,
  text: string,
): string {
  return new RuledText(group, direction, ledger).end(text);
}

/** Judges a copy without masks: only blocks and flags, since places in the copy are not places in the text. */
export function judgeUnmasked(
  group: RuleGroup,
  direction: Direction,
  ledger: LedgerEntry,
  text: string,
): void {
  const plain = unmasked(text);
  if (plain !== text) ruledWhole(group, direction, ledger, plain);
}

/** One record per rule, direction, action and kind: how often is not said, so that answers cannot flood the ledger. */
export function noteRule(
  ledger: LedgerEntry,
  { name }: GuardrailRule,
  direction: Direction,
  action: GuardrailRecord["action"],
  detail: string | undefined,
): void {
  const isKnown = ledger.guardrails.some(
    (known) =>
      known.rule === name &&
      known.direction === direction &&
      known.action === action &&
      known.detail === detail,
  );
  if (!isKnown) ledger.guardrails.push({ rule: name, direction, action, detail });
}

export function blocked({ name }: GuardrailRule, direction: Direction, what: string): OctavoError {
  return new OctavoError("guardrail_blocked", `The ${direction} was blocked by the rule ${name}: ${what}.`);
}

/** A rule that could not decide: ends the call where it fails closed. */
export function ruleFailed(
  rule: GuardrailRule,
  direction: Direction,
  ledger: LedgerEntry,
  reason: string,
  cause?: unknown,
): void {
  noteRule(ledger, rule, direction, "failed", reason);
  if (rule.on_failure === "open") return;
  throw new OctavoError(
    "guardrail_unavailable",
    `The rule ${rule.name} could not be evaluated, and lets nothing through then: ${reason}.`,
    { cause },
  );
}
