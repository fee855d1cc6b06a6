import { OctavoError } from "@octavo/protocol";

/** Where a record stands in its file, for errors: `cases.jsonl line 12`. */
export interface Place {
  readonly path: string;
  readonly unit: "line" | "row" | "element";
  /** Counted from 1. */
  readonly number: number;
}

/**
 * The error of everything that is wrong with a dataset.
 * @param field path of the field at fault, such as `messages[0].role`; undefined: the record as a whole
 * @param problem goes on after the field, such as `is no text`
 */
export function invalidRecord(
  place: Place,
  field: string | undefined,
  problem: string,
  cause?: unknown,
): OctavoError {
  const where = `${place.path} ${place.unit} ${place.number}`;
  const message = field === undefined ? `${where} ${problem}` : `${where}: field "${field}" ${problem}`;
  return new OctavoError("dataset_invalid", message, {
    ...(field !== undefined && { param: field }),
    cause,
  });
}

/** The error of a file that cannot be read as what it should be. */
export function invalidFile(path: string, problem: string, cause?: unknown): OctavoError {
  return new OctavoError("dataset_invalid", `${path} ${problem}`, { cause });
}

/** A value as errors quote it: short, and safe to print. */
export function quoted(value: unknown): string {
  const text = describe(value);
  return text.length <= 80 ? text : `${text.slice(0, 77)}...`;
}

function describe(value: unknown): string {
  if (Array.isArray(value)) return `a list of ${value.length}`;
  if (typeof value === "object" && value !== null) return "an object";
  if (typeof value === "bigint") return `${value}`;
  return JSON.stringify(value) ?? "missing";
}
