import { resolve } from "node:path";
import { definedFields, OctavoError } from "@octavo/protocol";
import { checkNamed } from "../checks/table.js";
import type { Dataset } from "../datasets/dataset.js";
import { openDataset } from "../datasets/open-dataset.js";
import { evaluatorTable } from "../evaluators/table.js";
import type { JudgeModel } from "../judges/judge.js";
import { openAiJudge } from "../judges/openai-judge.js";
import { selfJudgingWarning } from "../judges/self-judging.js";
import type { EvaluationPlan, PlannedTarget } from "./run-evaluation.js";
import { OpenAiTarget } from "../targets/openai-target.js";
import type { Target } from "../targets/target.js";
import { recordedTarget } from "../spans/span-dataset.js";
import type {
  GateConfig,
  GateConfigFile,
  GateVocabulary,
  ScoredTargetConfig,
  TargetConfig,
} from "../gate/config.js";

/** What the checks' and evaluators' tables allow in a configuration. */
export const evaluationVocabulary: GateVocabulary = {
  checkSettings: (name, settings) => checkNamed(name).checkSettings(settings),
  evaluatorNames(specs, hasJudge) {
    const judge: JudgeModel = {
      name: "a judge",
      ask: () => Promise.reject(new OctavoError("judge_failed", "nobody is asked while a file is read")),
      withModel: () => judge,
    };
    return evaluatorTable.create(specs, hasJudge ? { judge } : {}).map(({ name }) => name);
  },
};

/** What a plan takes of the process that makes it. */
export interface PlanSurroundings {
  /** Where paths of datasets begin. */
  readonly folder: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly signal: AbortSignal;
  /** Starts a replica by the configured command, and is whose it is to end it. */
  readonly startReplica?: (
    command: readonly string[],
    target: (baseUrl: string) => Target,
  ) => Promise<Target>;
}

/**
 * A checked configuration with its files opened and its servers named.
 * @throws OctavoError `invalid_option` for a key that is not in the environment, `dataset_invalid`, `target_unreachable`
 */
export async function planEvaluation(
  config: GateConfig,
  { folder, environment, signal, startReplica }: PlanSurroundings,
): Promise<EvaluationPlan> {
  const { file } = config;
  const planned = (
    name: string,
    target: ScoredTargetConfig,
    path: readonly PropertyKey[],
  ): Promise<PlannedTarget> =>
    "recorded" in target
      ? Promise.resolve(plannedRecorded(name))
      : planTarget(config, name, target, path, environment, signal);
  const candidate = await planned("candidate", file.targets.candidate, ["targets", "candidate"]);
  const baseline =
    file.targets.baseline && (await planned("baseline", file.targets.baseline, ["targets", "baseline"]));
  const replicas: PlannedTarget[] = [];
  for (const [index, replica] of (file.targets.replicas ?? []).entries())
    replicas.push(await planned(`replica-${index + 1}`, replica, ["targets", "replicas", index]));
  const judge = await makeJudge(config, environment, signal);
  const { candidate: written, start_replica: command } = file.targets;
  if ("recorded" in written && config.checks.length > 0)
    throw config.source.problem(
      ["targets", "candidate"],
      "checks send requests of their own, which recorded answers cannot answer: run them with eval check --spans",
    );
  const evaluators = evaluatorTable.create(file.evaluators, judge === undefined ? {} : { judge });
  const judges = new Set(evaluators.map(({ judge: name }) => name));
  return {
    name: file.name,
    seed: file.seed,
    candidate,
    baseline,
    replicas,
    startReplica:
      command === undefined || startReplica === undefined || "recorded" in written
        ? undefined
        : () =>
            startReplica(command, (baseUrl) =>
              targetOf(config, "replica-late", { ...written, base_url: baseUrl }, [], environment),
            ),
    datasets: await Promise.all(
      Object.entries(file.datasets).map(([name, dataset]) =>
        openNamed(config, name, dataset, ["datasets", name], folder),
      ),
    ),
    evaluators,
    ...definedFields({
      labels:
        file.judge?.labels &&
        (await openNamed(config, "labels", file.judge.labels, ["judge", "labels"], folder)),
    }),
    checks: config.checks.map(({ name, settings }) => ({ name, settings: withPaths(settings, folder) })),
    gate: config,
    scoresCases: Object.keys(file.datasets).length > 0,
    concurrency: file.concurrency,
    prices: file.prices && {
      usdPerMillionInputTokens: file.prices.usd_per_million_input_tokens,
      usdPerMillionOutputTokens: file.prices.usd_per_million_output_tokens,
      usdPerMillionCachedTokens: file.prices.usd_per_million_cached_tokens,
    },
    maxReportedCases: file.max_reported_cases,
    maxCheckCases: file.max_check_cases,
    warnings: [...judges].flatMap(
      (name) => selfJudgingWarning(name, [candidate.model, baseline?.model]) ?? [],
    ),
  };
}

