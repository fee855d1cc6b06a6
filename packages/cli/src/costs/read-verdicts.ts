import { createReadStream } from "node:fs";
import { createInterface } from "node:readline";
import { OctavoError, systemProblem } from "@octavo/protocol";

const idNames = ["trace_id", "response_id", "gen_ai.response.id", "request_id"] as const;
const labelNames = ["label", "gen_ai.evaluation.score.label"] as const;
const scoreNames = ["score", "gen_ai.evaluation.score.value"] as const;
const goodLabels: ReadonlySet<unknown> = new Set(["pass", "passed", "true", "yes"]);

/**
 * Verdicts of evaluations, one JSON object a line: an id (`trace_id`, `response_id`, `request_id` or OpenTelemetry's
 * `gen_ai.response.id`) and `passed`, a label, or a score that passes from `passScore` on. Several of one id must all pass.
 */
export async function readVerdicts(path: string, passScore: number): Promise<ReadonlyMap<string, boolean>> {
  const verdicts = new Map<string, boolean>();
  const refuse = (message: string, cause?: unknown): never => {
    throw new OctavoError("invalid_option", `evaluations: ${path}${message}`, {
      param: "evaluations",
      cause,
    });
  };
  let number = 0;
  const lines = createInterface({ input: createReadStream(path), crlfDelay: Infinity });
  try {
    for await (const line of lines) {
      number += 1;
      if (line.trim() === "") continue;
      const fields = objectOf(line) ?? refuse(`: line ${number} is not a JSON object`);
      const id = idNames.map((name) => fields[name]).find((value) => typeof value === "string");
      if (typeof id !== "string") return refuse(`: line ${number} has none of ${idNames.join(", ")}`);
      const passed = verdictOf(fields, passScore);
      if (passed === undefined) return refuse(`: line ${number} has no passed, label or score`);
      verdicts.set(id, passed && (verdicts.get(id) ?? true));
    }
  } catch (thrown) {
    if (thrown instanceof OctavoError) throw thrown;
    return refuse(` cannot be read: ${systemProblem(thrown)}`, thrown);
  }
  return verdicts;
}

function verdictOf(fields: Readonly<Record<string, unknown>>, passScore: number): boolean | undefined {
  const { passed } = fields;
  if (typeof passed === "boolean") return passed;
  const label = labelNames.map((name) => fields[name]).find((value) => typeof value === "string");
  if (typeof label === "string") return goodLabels.has(label.toLowerCase());
  const score = scoreNames.map((name) => fields[name]).find((value) => typeof value === "number");
  return typeof score === "number" ? score >= passScore : undefined;
}

function objectOf(line: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : undefined;
  } catch {
    return undefined;
  }
}
