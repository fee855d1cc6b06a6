import type { z } from "zod";
import { OctavoError, type ErrorCode } from "./errors.js";

/** Attached to a custom issue as `params` to pick another code than `invalid_request`. */
export interface IssueParams {
  readonly errorCode: ErrorCode;
}

type Issue = z.core.$ZodIssue;

/**
 * Checks a value against a schema and returns the typed result.
 * The first problem becomes an OctavoError whose `param` is the path (`messages[0].content`) and whose message
 * says what was expected and what was found, in at most a few hundred characters.
 */
export function parseWith<Schema extends z.ZodType>(schema: Schema, value: unknown): z.output<Schema> {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const issue = meantIssue(result.error.issues);
  const param = formatPath(issue.path);
  const expectation = issue.message.replace(/, received .*$/s, "");
  const found = issue.code === "custom" ? "" : `, got ${describeValue(valueAt(value, issue.path))}`;
  const where = param === "" ? "the request body" : param;
  throw new OctavoError(
    errorCodeOf(issue),
    `${where}: ${expectation}${found}`,
    param === "" ? {} : { param },
  );
}

/** A JSON object: no list, not null. */
export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A value as it may appear in an error message: its kind, and its text where that is short. */
export function describeValue(value: unknown): string {
  if (value === undefined) return "nothing";
  if (value === null) return "null";
  if (Array.isArray(value)) return `an array of ${value.length}`;
  if (typeof value === "object") return "an object";
  if (typeof value === "string")
    return value.length <= 48 ? JSON.stringify(value) : `a string of ${value.length} characters`;
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  return `a ${typeof value}`;
}

/** The first issue; of a union's branches, the one that got furthest into the value is what the caller meant. */
function meantIssue(issues: readonly Issue[], prefix: readonly PropertyKey[] = []): Issue {
  const first = issues[0];
  if (first === undefined) throw new OctavoError("internal_error", "validation failed without saying why");
  const path = [...prefix, ...first.path];
  const issue: Issue = { ...first, path };
  if (issue.code !== "invalid_union") return issue;
  const branches = issue.errors
    .filter((branch) => branch.length > 0)
    .map((branch) => meantIssue(branch, path));
  const expected = branches.flatMap((branch) => (branch.code === "invalid_type" ? [branch.expected] : []));
  const message = `Invalid input: expected ${expected.join(" or ")}`;
  let best: Issue = expected.length > 0 ? { ...issue, message } : issue;
  for (const branch of branches) {
    const isFurther = branch.path.length > best.path.length;
    const isPastType =
      branch.path.length === best.path.length &&
      best.code === "invalid_union" &&
      branch.code !== "invalid_type";
    if (isFurther || isPastType) best = branch;
  }
  return best;
}

function errorCodeOf(issue: Issue): ErrorCode {
  if (issue.code !== "custom") return "invalid_request";
  const params = issue.params as Partial<IssueParams> | undefined;
  return params?.errorCode ?? "invalid_request";
}

function formatPath(path: readonly PropertyKey[]): string {
  let text = "";
  for (const step of path) {
    if (typeof step === "number") text += `[${step}]`;
    else text += text === "" ? describeKey(step) : `.${describeKey(step)}`;
  }
  return text;
}

function describeKey(key: PropertyKey): string {
  const text = String(key);
  return text.length <= 64 ? text : `${text.slice(0, 61)}...`;
}

function valueAt(root: unknown, path: readonly PropertyKey[]): unknown {
  let value = root;
  for (const step of path) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, step)) return undefined;
    value = Reflect.get(value, step);
  }
  return value;
}
