import { spend } from "../../work.js";
import { OctavoError } from "@octavo/protocol/errors";
import type { JsonObject, JsonValue } from "../grammar.js";
import { allKindsIn, type Conjunction, hasChoice, type SchemaCombiner } from "./conjunction.js";
import { areDisjoint } from "./disjoint.js";
import { checkKeywords, isObject, type Located, schemaList } from "./keywords.js";
import { dependencies, Negation, withoutMember } from "./negation.js";
import { References } from "./references.js";
import { restrictionOf } from "./restriction.js";
import { pathOf, schemaError } from "./schema-error.js";

/** Most combinations of branches of one value, and most steps to find them. */
const maxBranches = 1024;
const maxSteps = 8 * maxBranches;
const maxConjuncts = 256;

/** Keywords that apply other schemas to the same value without a choice; resolved first. */
const inPlace = [
  "$ref",
  "$dynamicRef",
  "$recursiveRef",
  "allOf",
  "not",
  "if",
  "then",
  "else",
  "dependentRequired",
  "dependentSchemas",
  "dependencies",
] as const;

/** Resolves the keywords that combine schemas. */
export class Combinations implements SchemaCombiner {
  readonly references: References;
  readonly #negation: Negation;
  /** Always the same object, as rules are shared by the identity of schemas. */
  readonly #without = new Map<string, Map<JsonObject, JsonObject>>();
  readonly #made = new Map<JsonObject, JsonValue[]>();

  constructor(root: JsonValue) {
    this.references = new References(root);
    this.#negation = new Negation((located) => this.references.resolve(located));
  }

  /** Schemas as given, `true` left out; undefined when one is `false`. `parent` is the schema that applies them to its own value. */
  conjunction(schemas: readonly (readonly [JsonValue, string])[], parent?: Located): Conjunction | undefined {
    const within =
      parent === undefined ? undefined : [...(parent.within ?? []), parent.origin ?? parent.schema];
    const result: Located[] = [];
    for (const [schema, path] of schemas) {
      if (schema === false) return undefined;
      if (schema === true) continue;
      if (!isObject(schema)) throw schemaError(path, "must be an object, true or false");
      result.push({ schema, path, ...(within !== undefined && { within }) });
    }
    return result;
  }

  /** The negation of a schema: always the same object. */
  not(schema: JsonValue): JsonValue {
    return this.#negation.not(schema);
  }

  /** Each result is a conjunction without any of the combining keywords; a value satisfies at least one of them. */
  branches(conjunction: Conjunction): Conjunction[] {
    const done: Conjunction[] = [];
    const pending: Conjunction[] = [conjunction];
    let numSteps = 0;
    for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
      const flat = this.flatten(next);
      if (flat === undefined) continue;
      const open = flat.find(hasChoice);
      if (open === undefined) {
        done.push(flat);
        continue;
      }
      const keyword = open.schema["anyOf"] === undefined ? "oneOf" : "anyOf";
      const others = flat.map((located) =>
        located === open
          ? { ...open, schema: this.#stripped(open.schema, [keyword]), origin: open.origin ?? open.schema }
          : located,
      );
      const branches = this.#options(open, keyword)
        .filter((option) => option !== undefined)
        .map((option) => [...others, ...option])
        .filter((branch) => allKindsIn(branch) !== 0);
      numSteps += 1;
      spend(branches.length * (1 + others.length));
      if (done.length + pending.length + branches.length > maxBranches || numSteps > maxSteps)
        throw schemaError(pathOf(open.path, keyword), `makes more than ${maxBranches} combinations`);
      // Popped from the end, so that the first option is tried first.
      pending.push(...branches.toReversed());
    }
    return done;
  }

