import type { Json } from "./task.js";

/** JSON on one line with `", "` and `": "` between items: the one spelling the model writes and the template uses. */
export function writeJson(value: Json): string {
  if (Array.isArray(value)) return `[${value.map((item: Json) => writeJson(item)).join(", ")}]`;
  if (value !== null && typeof value === "object") {
    const entries = Object.entries(value).map(([key, item]) => `${JSON.stringify(key)}: ${writeJson(item)}`);
    return `{${entries.join(", ")}}`;
  }
  return JSON.stringify(value);
}
