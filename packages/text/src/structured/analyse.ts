import { OctavoError } from "@octavo/protocol/errors";
import { byteClasses } from "./automaton/byte-classes.js";
import { spend } from "../work.js";
import { type Node, nothing, type RuleAnalysis, type RuleSet } from "./node.js";

export function analyseRules(rules: readonly Node[]): RuleAnalysis {
  return { nullable: nullableRules(rules), ...byteClasses(rules) };
}

/** Which rules match the empty text. */
function nullableRules(rules: readonly Node[]): boolean[] {
  const nullable = rules.map(() => false);
  untilStable(rules, (node, index) => {
    if (nullable[index] || !isNullable(node, nullable)) return false;
    nullable[index] = true;
    return true;
  });
  return nullable;
}

function isNullable(node: Node, nullable: readonly boolean[]): boolean {
  spend(1 / 8);
  switch (node.op) {
    case "bytes":
      return false;
    case "text":
      return node.bytes.length === 0;
    case "sequence":
    case "all":
      return node.items.every((item) => isNullable(item, nullable));
    case "choice":
      return node.items.some((item) => isNullable(item, nullable));
    case "repeat":
      return node.min === 0 || isNullable(node.item, nullable);
    case "rule":
      return nullable[node.rule]!;
    case "not":
      return !isNullable(node.item, nullable);
    case "automaton":
      return node.table.accepts[node.state] === 1;
  }
}

/** Replaces what can match nothing, such as a rule that always needs itself. Intersections are assumed to match something. */
export function pruneRules(set: RuleSet): RuleSet {
  const { rules } = set;
  const productive = rules.map(() => false);
  const matches = (node: Node): boolean => {
    spend(1 / 8);
    switch (node.op) {
      case "sequence":
        return node.items.every(matches);
      case "choice":
        return node.items.some(matches);
      case "repeat":
        return node.min === 0 || matches(node.item);
      case "rule":
        return productive[node.rule]!;
      case "bytes":
      case "text":
      case "all":
      case "not":
      case "automaton":
        return true;
    }
  };
  untilStable(rules, (node, index) => {
    if (productive[index] || !matches(node)) return false;
    productive[index] = true;
    return true;
  });
  const prune = (node: Node): Node => {
    if (!matches(node)) return nothing;
    if (node.op === "sequence" || node.op === "choice") return { ...node, items: node.items.map(prune) };
    if (node.op === "repeat") return { ...node, item: prune(node.item) };
    return node;
  };
  return productive.every(Boolean) ? set : { ...set, rules: rules.map(prune) };
}

/** Throws `invalid_request` when a rule can begin with itself before any byte is read. */
export function checkLeftRecursion({ rules, names }: RuleSet): void {
  const nullable = nullableRules(rules);
  const starts = rules.map((node) => firstRules(node, nullable));
  const state = new Uint8Array(rules.length);
  for (let origin = 0; origin < rules.length; origin += 1) {
    if (state[origin] !== 0) continue;
    const path = [{ rule: origin, next: starts[origin]!.values() }];
    state[origin] = 1;
    for (let place = path.at(-1); place !== undefined; place = path.at(-1)) {
      const { done, value } = place.next.next();
      if (done === true) {
        state[place.rule] = 2;
        path.pop();
      } else if (state[value] === 1) {
        throw new OctavoError(
          "invalid_request",
          `The grammar's rule ${JSON.stringify(names[value]!.slice(0, 100))} can begin with itself (left recursion through other ` +
            "rules or optional parts); rewrite it as a repetition.",
        );
      } else if (state[value] === 0) {
        state[value] = 1;
        path.push({ rule: value, next: starts[value]!.values() });
      }
    }
  }
}

function firstRules(node: Node, nullable: readonly boolean[]): Set<number> {
  const found = new Set<number>();
  const visit = (part: Node): void => {
    if (part.op === "rule") found.add(part.rule);
    else if (part.op === "choice") part.items.forEach(visit);
    else if (part.op === "repeat") visit(part.item);
    else if (part.op === "sequence") {
      for (const item of part.items) {
        visit(item);
        if (!isNullable(item, nullable)) return;
      }
    }
  };
  visit(node);
  return found;
}

function untilStable(rules: readonly Node[], update: (node: Node, index: number) => boolean): void {
  for (let changed = true; changed;) {
    changed = false;
    // Front ends define a rule after the rules that refer to it, so one pass backwards settles most of them.
    for (let index = rules.length - 1; index >= 0; index -= 1)
      changed = update(rules[index]!, index) || changed;
  }
}
