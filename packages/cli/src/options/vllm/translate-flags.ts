import { OctavoError } from "@octavo/protocol/errors";
import type { OptionRows } from "@octavo/protocol/options";
import { flagNames, oppositeOf } from "../flag-names.js";
import type { Translation } from "../option-sources.js";
import { defaultValues, foreignFlags, shortFlags } from "./foreign-flags.js";

/** How many values a flag takes; `of`: the ones with which a foreign flag has no effect. */
interface ForeignFlag {
  readonly name: string;
  readonly takes: "nothing" | "one" | "several";
  readonly of: readonly string[] | undefined;
  readonly effect: "none" | "refused";
  readonly why: string;
  readonly isOlder: boolean;
}

/** The table of `foreign-flags.ts`, by name. */
export const foreignFlagsByName: ReadonlyMap<string, ForeignFlag> = new Map(
  foreignFlags.flatMap(({ flags, effect, why, isOlder = false }) =>
    flags.split(/\s+/).map((written): [string, ForeignFlag] => {
      const [name = "", value] = written.split(/=(.*)/s);
      const takes = value === undefined ? "nothing" : value === "*" ? "several" : "one";
      const of = value === undefined || value === "" || value === "*" ? undefined : value.split("|");
      return [name, { name, takes, of, effect, why, isOlder }];
    }),
  ),
);

/** vLLM's other way to write a negation: `--disable-x` for `--no-enable-x`, and the reverse. */
function pairedName(name: string): string | undefined {
  const [, word, rest] = /^--(enable|disable)-(.+)$/.exec(name) ?? [];
  return word === undefined ? undefined : `--no-${word === "enable" ? "disable" : "enable"}-${rest}`;
}

/**
 * Reads a command line as `vllm serve` does: underscores for dashes, short names, `--json-flag.field value`, negated switches; and vLLM's
 * flags that Octavo does not have.
 * @throws OctavoError `invalid_option` for a flag that asks for something that is not done, with the reason and what does the same
 */
export function translateFlags(rows: OptionRows, args: readonly string[]): Translation {
  const own = new Set(Object.values(rows).flatMap(flagNames));
  const translated: string[] = [];
  const notes: string[] = [];
  const objects = new Map<string, Record<string, unknown>>();
  const end = args.includes("--") ? args.indexOf("--") : args.length;
  for (let at = 0; at < end; at += 1) {
    const arg = args[at] ?? "";
    const [, written, inline] = /^(--?[A-Za-z][^=\s]*)(?:=(.*))?$/s.exec(arg) ?? [];
    if (written === undefined) {
      translated.push(arg);
      continue;
    }
    const [base = "", ...path] = longName(written).split(".");
    const name = own.has(base) || foreignFlagsByName.has(base) ? base : (pairedName(base) ?? base);
    const following = valuesAfter(args, at, end);
    if (path.length > 0 && own.has(name)) {
      setField(objects, name, path, inline ?? following[0] ?? "");
      at += inline === undefined ? 1 : 0;
    } else if (own.has(name)) {
      const value = inline ?? following[0];
      if (value !== undefined && defaultValues[name]?.includes(value) === true)
        at += inline === undefined ? 1 : 0;
      else translated.push(inline === undefined ? name : `${name}=${inline}`);
    } else {
      const foreign = foreignFlagsByName.get(name);
      const opposite = foreignFlagsByName.get(oppositeOf(name));
      if (foreign === undefined && opposite === undefined) translated.push(arg);
      else if (foreign !== undefined) {
        const values = inline === undefined ? following.slice(0, numValues(foreign)) : [inline];
        if (path.length === 0) checkForeign(foreign, values[0]);
        else if (foreign.effect === "refused") throw refusal(foreign);
        notes.push(`${written} has no effect: ${foreign.why}`);
        if (inline === undefined) at += values.length;
      } else if (opposite?.effect === "none") notes.push(`${written} has no effect: ${opposite.why}`);
      // the opposite of what is refused says what holds anyway
    }
  }
  for (const [name, fields] of objects) translated.push(`${name}=${JSON.stringify(fields)}`);
  return { args: [...translated, ...args.slice(end)], notes };
}

function longName(written: string): string {
  const short = shortFlags[written] ?? (/^-O\d?$/.test(written) ? "--optimization-level" : undefined);
  if (short !== undefined) return short;
  if (!written.startsWith("--")) return written;
  const [name = "", ...path] = written.split(".");
  return [name.replaceAll("_", "-"), ...path].join(".");
}

function numValues({ takes }: ForeignFlag): number {
  return takes === "nothing" ? 0 : takes === "one" ? 1 : Number.POSITIVE_INFINITY;
}

/** The arguments up to the next flag. Negative numbers are values. */
function valuesAfter(args: readonly string[], at: number, end: number): readonly string[] {
  const rest = args.slice(at + 1, end);
  const next = rest.findIndex((arg) => /^--?[A-Za-z]/.test(arg));
  return next === -1 ? rest : rest.slice(0, next);
}

function checkForeign(flag: ForeignFlag, value: string | undefined): void {
  if (flag.takes !== "nothing" && value === undefined)
    throw new OctavoError("invalid_option", `${flag.name} needs a value`, { param: flag.name });
  const holds = flag.of?.includes(value ?? "") ?? flag.effect === "none";
  if (!holds) throw refusal(flag, value);
}

function refusal({ name, of, why }: ForeignFlag, value?: string): OctavoError {
  const given = of === undefined || value === undefined ? name : `${name} ${value}`;
  return new OctavoError("invalid_option", `${given} is vLLM's, and not Octavo's: ${why}`, { param: name });
}

/** `--flag.a.b value`: the value is JSON where it can be. */
function setField(
  objects: Map<string, Record<string, unknown>>,
  name: string,
  path: readonly string[],
  text: string,
): void {
  const whole = objects.get(name) ?? {};
  objects.set(name, whole);
  const last = path.at(-1) ?? "";
  let place = whole;
  for (const key of path.slice(0, -1)) {
    const inner = Object.hasOwn(place, key) ? place[key] : undefined;
    const next = typeof inner === "object" && inner !== null ? (inner as Record<string, unknown>) : {};
    place[key] = next;
    place = next;
  }
  place[last] = jsonOrText(text);
}

function jsonOrText(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
