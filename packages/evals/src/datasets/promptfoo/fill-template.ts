import { isRecord } from "@octavo/protocol";

/** What templates are filled in with. */
export type Variables = Readonly<Record<string, unknown>>;

/** A template that needs more than names filled in; the message says what. */
export class TemplateProblem extends SyntaxError {}

/**
 * Fills `{{name}}` and `{{name.part}}` in as nunjucks would; objects become JSON.
 * @param onMissing told of names without a value, which are left out
 * @throws TemplateProblem for filters, calls, tags and comments of nunjucks
 */
export function fillTemplate(
  template: string,
  variables: Variables,
  onMissing: (name: string) => void,
): string {
  const tag = /\{%[^%]{0,40}|\{#/.exec(template);
  if (tag !== null) throw new TemplateProblem(`uses ${tag[0].trim()}, but only {{names}} are filled in`);
  return template.replaceAll(/\{\{-?([^{}]*?)-?\}\}/g, (_whole, expression: string) => {
    const name = expression.trim();
    if (!/^[A-Za-z_$][\w$-]*(?:\.[\w$-]+|\[\d+\])*$/.test(name)) {
      throw new TemplateProblem(
        `has {{ ${name.slice(0, 60)} }}, but only names and their parts are filled in`,
      );
    }
    const value = lookUp(name, variables);
    if (value === undefined || value === null) {
      onMissing(name);
      return "";
    }
    return typeof value === "string" ? value : JSON.stringify(value);
  });
}

function lookUp(name: string, variables: Variables): unknown {
  let value: unknown = variables;
  for (const part of name.split(/[.[\]]+/).filter((one) => one !== "")) {
    if (Array.isArray(value)) value = value[Number(part)];
    else if (isRecord(value) && Object.hasOwn(value, part)) value = value[part];
    else return undefined;
  }
  return value;
}

/** Every text in a value filled in. */
export function fillDeep(value: unknown, fill: (text: string) => string): unknown {
  if (typeof value === "string") return fill(value);
  if (Array.isArray(value)) return value.map((one) => fillDeep(one, fill));
  if (isRecord(value)) {
    return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, fillDeep(one, fill)]));
  }
  return value;
}

/** Combinations of the values of variables that are lists, as promptfoo makes a test of each. */
export function combinations(variables: Variables): Variables[] {
  let combined: Variables[] = [variables];
  for (const [name, value] of Object.entries(variables)) {
    if (!Array.isArray(value)) continue;
    combined = combined.flatMap((one) => value.map((item: unknown) => ({ ...one, [name]: item })));
    if (combined.length > maxCombinations) {
      throw new TemplateProblem(`has more than ${maxCombinations} combinations of its variables' values`);
    }
  }
  return combined;
}

const maxCombinations = 100_000;
