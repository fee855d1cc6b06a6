import { fieldNames } from "./case-record.js";
import { invalidRecord, type Place, quoted } from "./place.js";

const jsonFields: ReadonlySet<string> = new Set<string>([
  "messages",
  ...fieldNames.schema,
  ...fieldNames.tools,
  ...fieldNames.expectedCalls,
  ...fieldNames.orderFree,
  ...fieldNames.parameters,
  ...fieldNames.metadata,
  "maxTokens",
  "max_tokens",
  "max_completion_tokens",
  "temperature",
  "seed",
  "response_format",
  "extra_body",
]);

/** What a cell of text stands for, in a column of the given field. */
export function cellValue(name: string, cell: string, place: Place): unknown {
  if (name === "tags" && !cell.trimStart().startsWith("[")) {
    return cell
      .split(/[,;|]/)
      .map((tag) => tag.trim())
      .filter((tag) => tag !== "");
  }
  if (!jsonFields.has(name) && name !== "tags") return cell;
  try {
    return JSON.parse(cell);
  } catch (error) {
    throw invalidRecord(place, name, `must hold JSON, but holds ${quoted(cell)}`, error);
  }
}
