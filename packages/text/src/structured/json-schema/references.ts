import type { JsonObject, JsonValue } from "../grammar.js";
import { isObject, type Located } from "./keywords.js";
import { pathOf, schemaError } from "./schema-error.js";

/** Keywords that hold schemas by names of the author's. */
const schemaMaps: ReadonlySet<string> = new Set(
  "properties patternProperties $defs definitions dependentSchemas dependencies".split(" "),
);
/** Keywords that hold a schema or a list of them; the value of any other keyword is a schema only where a reference points to it. */
const schemaHolders: ReadonlySet<string> = new Set([
  ..."additionalItems additionalProperties allOf anyOf contains contentSchema else if items not oneOf".split(
    " ",
  ),
  ..."prefixItems propertyNames then unevaluatedItems unevaluatedProperties".split(" "),
]);
/** The document's own address, where it gives none. */
const here = "schema://document/";

interface Anchor {
  readonly schema: JsonObject;
  readonly path: string;
}

/** Finds what `$ref` and its like refer to within the document; nothing is ever fetched. */
export class References {
  readonly #root: JsonValue;
  /** Schemas with an address of their own, the document among them. */
  readonly #resources = new Map<string, Anchor>();
  readonly #anchors = new Map<string, Anchor>();
  /** The address that relative references in a schema start from. */
  readonly #bases = new Map<JsonObject, string>();
  readonly #numDynamic = new Map<string, number>();
  #isIndexed = false;

  constructor(root: JsonValue) {
    this.#root = root;
  }

  /** The schemas that one refers to, none where it has no reference. */
  resolve(from: Located): (readonly [JsonValue, string])[] {
    return ["$ref", "$dynamicRef", "$recursiveRef"].flatMap((keyword) =>
      from.schema[keyword] === undefined ? [] : [this.#find(from, keyword)],
    );
  }

  #find({ schema, path }: Located, keyword: string): readonly [JsonValue, string] {
    const at = pathOf(path, keyword);
    const reference = schema[keyword];
    if (typeof reference !== "string") throw schemaError(at, "must be a string");
    this.#index();
    const shown = JSON.stringify(reference.slice(0, 80));
    const [address, fragment] = splitAddress(
      absolute(reference, this.#bases.get(schema) ?? here) ?? reference,
    );
    const resource = this.#resources.get(address);
    if (resource === undefined)
      throw schemaError(at, `refers to ${shown}, outside the schema; move what it names into $defs`);
    const isAnchor = fragment !== "" && !fragment.startsWith("/");
    if (keyword === "$recursiveRef" && this.#resources.size > 1)
      throw schemaError(at, "is supported in documents without $id in them; use $ref");
    if (keyword === "$dynamicRef" && isAnchor && (this.#numDynamic.get(fragment) ?? 0) > 1)
      throw schemaError(at, `refers to ${shown}, of which the schema has several; use $ref`);
    const missing = schemaError(at, `refers to ${shown}, which is not in the schema`);
    if (isAnchor) {
      const anchored = this.#anchors.get(`${address}#${fragment}`);
      if (anchored === undefined) throw missing;
      return [anchored.schema, anchored.path];
    }
    let value: JsonValue | undefined = resource.schema;
    for (const step of fragment.split("/").slice(1)) {
      const name = step.replaceAll("~1", "/").replaceAll("~0", "~");
      if (Array.isArray(value))
        value = /^\d+$/.test(name) ? (value as readonly JsonValue[])[Number(name)] : undefined;
      else value = isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
      if (value === undefined) throw missing;
    }
    // A place that only the reference makes a schema; relative references in it start from where it was found.
    if (isObject(value) && !this.#bases.has(value)) this.#bases.set(value, address);
    return [value, `${resource.path}${fragment}`];
  }

  #index(): void {
    if (this.#isIndexed) return;
    this.#isIndexed = true;
    if (!isObject(this.#root)) return;
    const dialect = this.#root["$schema"];
    const idKeyword = typeof dialect === "string" && dialect.includes("draft-04") ? "id" : "$id";
    interface Place {
      readonly value: JsonValue;
      readonly path: string;
      readonly base: string;
      readonly isMap: boolean;
    }
    this.#resources.set(here, { schema: this.#root, path: "#" });
    const pending: Place[] = [{ value: this.#root, path: "#", base: here, isMap: false }];
    for (let place = pending.pop(); place !== undefined; place = pending.pop()) {
      const { value, path, isMap } = place;
      let { base } = place;
      if (Array.isArray(value)) {
        for (const [index, item] of (value as readonly JsonValue[]).entries())
          pending.push({ value: item, path: pathOf(path, index), base, isMap: false });
        continue;
      }
      if (!isObject(value)) continue;
      if (!isMap) {
        base = this.#enter(value, path, base, idKeyword);
        this.#bases.set(value, base);
      }
      for (const [key, item] of Object.entries(value)) {
        const holdsMap = !isMap && schemaMaps.has(key);
        if (isMap || holdsMap || schemaHolders.has(key))
          pending.push({ value: item, path: pathOf(path, key), base, isMap: holdsMap });
      }
    }
  }

  /** Notes what a schema is called; returns the address that references in it start from. */
  #enter(schema: JsonObject, path: string, outer: string, idKeyword: string): string {
    let base = outer;
    const id = schema[idKeyword];
    const isOverridden = schema["$ref"] !== undefined && schema !== this.#root;
    if (typeof id === "string" && isOverridden && !this.#isNewDialect())
      throw schemaError(
        pathOf(path, idKeyword),
        "stands beside $ref, where drafts differ on what it means; leave it out",
      );
    if (typeof id === "string") {
      const [address, fragment] = splitAddress(absolute(id, outer) ?? outer);
      if (address !== outer) {
        base = address;
        if (!this.#resources.has(base)) this.#resources.set(base, { schema, path });
      }
      if (fragment !== "") this.#anchor(base, fragment, { schema, path });
    }
    for (const keyword of ["$anchor", "$dynamicAnchor"]) {
      const name = schema[keyword];
      if (typeof name !== "string") continue;
      this.#anchor(base, name, { schema, path });
      if (keyword === "$dynamicAnchor") this.#numDynamic.set(name, (this.#numDynamic.get(name) ?? 0) + 1);
    }
    return base;
  }

  #isNewDialect(): boolean {
    const dialect = isObject(this.#root) ? this.#root["$schema"] : undefined;
    return typeof dialect === "string" && /draft\/20\d\d-/.test(dialect);
  }

  #anchor(base: string, name: string, anchor: Anchor): void {
    const key = `${base}#${name}`;
    if (!this.#anchors.has(key)) this.#anchors.set(key, anchor);
  }
}

function absolute(reference: string, base: string): string | undefined {
  try {
    return new URL(reference, base).href;
  } catch {
    return undefined;
  }
}

function splitAddress(address: string): [string, string] {
  const hash = address.indexOf("#");
  return hash < 0 ? [address, ""] : [address.slice(0, hash), decode(address.slice(hash + 1))];
}

function decode(fragment: string): string {
  try {
    return decodeURIComponent(fragment);
  } catch {
    return fragment;
  }
}
