import type { JsonValue } from "../grammar.js";
import { isObject, type Located } from "./keywords.js";
import { pathOf, schemaError } from "./schema-error.js";

/** Finds what `$ref` refers to within the document; nothing is ever fetched. */
export class References {
  readonly #root: JsonValue;
  #anchors: Map<string, [JsonValue, string]> | undefined;

  constructor(root: JsonValue) {
    this.#root = root;
  }

  resolve(from: Located): [JsonValue, string] {
    const at = pathOf(from.path, "$ref");
    const reference = from.schema["$ref"];
    if (typeof reference !== "string") throw schemaError(at, "must be a string");
    const shown = JSON.stringify(reference.slice(0, 80));
    const rootId = isObject(this.#root) ? this.#root["$id"] : undefined;
    const local =
      typeof rootId === "string" && reference.startsWith(rootId)
        ? reference.slice(rootId.length) || "#"
        : reference;
    if (!local.startsWith("#"))
      throw schemaError(at, `refers to ${shown}, outside the schema; move what it names into $defs`);
    const fragment = decode(local.slice(1));
    if (fragment !== "" && !fragment.startsWith("/")) {
      const anchored = this.#anchored().get(fragment);
      if (anchored === undefined) throw schemaError(at, `refers to ${shown}, which is not in the schema`);
      return anchored;
    }
    let value: JsonValue | undefined = this.#root;
    for (const step of fragment.split("/").slice(1)) {
      const name = step.replaceAll("~1", "/").replaceAll("~0", "~");
      if (Array.isArray(value))
        value = /^\d+$/.test(name) ? (value as readonly JsonValue[])[Number(name)] : undefined;
      else value = isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
      if (value === undefined) throw schemaError(at, `refers to ${shown}, which is not in the schema`);
    }
    return [value, `#${fragment}`];
  }

  #anchored(): Map<string, [JsonValue, string]> {
    if (this.#anchors !== undefined) return this.#anchors;
    const anchors = new Map<string, [JsonValue, string]>();
    const pending: [JsonValue, string][] = [[this.#root, "#"]];
    for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
      const [value, path] = next;
      if (typeof value !== "object" || value === null) continue;
      if (isObject(value) && typeof value["$anchor"] === "string") anchors.set(value["$anchor"], next);
      for (const [key, item] of Object.entries(value)) pending.push([item, pathOf(path, key)]);
    }
    this.#anchors = anchors;
    return anchors;
  }
}

function decode(fragment: string): string {
  try {
    return decodeURIComponent(fragment);
  } catch {
    return fragment;
  }
}