  /** The conjunction with everything but choices resolved; undefined when no value satisfies it. */
  flatten(conjunction: Conjunction): Conjunction | undefined {
    const result = new Map<JsonObject, Located>();
    const pending = [...conjunction].toReversed();
    const seen = new Set<JsonObject>();
    for (let located = pending.pop(); located !== undefined; located = pending.pop()) {
      if (seen.has(located.schema)) continue;
      seen.add(located.schema);
      spend(4);
      if (seen.size > maxConjuncts)
        throw schemaError(located.path, `combines more than ${maxConjuncts} schemas by allOf and $ref`);
      checkKeywords(located);
      const { schema } = located;
      const targets = this.references.resolve(located);
      if (targets.some(([target]) => target === schema))
        throw schemaError(pathOf(located.path, "$ref"), "refers to itself");
      const applied = this.conjunction(
        [...targets, ...(schemaList(located, "allOf") ?? []), ...this.#conditions(located)],
        located,
      );
      const opposite = schema["not"];
      const path = pathOf(located.path, "not");
      // Nothing within a negation counts as evaluated, so the schemas it produces have no parents.
      const negated =
        opposite === undefined ? [] : this.conjunction([[this.#negation.opposite(opposite, path), path]]);
      if (applied === undefined || negated === undefined) return undefined;
      const plain = this.#stripped(schema, inPlace);
      if (Object.keys(plain).length > 0 || restrictionOf(plain) !== undefined)
        result.set(plain, { ...located, schema: plain, origin: located.origin ?? schema });
      pending.push(...[...applied, ...negated].toReversed());
    }
    return [...result.values()];
  }

  /** `if` and dependencies as choices. */
  #conditions(located: Located): [JsonValue, string][] {
    const { schema, path } = located;
    const keyword = ["if", "dependentRequired", "dependentSchemas"].find(
      (word) => schema[word] !== undefined,
    );
    let made = this.#made.get(schema);
    if (made === undefined) {
      made = dependencies(located).map(([name, need]): JsonValue => ({
        anyOf: [withoutMember(name), { allOf: [{ required: [name] }, need] }],
      }));
      const { if: condition, then = true, else: otherwise = true } = schema;
      if (condition !== undefined && (then !== true || otherwise !== true))
        made.push({
          anyOf: [{ allOf: [condition, then] }, { allOf: [this.#negation.not(condition), otherwise] }],
        });
      this.#made.set(schema, made);
    }
    return made.map((part) => [part, pathOf(path, keyword ?? "dependencies")]);
  }

  #options(open: Located, keyword: "anyOf" | "oneOf"): (Conjunction | undefined)[] {
    const options = schemaList(open, keyword)!;
    const branches = options.map((option) => this.conjunction([option], open));
    if (keyword === "anyOf") return branches;
    const flat = branches.map((branch) => branch && this.flatten(branch));
    return branches.map((branch, index) => {
      const first = flat[index];
      if (branch === undefined || first === undefined) return undefined;
      const opposites: Located[] = [];
      for (const [other, second] of flat.entries()) {
        if (other === index || second === undefined || areDisjoint(first, second, this)) continue;
        const opposite = this.#exclude(options[other]!, open, [
          Math.min(index, other),
          Math.max(index, other),
        ]);
        if (opposite === undefined) return undefined;
        opposites.push(...opposite);
      }
      return [...branch, ...opposites];
    });
  }

  #exclude(
    [schema, path]: readonly [JsonValue, string],
    open: Located,
    [first, second]: readonly [number, number],
  ): Conjunction | undefined {
    try {
      return this.conjunction([[this.#negation.opposite(schema, path), path]]);
    } catch (thrown) {
      if (!(thrown instanceof OctavoError) || thrown.code !== "invalid_request") throw thrown;
      throw schemaError(
        pathOf(open.path, "oneOf"),
        `has branches ${first} and ${second}, which a value might match both; use anyOf, or give them different types or a ` +
          `required property with different const values (${thrown.message.replace(/\.$/, "")})`,
      );
    }
  }

  #stripped(schema: JsonObject, keywords: readonly string[]): JsonObject {
    if (!keywords.some((keyword) => schema[keyword] !== undefined)) return schema;
    const key = keywords.join();
    let known = this.#without.get(key);
    if (known === undefined) {
      known = new Map();
      this.#without.set(key, known);
    }
    let rest = known.get(schema);
    if (rest === undefined) {
      rest = Object.fromEntries(Object.entries(schema).filter(([word]) => !keywords.includes(word)));
      known.set(schema, rest);
    }
    return rest;
  }
}
