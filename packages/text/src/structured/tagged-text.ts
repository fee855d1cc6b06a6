import { OctavoError } from "@octavo/protocol/errors";
import type { GrammarSpec, TagSpec } from "./grammar.js";
import { literalNode } from "./literal.js";
import { specialMark } from "./automaton/vocabulary.js";
import { type AutomatonTable, choice, type Node, sequence } from "./node.js";
import type { RuleBuilder } from "./rule-builder.js";

type TaggedText = Extract<GrammarSpec, { kind: "tagged_text" }>;

const maxTags = 10_000;
const maxTriggers = 256;
const maxTriggerLength = 1024;
const encoder = new TextEncoder();

/** Free text, and tags that begin where a trigger does. */
export function taggedText(
  spec: TaggedText,
  rules: RuleBuilder,
  special: ReadonlySet<string>,
  compile: (spec: GrammarSpec) => Node,
): Node {
  const { triggers, tags } = spec;
  if (triggers.length === 0 || triggers.length > maxTriggers)
    throw invalid("triggers", `needs 1 to ${maxTriggers} triggers, got ${triggers.length}`);
  if (tags.length === 0 || tags.length > maxTags)
    throw invalid("structures", `needs 1 to ${maxTags} structures, got ${tags.length}`);
  const tooLong = triggers.find((trigger) => trigger === "" || trigger.length > maxTriggerLength);
  if (tooLong !== undefined)
    throw invalid("triggers", `needs triggers of 1 to ${maxTriggerLength} characters`);
  const whole = rules.reserve("tagged_text");
  const again: Node = { op: "rule", rule: whole };
  const machine = new TriggerMachine(triggers, rules, special);
  const begunBy = tags.map(({ begin }) => triggerOf(begin, triggers));
  const rests = triggers.map((trigger) =>
    choice(
      ...tags.flatMap((tag, index) =>
        begunBy[index] === trigger ? [afterTrigger(tag, trigger, special, compile)] : [],
      ),
    ),
  );
  const stray = tags.find((_, index) => begunBy[index] === undefined);
  if (stray !== undefined)
    throw invalid(
      "structures",
      `has a begin, ${JSON.stringify(stray.begin.slice(0, 60))}, that starts with no trigger`,
    );
  const then = spec.stopAfterFirst === true ? sequence() : again;
  const tagged = triggers.map((_, index) => sequence(machine.upTo(index), rests[index]!, then));
  rules.define(whole, choice(machine.without, ...tagged));
  if (spec.atLeastOne !== true) return again;
  return choice(...tagged);
}

/** Free text that ends with the first appearance of `end`. */
export function textUntil(end: string, rules: RuleBuilder, special: ReadonlySet<string>): Node {
  if (end === "" || end.length > maxTriggerLength)
    throw invalid("until", `needs an end of 1 to ${maxTriggerLength} characters`);
  return new TriggerMachine([end], rules, special).upTo(0);
}

function triggerOf(begin: string, triggers: readonly string[]): string | undefined {
  let best: string | undefined;
  // The shortest one, as it is complete first.
  for (const trigger of triggers) {
    if (begin.startsWith(trigger) && (best === undefined || trigger.length < best.length)) best = trigger;
  }
  return best;
}

function afterTrigger(
  tag: TagSpec,
  trigger: string,
  special: ReadonlySet<string>,
  compile: (spec: GrammarSpec) => Node,
): Node {
  return sequence(
    literalNode(tag.begin.slice(trigger.length), special),
    compile(tag.content),
    literalNode(tag.end, special),
  );
}

interface TriggerState {
  readonly next: Map<number, number>;
  fail: number;
  /** Trigger that is complete here. */
  trigger: number | undefined;
}

/** Finds the first trigger in a text (Aho and Corasick 1975), special tokens by their marked form too. */
class TriggerMachine {
  readonly #states: TriggerState[] = [{ next: new Map(), fail: 0, trigger: undefined }];
  readonly #moves: Int32Array;
  readonly #rules: RuleBuilder;
  readonly #key: string;

  constructor(triggers: readonly string[], rules: RuleBuilder, special: ReadonlySet<string>) {
    this.#rules = rules;
    this.#key = `triggers:${JSON.stringify(triggers)}`;
    for (const [index, trigger] of triggers.entries()) {
      this.#add(encoder.encode(trigger), index);
      if (special.has(trigger)) this.#add(Uint8Array.of(specialMark, ...encoder.encode(trigger)), index);
    }
    rules.countTableStates(this.#states.length);
    this.#moves = this.#complete();
  }

  /** Text without any trigger. */
  get without(): Node {
    return this.#automaton(undefined);
  }

  /** Text that ends with its first trigger, which is this one. */
  upTo(trigger: number): Node {
    return this.#automaton(trigger);
  }

  #automaton(accepted: number | undefined): Node {
    const numStates = this.#states.length;
    const key = `${this.#key}:${accepted ?? "none"}`;
    const table = this.#rules.table(key, numStates, () => this.#table(accepted));
    return { op: "automaton", table, state: 0 };
  }

  #table(accepted: number | undefined): AutomatonTable {
    const numStates = this.#states.length;
    const next = new Int32Array(numStates * 256).fill(-1);
    const accepts = new Uint8Array(numStates);
    for (const [index, state] of this.#states.entries()) {
      accepts[index] = (accepted === undefined ? state.trigger === undefined : state.trigger === accepted)
        ? 1
        : 0;
      if (state.trigger !== undefined) continue;
      for (let byte = 0; byte < 256; byte += 1) {
        const to = this.#moves[index * 256 + byte]!;
        if (to < 0) continue;
        const { trigger } = this.#states[to]!;
        if (trigger === undefined || trigger === accepted) next[index * 256 + byte] = to;
      }
    }
    return { next, accepts };
  }

  #add(bytes: Uint8Array, trigger: number): void {
    let place = 0;
    for (const byte of bytes) {
      const state = this.#states[place]!;
      if (state.trigger !== undefined) return;
      let to = state.next.get(byte);
      if (to === undefined) {
        to = this.#states.push({ next: new Map(), fail: 0, trigger: undefined }) - 1;
        state.next.set(byte, to);
      }
      place = to;
    }
    this.#states[place]!.trigger ??= trigger;
  }

  #complete(): Int32Array {
    const moves = new Int32Array(this.#states.length * 256).fill(-1);
    const queue: number[] = [0];
    for (let at = 0; at < queue.length; at += 1) {
      const index = queue[at]!;
      const state = this.#states[index]!;
      for (let byte = 0; byte < 256; byte += 1) {
        const own = state.next.get(byte);
        const fallback = index === 0 ? 0 : moves[state.fail * 256 + byte]!;
        // Special tokens other than triggers cannot be part of free text.
        if (own === undefined) moves[index * 256 + byte] = byte === specialMark ? -1 : fallback;
        else {
          moves[index * 256 + byte] = own;
          const target = this.#states[own]!;
          target.fail = index === 0 ? 0 : Math.max(0, fallback);
          target.trigger ??= this.#states[target.fail]!.trigger;
          queue.push(own);
        }
      }
    }
    return moves;
  }
}

function invalid(part: string, what: string): OctavoError {
  return new OctavoError("invalid_request", `The structural tag ${what}.`, { param: part });
}
