import { dirname, resolve } from "node:path";
import { isRecord, OctavoError } from "@octavo/protocol";
import { z } from "zod";
import { type CheckName, checkNames } from "../checks/table.js";
import { withEvaluatorFiles } from "../evaluators/evaluator-file.js";
import { datasetFormats } from "../datasets/dataset-format.js";
import { dimensionOf, type HealthExpectation, parseExpectation } from "./expectation.js";
import { type HealthDimension, healthDimensions } from "./gate-result.js";
import { YamlSource } from "@octavo/protocol/yaml";

const onFail = z.enum(["error", "warn"]);
const url = z.string().regex(/^https?:\/\//, "expected a URL such as http://127.0.0.1:8000/v1");
const name = z.string().regex(/^[\w.:/-]{1,64}$/, "expected 1 to 64 letters, digits and any of `_.:/-`");
const environmentName = z
  .string()
  .regex(/^[A-Za-z_]\w*$/, "expected the name of an environment variable, never the key itself");

const target = z.strictObject({
  base_url: url,
  model: z.string().optional(),
  api_key_env: environmentName.optional(),
  extra_body: z.record(z.string(), z.unknown()).optional(),
  headers: z.record(z.string(), z.string()).optional(),
  /** Whether answers are streamed. Undefined: they are, and those of half of the cases of some checks are not. */
  stream: z.boolean().optional(),
});

/** Answers that spans recorded, to be scored as they are: of datasets that are spans. */
const recorded = z.strictObject({ recorded: z.literal(true) });

const scoredTarget = z
  .unknown()
  .transform((written, context): z.output<typeof target> | z.output<typeof recorded> => {
    const schema = isRecord(written) && "recorded" in written ? recorded : target;
    const parsed = schema.safeParse(written);
    if (parsed.success) return parsed.data;
    for (const issue of parsed.error.issues) context.addIssue({ ...issue });
    return z.NEVER;
  });

const dataset = z.strictObject({
  path: z.string(),
  /** Undefined: detected from the content. */
  format: z.enum(datasetFormats).optional(),
  limit: z.int().min(1).optional(),
  /** The column of a case's field, for CSV and Parquet. */
  columns: z.record(z.string(), z.string()).optional(),
  /** For CSV. */
  delimiter: z.string().optional(),
  /** The file of golds, for BFCL. */
  answers: z.string().optional(),
  /** For MMLU-Pro, LongBench v2 and HLE: the benchmark's own prompt, and MMLU-Pro's worked examples. */
  prompt: z.string().optional(),
  examples: z.string().optional(),
  /** Spans only: take those of this owner. */
  owner: z.string().optional(),
});

const judge = target.extend({
  /** Requests to the judge, retries and repairs included. */
  max_calls: z.int().min(1).optional(),
  /** Limit on the cost of the judge's answers, priced by `usd_per_million_tokens`. */
  max_cost_usd: z.number().gt(0).optional(),
  usd_per_million_tokens: z.strictObject({ input: z.number().min(0), output: z.number().min(0) }).optional(),
  /** Share of verdicts that may be missing before the judge counts as broken. */
  max_failure_rate: z.number().min(0).max(1).default(0.05),
  /** Cases with answers that people labelled: the judge's agreement with them is reported beside its scores. */
  labels: dataset.optional(),
});

const assertion = z.union([
  z.string(),
  z.strictObject({ expect: z.string(), on_fail: onFail.default("error") }),
]);

const duration = z
  .string()
  .regex(/^\d+(\.\d+)?(s|m|h)$/, "expected a time such as 90s, 30m or 2h")
  .transform((text) => Number.parseFloat(text) * ({ s: 1e3, m: 6e4, h: 36e5 }[text.at(-1) ?? "s"] ?? 1e3));

const configSchema = z.strictObject({
  version: z.literal(1),
  name: z.string().min(1).max(120).default("release gate"),
  seed: z.int().min(0).default(1),
  /** Two-sided, of the intervals that decide. */
  confidence: z.number().min(0.5).lt(1).default(0.95),
  concurrency: z.int().min(1).max(1024).default(8),
  timeout: duration.optional(),
  request_timeout: duration.default(120_000),
  /** Sampling parameters that a case does not set itself. */
  parameters: z
    .strictObject({
      max_tokens: z.int().min(1).optional(),
      temperature: z.number().min(0).max(2).default(0),
      seed: z.int().optional(),
    })
    .prefault({}),
  targets: z.strictObject({
    candidate: scoredTarget,
    baseline: scoredTarget.optional(),
    replicas: z.array(target).optional(),
    /** A command that starts one more replica; `{port}` is where it is to listen. */
    start_replica: z.array(z.string()).min(1).optional(),
  }),
  datasets: z.record(name, dataset).default({}),
  judge: judge.optional(),
  evaluators: z.array(z.unknown()).default([]),
  checks: z.partialRecord(z.enum(checkNames), z.record(z.string(), z.unknown())).default({}),
  health: z
    .strictObject({
      latency: z.array(assertion).default([]),
      throughput: z.array(assertion).default([]),
      error_rate: z.array(assertion).default([]),
      cost: z.array(assertion).default([]),
      quality: z.array(assertion).default([]),
    })
    .prefault({}),
  prices: z
    .strictObject({
      usd_per_million_input_tokens: z.number().min(0),
      usd_per_million_output_tokens: z.number().min(0),
      usd_per_million_cached_tokens: z.number().min(0).optional(),
    })
    .optional(),
  /** Cases that checks have to choose from. */
  max_check_cases: z.int().min(1).max(1_000_000).default(2000),
  /** Cases that reports keep in full, worst first. */
  max_reported_cases: z.int().min(0).max(100_000).default(2000),
  when: z.strictObject({ paths: z.array(z.string()).min(1) }).optional(),
});

/** A configuration of `octavo eval`, read, with its defaults filled in. */
export type GateConfigFile = z.output<typeof configSchema>;
/** A target of a configuration: where it is, and how it is asked. */
export type TargetConfig = z.output<typeof target>;
/** The target that a configuration asks and scores. */
export type ScoredTargetConfig = GateConfigFile["targets"]["candidate"];

/** An assertion of the file with where it stands. */
export interface GateAssertion {
  readonly dimension: HealthDimension;
  readonly expectation: HealthExpectation;
  readonly onFail: "error" | "warn";
}

/** A check as a configuration asks for it. */
export interface ConfiguredCheck {
  readonly name: CheckName;
  /** What the check reads; without `on_fail`. */
  readonly settings: Readonly<Record<string, unknown>>;
  readonly onFail: "error" | "warn";
}

/** eval.yaml, checked as a whole before anything is sent anywhere. */
export interface GateConfig {
  readonly file: GateConfigFile;
  readonly source: YamlSource;
  readonly assertions: readonly GateAssertion[];
  readonly checks: readonly ConfiguredCheck[];
}

/** How strictly a configuration is read. */
export interface GateReading {
  /** False for runs that only measure. Default true. */
  readonly needsExpectations?: boolean;
}

/** Names that a configuration may use, by who knows them. */
export interface GateVocabulary {
  /** @throws OctavoError `invalid_option` for settings that a check cannot have */
  readonly checkSettings: (check: CheckName, settings: unknown) => void;
  /** Names that expectations may use, from the specs as written. @throws OctavoError `invalid_option` */
  readonly evaluatorNames: (specs: readonly unknown[], hasJudge: boolean) => readonly string[];
}

/**
 * @param fileName undefined where the text was made of flags: then problems have a path and no line
 * @throws OctavoError `invalid_option` that names file, line, column and path
 */
export function parseGateConfig(
  fileName: string | undefined,
  text: string,
  vocabulary: GateVocabulary,
  { needsExpectations = true }: GateReading = {},
): GateConfig {
  const source = new YamlSource(fileName, text);
  const parsed = configSchema.safeParse(source.value);
  if (!parsed.success) throw firstIssue(source, parsed.error);
  const file = {
    ...parsed.data,
    evaluators: placed(source, ["evaluators"], () =>
      withEvaluatorFiles(parsed.data.evaluators, dirname(resolve(fileName ?? "."))),
    ),
  };
  const names = new Set(
    placed(source, ["evaluators"], () =>
      vocabulary.evaluatorNames(file.evaluators, file.judge !== undefined),
    ),
  );
  const checks = checkNames.flatMap((check): readonly ConfiguredCheck[] => {
    const given = file.checks[check];
    if (given === undefined) return [];
    const { on_fail: written, ...settings } = given;
    const whenFailed = onFail.default("error").safeParse(written);
    if (!whenFailed.success)
      throw source.problem(["checks", check, "on_fail"], "expected error or warn", whenFailed.error);
    placed(source, ["checks", check], () => vocabulary.checkSettings(check, settings));
    return [{ name: check, settings, onFail: whenFailed.data }];
  });
  const assertions = healthDimensions.flatMap((dimension) =>
    file.health[dimension].map((written, index): GateAssertion => {
      const path = ["health", dimension, index];
      const expected = typeof written === "string" ? written : written.expect;
      const expectation = placed(source, path, () => parseExpectation(expected));
      checkExpectation(source, path, dimension, expectation, file, names);
      return {
        dimension,
        expectation,
        onFail: typeof written === "string" ? "error" : written.on_fail,
      };
    }),
  );
  if (needsExpectations && assertions.length === 0 && checks.length === 0)
    throw source.problem(["health"], "nothing is asserted: name checks, or expectations under health");
  if (assertions.length > 0 && Object.keys(file.datasets).length === 0)
    throw source.problem(["datasets"], "expectations need cases: name at least one dataset");
  return { file, source, assertions, checks };
}

function checkExpectation(
  source: YamlSource,
  path: readonly PropertyKey[],
  dimension: HealthDimension,
  expectation: HealthExpectation,
  file: GateConfigFile,
  evaluatorNames: ReadonlySet<string>,
): void {
  const own = dimensionOf(expectation);
  if (own !== dimension)
    throw source.problem(path, `\`${expectation.text}\` is about ${own}: move it to health.${own}`);
  const { measure, compare, target: on } = expectation;
  const evaluator =
    measure.kind === "pass_rate"
      ? measure.evaluator
      : (measure.kind === "mean" || measure.kind === "percentile") && measure.of.kind === "score"
        ? measure.of.evaluator
        : undefined;
  if (evaluator !== undefined && !evaluatorNames.has(evaluator))
    throw source.problem(
      path,
      `\`${expectation.text}\`: evaluators has no ${evaluator}; it has ${[...evaluatorNames].join(", ") || "none"}`,
    );
  const isCost =
    (measure.kind === "mean" || measure.kind === "percentile") &&
    measure.of.kind === "request" &&
    measure.of.metric === "cost_usd";
  if (isCost && file.prices === undefined) throw source.problem(path, `\`${expectation.text}\` needs prices`);
  if (compare !== "none" && file.targets.baseline === undefined)
    throw source.problem(path, `\`${expectation.text}\` compares: name targets.baseline`);
  if (on !== undefined && on !== "candidate" && !(on === "baseline" && file.targets.baseline !== undefined))
    throw source.problem(
      path,
      `\`${expectation.text}\`: there is no target ${on} whose answers are measured`,
    );
}

/** Errors of a value's own reader, with the position of the value. */
function placed<Value>(source: YamlSource, path: readonly PropertyKey[], read: () => Value): Value {
  try {
    return read();
  } catch (thrown) {
    const error = OctavoError.from(thrown);
    if (error.code !== "invalid_option") throw error;
    const [, index, rest] = /^evaluators\[(\d+)\]: (.*)$/s.exec(error.message) ?? [];
    if (index === undefined || rest === undefined) throw source.problem(path, error.message, error);
    throw source.problem([...path, Number(index)], rest, error);
  }
}

function firstIssue(source: YamlSource, error: z.ZodError): OctavoError {
  const [issue] = error.issues;
  if (issue === undefined) return source.problem([], "is not a configuration", error);
  if (issue.code === "unrecognized_keys") {
    const [key = ""] = issue.keys;
    return source.problem([...issue.path, key], "there is no such setting", error);
  }
  if (issue.code === "invalid_union")
    return source.problem(issue.path, "expected an expectation, or {expect, on_fail}", error);
  return source.problem(issue.path, issue.message, error);
}
