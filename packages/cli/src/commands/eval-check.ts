import { type CheckName, checkNamed, checkNames, exitCodeOfChecks, type TestBedNeed } from "@octavo/evals";
import { OctavoError } from "@octavo/protocol/errors";
import { option, type OptionType, valueType } from "@octavo/protocol/options";
import { defineCommand } from "../command.js";
import { reportOfSpans } from "../eval/bare-reports.js";
import { configFromFlags } from "../eval/config-from-flags.js";
import {
  type OutputFlags,
  outputRows,
  type RunnerFlags,
  runnerRows,
  spanRows,
  type TargetFlags,
  targetRows,
} from "../eval/eval-rows.js";
import { runConfig } from "../eval/run-plan.js";
import { writeOutputs } from "../eval/write-outputs.js";

/** JSON if the text parses as such, else the text itself. */
const jsonOrText: OptionType<unknown> = {
  expects: "JSON or text",
  accepts: () => true,
  parse(text) {
    try {
      return JSON.parse(text) as unknown;
    } catch {
      return text;
    }
  },
  show: JSON.stringify,
};

/** Flags of asking servers, which recorded spans have no use for. */
const askingFlags = [
  "target",
  "model",
  "baseline",
  "baselineModel",
  "replica",
  "startReplica",
  "dataset",
  "cases",
  "maxTokens",
  "temperature",
] as const;

/** `octavo eval check NAME`: runs one serving check, on a server or on recorded spans. */
export const evalCheckCommand = defineCommand({
  arguments: { "<name>": "which; octavo eval list checks has the names" },
  options: {
    ...targetRows,
    ...runnerRows,
    ...outputRows,
    set: option.of(
      valueType.pairs(jsonOrText),
      "--set <setting=value...>",
      "a setting of the check, such as margin=0.02",
      { default: {} },
    ),
    spans: option.texts(
      "--spans <file...>",
      "judge recorded spans (JSON, JSON lines, Parquet, folders) instead of asking a server; [CONDITION=]FILE",
    ),
    owner: spanRows.owner,
  },
  async run(flags, name: string) {
    const row = checkNamed(name);
    if (flags.spans === undefined) {
      await run(flags, { [row.name]: flags.set });
      return;
    }
    for (const unused of askingFlags)
      if (flags[unused] !== undefined)
        throw new OctavoError(
          "invalid_option",
          `${targetRows[unused].flag}: with --spans no server is asked; leave it out`,
          { param: unused },
        );
    const report = await reportOfSpans(row, flags.spans, flags.set, flags);
    await writeOutputs(report, flags);
    process.exitCode = exitCodeOfChecks(report.checks);
  },
});

/** `octavo eval checks`: runs all checks that the targets allow. */
export const evalChecksCommand = defineCommand({
  options: {
    ...targetRows,
    ...runnerRows,
    ...outputRows,
    recording: option.text("--recording <file>", "spans of production, for traffic-drift to replay"),
    only: option.choices(checkNames, "--only <name...>", "run these, and fail if one cannot run"),
  },
  async run(flags) {
    const given: Readonly<Record<string, unknown>> = { ...flags };
    const checks: Partial<Record<CheckName, Readonly<Record<string, unknown>>>> = {};
    for (const name of flags.only ?? checkNames) {
      const { needs, neededSettings } = checkNamed(name);
      const missing = [
        ...needs.filter((need) => !has(flags, need)).map((need) => flagOf[need]),
        ...neededSettings.filter((setting) => given[setting] === undefined).map((setting) => `--${setting}`),
      ];
      if (missing.length === 0) {
        checks[name] = Object.fromEntries(neededSettings.map((setting) => [setting, given[setting]]));
        continue;
      }
      const message = `${name} cannot run: it needs ${missing.join(", ")}`;
      if (flags.only !== undefined) throw new OctavoError("invalid_option", message, { param: "only" });
      process.stderr.write(`octavo: ${message}\n`);
    }
    if (Object.keys(checks).length === 0)
      throw new OctavoError("invalid_option", "no check can be run with what was given");
    await run(flags, checks);
  },
});

async function run(
  flags: TargetFlags & RunnerFlags & OutputFlags,
  checks: Readonly<Partial<Record<CheckName, Readonly<Record<string, unknown>>>>>,
): Promise<void> {
  const config = configFromFlags(flags, { checks });
  const report = await runConfig(config, {
    ...flags,
    folder: process.cwd(),
    isGate: false,
    scoresCases: false,
  });
  process.exitCode = exitCodeOfChecks(report.checks);
}

const flagOf: Readonly<Record<TestBedNeed, string>> = {
  baseline: "--baseline",
  replicas: "--replica twice",
  startReplica: "--start-replica",
  cases: "--dataset",
  evaluators: "--evaluator",
};

function has(flags: TargetFlags, need: TestBedNeed): boolean {
  switch (need) {
    case "baseline":
      return flags.baseline !== undefined;
    case "replicas":
      return (flags.replica?.length ?? 0) >= 2;
    case "startReplica":
      return flags.startReplica !== undefined;
    case "cases":
      return flags.dataset !== undefined;
    case "evaluators":
      return flags.evaluator !== undefined;
  }
}
