import { type Input, takeSpace, type Waiting } from "./input.js";
import { takeText } from "./tags.js";

export interface Brackets {
  /** What closes the list in the text; its opening bracket was taken. */
  readonly close: string;
  /** The brackets of the JSON that is written. */
  readonly json: "[]" | "{}";
}

/**
 * Reads items between commas to the closing bracket, the last comma left over or not, and hands them on as JSON. `readItem`
 * writes `lead`, the comma before the item, before it writes the item. Both it and this return what is wrong, if anything.
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
