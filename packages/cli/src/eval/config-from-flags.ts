import { basename, extname, resolve } from "node:path";
import { type CheckName, evaluationVocabulary, type GateConfig, parseGateConfig } from "@octavo/evals";
import { OctavoError } from "@octavo/protocol";
import { datasetOptions, evaluatorOf, type TargetFlags } from "./eval-rows.js";

export interface FlagExtras {
  readonly checks?: Readonly<Partial<Record<CheckName, Readonly<Record<string, unknown>>>>>;
  readonly health?: Readonly<Record<string, readonly string[]>>;
}

/** The same configuration as a file's, from flags: one reader checks both. */
export function configFromFlags(flags: TargetFlags, extras: FlagExtras = {}): GateConfig {
  if (flags.target === undefined)
    throw new OctavoError("invalid_option", "--target: name the server to evaluate", { param: "target" });
  const written = {
    version: 1,
    name: flags.name ?? flags.model ?? flags.target,
    seed: flags.seed,
    concurrency: flags.concurrency,
    timeout: flags.timeout,
    request_timeout: flags.requestTimeout,
    parameters: { max_tokens: flags.maxTokens, temperature: flags.temperature },
    targets: {
      candidate: { base_url: flags.target, model: flags.model, api_key_env: flags.apiKeyEnv },
      baseline: flags.baseline && {
        base_url: flags.baseline,
        model: flags.baselineModel,
        api_key_env: flags.baselineKeyEnv,
      },
      replicas: flags.replica?.map((url) => ({
        base_url: url,
        model: flags.model,
        api_key_env: flags.apiKeyEnv,
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

function datasetsOf({ dataset = [], cases, ...flags }: TargetFlags): Readonly<Record<string, unknown>> {
  const options = datasetOptions({ ...flags, answers: flags.answers && resolve(flags.answers) });
  const datasets: Record<string, unknown> = {};
  for (const path of dataset) {
    const stem =
      basename(path, extname(path))
        .replaceAll(/[^\w.:/-]/g, "_")
        .slice(0, 60) || "cases";
    let name = stem;
    for (let number = 2; name in datasets; number += 1) name = `${stem}-${number}`;
    datasets[name] = { path: resolve(path), limit: cases, ...options };
  }
  return datasets;
}

/** Words of a command; quotes keep spaces. No shell is asked. */
function wordsOf(command: string): readonly string[] {
  return [...command.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(
    ([, double, single, bare]) => double ?? single ?? bare ?? "",
  );
}
