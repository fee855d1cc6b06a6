import { type Input, takeSpace, type Waiting } from "./input.js";
import { takeText } from "./tags.js";

export interface Brackets {
  /** The closing bracket in the text; the opening one has been read. */
  readonly close: string;
  /** The brackets in the JSON output. */
  readonly json: "[]" | "{}";
}

/**
 * Reads comma-separated items up to the closing bracket (a trailing comma is allowed) and passes them on as JSON. `readItem`
 * writes `lead`, the separating comma, before its item. Both functions return the problem, if there is one.
 */
export function* readCommaSeparated(
  input: Input,
  onJson: (text: string) => void,
  { close, json }: Brackets,
  readItem: (lead: string) => Waiting<string | undefined>,
  unfollowed: (unit: string) => string,
): Waiting<string | undefined> {
  onJson(json.charAt(0));
  for (let isFirst = true; ; isFirst = false) {
    yield* takeSpace(input);
    if (yield* takeText(input, close)) break;
    const problem = yield* readItem(isFirst ? "" : ", ");
    if (problem !== undefined) return problem;
    yield* takeSpace(input);
    if (yield* takeText(input, close)) break;
    if (!(yield* takeText(input, ","))) return unfollowed(yield* input.peek());
  }
  onJson(json.charAt(1));
  return undefined;
}
