import { asRecord, asString, parseJson } from "@octavo/protocol";
import type { JudgeQuestion } from "./judge.js";
import type { LabelPlace } from "./label-probabilities.js";

/** How a verdict is held to its labels: by a JSON schema, by a choice (vLLM, Octavo), or by asking nicely. */
export type VerdictFormat = "json_schema" | "choice" | "text";

interface ReadVerdict {
  readonly label: string;
  readonly reason: string | undefined;
  /** Undefined where the label is not spelled as it was asked for, so that tokens say nothing of the other labels. */
  readonly place: LabelPlace | undefined;
}

/** Fields of the request that constrain the answer. */
export function constraintOf(
  format: VerdictFormat,
  question: JudgeQuestion,
): Readonly<Record<string, unknown>> {
  if (format === "text") return {};
  if (format === "choice") return { structured_outputs: { choice: question.labels } };
  const schema = {
    type: "object",
    // the reason comes first, so that the verdict follows from it
    properties: {
      ...(question.withReason ? { reason: { type: "string" } } : {}),
      verdict: { type: "string", enum: question.labels },
    },
    required: question.withReason ? ["reason", "verdict"] : ["verdict"],
    additionalProperties: false,
  };
  return { response_format: { type: "json_schema", json_schema: { name: "verdict", strict: true, schema } } };
}

/** What the judge is told about the form of its answer. */
export function instructionOf(format: VerdictFormat, question: JudgeQuestion): string {
  const labels = question.labels.map((label) => JSON.stringify(label)).join(", ");
  if (question.withReason)
    return `Answer with a JSON object and nothing else: {"reason": "...", "verdict": "..."}. The reason comes first, in at most 40 words. The verdict is one of ${labels}.`;
  return format === "json_schema"
    ? `Answer with a JSON object and nothing else: {"verdict": "..."}. The verdict is one of ${labels}.`
    : `Answer with one of ${labels} and nothing else.`;
}

/** What a judge is told whose answer was no verdict. */
export function repairOf(format: VerdictFormat, question: JudgeQuestion): string {
  return `That could not be read as a verdict. ${instructionOf(format, question)}`;
}

/**
 * Reads a verdict strictly: the whole answer must be the JSON object or the label that was asked for, code fences and
 * quotes apart. A label somewhere in prose is no verdict.
 */
export function readVerdict(content: string, question: JudgeQuestion): ReadVerdict | undefined {
  return (
    readObject(content, question) ?? (question.withReason ? undefined : readLabel(content, question.labels))
  );
}

function readObject(content: string, question: JudgeQuestion): ReadVerdict | undefined {
  const fenced = /^\s*```(?:json)?\s*\n([\s\S]*?)\n?\s*```\s*$/.exec(content);
  const fields = asRecord(parseJson(fenced?.[1] ?? content)?.value);
  const given = fields["verdict"];
  if (typeof given !== "string" && typeof given !== "number") return undefined;
  const label = labelOf(String(given), question.labels);
  const reason = asString(fields["reason"])?.trim();
  if (label === undefined || (question.withReason && reason === undefined)) return undefined;
  const [last] = [...content.matchAll(/"verdict"\s*:\s*("?)/g)].slice(-1);
  if (last === undefined) return undefined;
  return {
    label,
    reason,
    place: isSpelled(String(given), label)
      ? { content, offset: last.index + last[0].length, terminator: last[1] ?? "" }
      : undefined,
  };
}

function readLabel(content: string, labels: readonly string[]): ReadVerdict | undefined {
  const match = /^[\s"'`*]*(.*?)[\s"'`*.]*$/s.exec(content);
  const text = match?.[1] ?? "";
  const label = labelOf(text, labels);
  if (label === undefined) return undefined;
  const place = { content, offset: content.indexOf(text), terminator: "" };
  return { label, reason: undefined, place: isSpelled(text, label) ? place : undefined };
}

/** Labels that are numbers are told by their value: 1, 1.0 and 1.00 are one verdict. */
function labelOf(text: string, labels: readonly string[]): string | undefined {
  const wanted = text.trim().toLowerCase();
  const number = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/.test(wanted) ? Number(wanted) : undefined;
  return labels.find(
    (label) => label.toLowerCase() === wanted || (number !== undefined && Number(label) === number),
  );
}

function isSpelled(text: string, label: string): boolean {
  return text.trim().toLowerCase() === label.toLowerCase();
}