function plannedRecorded(name: string): PlannedTarget {
  return { target: recordedTarget(name), url: "recorded spans", model: undefined };
}

async function planTarget(
  config: GateConfig,
  name: string,
  written: TargetConfig,
  path: readonly PropertyKey[],
  environment: PlanSurroundings["environment"],
  signal: AbortSignal,
): Promise<PlannedTarget> {
  const target = targetOf(config, name, written, path, environment);
  return { target, url: target.server.baseUrl, model: await target.modelName(signal) };
}

function targetOf(
  { file, source }: GateConfig,
  name: string,
  written: TargetConfig,
  path: readonly PropertyKey[],
  environment: PlanSurroundings["environment"],
): OpenAiTarget {
  const { max_tokens: maxTokens, temperature, seed } = file.parameters;
  const { model, headers, stream, extra_body: extraBody } = written;
  return new OpenAiTarget({
    name,
    baseUrl: written.base_url,
    timeoutMs: file.request_timeout,
    parameters: { temperature, ...definedFields({ maxTokens, seed, extraBody }) },
    ...definedFields({ model, apiKey: keyOf(written, path, source, environment), headers, stream }),
  });
}

async function makeJudge(
  { file, source }: GateConfig,
  environment: PlanSurroundings["environment"],
  signal: AbortSignal,
): Promise<JudgeModel | undefined> {
  const { judge } = file;
  if (judge === undefined) return undefined;
  if (judge.max_cost_usd !== undefined && judge.usd_per_million_tokens === undefined)
    throw source.problem(["judge", "max_cost_usd"], "a cost takes prices: say usd_per_million_tokens");
  const server = {
    baseUrl: judge.base_url,
    ...definedFields({ apiKey: keyOf(judge, ["judge"], source, environment), headers: judge.headers }),
  };
  const model = judge.model ?? (await new OpenAiTarget({ name: "judge", ...server }).modelName(signal));
  if (model === undefined)
    throw source.problem(["judge"], `${server.baseUrl} does not say which model it serves: name it`);
  return openAiJudge({
    ...server,
    model,
    timeoutMs: file.request_timeout,
    concurrency: file.concurrency,
    ...definedFields({
      extraBody: judge.extra_body,
      maxCalls: judge.max_calls,
      maxCostUsd: judge.max_cost_usd,
      usdPerMillionTokens: judge.usd_per_million_tokens,
    }),
  });
}

function keyOf(
  { api_key_env: name }: Pick<TargetConfig, "api_key_env">,
  path: readonly PropertyKey[],
  source: GateConfig["source"],
  environment: PlanSurroundings["environment"],
): string | undefined {
  if (name === undefined) return undefined;
  const key = environment[name];
  if (key === undefined || key === "")
    throw source.problem([...path, "api_key_env"], `the environment has no ${name}`);
  return key;
}

/** Files that checks read are named from where the configuration stands, as datasets are. */
function withPaths(settings: Readonly<Record<string, unknown>>, folder: string): unknown {
  const { recording } = settings;
  return typeof recording === "string" ? { ...settings, recording: resolve(folder, recording) } : settings;
}

/** That reports list of a dataset. */
const mostPrompts = 8;

/** A dataset under the name that the configuration gives it. */
async function openNamed(
  { source, file: { seed } }: GateConfig,
  name: string,
  { path, answers, prompt, examples, ...options }: GateConfigFile["datasets"][string],
  place: readonly PropertyKey[],
  folder: string,
): Promise<Dataset> {
  const dataset = await openDataset(resolve(folder, path), {
    ...definedFields({
      seed,
      ...options,
      answers: answers && resolve(folder, answers),
      prompt: prompt && resolve(folder, prompt),
      examples: examples && resolve(folder, examples),
    }),
  }).catch((thrown: unknown) => {
    const error = OctavoError.from(thrown);
    throw error.code === "invalid_option" ? source.problem(place, error.message, error) : error;
  });
  const { skipped } = dataset;
  const prompts = new Set<string>();
  return {
    name,
    size: dataset.size,
    prompts: () => [...prompts],
    async *cases() {
      for await (const evalCase of dataset.cases()) {
        const { benchmark, prompt: asked } = evalCase.metadata;
        if (typeof benchmark === "string" && typeof asked === "string" && prompts.size < mostPrompts)
          prompts.add(`${benchmark}: ${asked}`);
        yield evalCase;
      }
    },
    ...definedFields({ skipped: skipped && (() => skipped()) }),
  };
}
