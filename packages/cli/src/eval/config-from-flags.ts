import { basename, extname, resolve } from "node:path";
import { type CheckName, evaluationVocabulary, type GateConfig, parseGateConfig } from "@octavo/evals";
import { OctavoError } from "@octavo/protocol";
import { datasetOptions, evaluatorOf, type SpanFlags, type TargetFlags } from "./eval-rows.js";

/** What of the flags a configuration is made from; commands leave out what they do not have. */
export type ConfigFlags = Partial<TargetFlags> & Partial<SpanFlags>;

export interface FlagExtras {
  /** Which target is the answers that `--spans` recorded. */
  readonly recorded?: "candidate" | "baseline";
  readonly checks?: Readonly<Partial<Record<CheckName, Readonly<Record<string, unknown>>>>>;
  readonly health?: Readonly<Record<string, readonly string[]>>;
}

/** A configuration from flags, checked by the reader of eval.yaml. */
export function configFromFlags(flags: ConfigFlags, extras: FlagExtras = {}): GateConfig {
  const recorded = { recorded: true };
  const stream = flags.noStream === true ? false : undefined;
  if (flags.target === undefined && extras.recorded !== "candidate")
    throw new OctavoError("invalid_option", "--target: name the server to evaluate", { param: "target" });
  const written = {
    version: 1,
    name: flags.name ?? flags.model ?? flags.target ?? "recorded answers",
    seed: flags.seed,
    concurrency: flags.concurrency,
    timeout: flags.timeout,
    request_timeout: flags.requestTimeout,
    parameters: { max_tokens: flags.maxTokens, temperature: flags.temperature },
    targets: {
      candidate:
        extras.recorded === "candidate"
          ? recorded
          : { base_url: flags.target, model: flags.model, api_key_env: flags.apiKeyEnv, stream },
      baseline:
        extras.recorded === "baseline"
          ? recorded
          : flags.baseline && {
              base_url: flags.baseline,
              model: flags.baselineModel,
              api_key_env: flags.baselineKeyEnv,
              stream,
            },
      replicas: flags.replica?.map((url) => ({
        base_url: url,
        model: flags.model,
        api_key_env: flags.apiKeyEnv,
        stream,
      })),
      start_replica: flags.startReplica === undefined ? undefined : wordsOf(flags.startReplica),
    },
    datasets: datasetsOf(flags),
    judge: flags.judge && {
      base_url: flags.judge,
      model: flags.judgeModel,
      api_key_env: flags.judgeKeyEnv,
    },
    evaluators: (flags.evaluator ?? []).map(evaluatorOf),
    checks: extras.checks ?? {},
    health: extras.health ?? {},
  };
  return parseGateConfig(undefined, JSON.stringify(written), evaluationVocabulary, {
    needsExpectations: false,
  });
}

function datasetsOf({
  dataset = [],
  cases,
  spans = [],
  owner,
  ...flags
}: ConfigFlags): Readonly<Record<string, unknown>> {
  const { format, columns, delimiter, answers, prompt, examples } = flags;
  const options = datasetOptions({
    format,
    columns,
    delimiter,
    answers: answers && resolve(answers),
    prompt: prompt && resolve(prompt),
    examples: examples && resolve(examples),
  });
  const datasets: Record<string, unknown> = {};
  const add = (path: string, how: object): void => {
    const stem =
      basename(path, extname(path))
        .replaceAll(/[^\w.:/-]/g, "_")
        .slice(0, 60) || "cases";
    let name = stem;
    for (let number = 2; name in datasets; number += 1) name = `${stem}-${number}`;
    datasets[name] = { path: resolve(path), limit: cases, ...how };
  };
  for (const path of dataset) add(path, options);
  for (const path of spans) add(path, { format: "spans", owner });
  return datasets;
}

/** Splits a command into words; quotes keep spaces. No shell is involved. */
function wordsOf(command: string): readonly string[] {
  return [...command.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(
    ([, double, single, bare]) => double ?? single ?? bare ?? "",
  );
}
