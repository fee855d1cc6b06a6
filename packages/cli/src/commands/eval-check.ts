import { type CheckName, checkNamed, checkNames, exitCodeOfChecks, type TestBedNeed } from "@octavo/evals";
import { OctavoError } from "@octavo/protocol";
import { Command, InvalidArgumentError, Option } from "commander";
import { configFromFlags } from "../eval/config-from-flags.js";
import { evalAction } from "../eval/eval-action.js";
import {
  outputFlags,
  type OutputFlags,
  runnerFlags,
  type RunnerFlags,
  targetFlags,
  type TargetFlags,
} from "../eval/eval-flags.js";
import { reportOfSpans } from "../eval/report-of-spans.js";
import { questions, runConfig } from "../eval/run-plan.js";
import { writeOutputs } from "../eval/write-outputs.js";

interface EvalCheckFlags extends TargetFlags, RunnerFlags, OutputFlags {
  readonly set?: Readonly<Record<string, unknown>>;
  readonly spans?: readonly string[];
}

interface EvalChecksFlags extends TargetFlags, RunnerFlags, OutputFlags {
  readonly recording?: string;
  readonly only?: readonly CheckName[];
}

/** `octavo eval check NAME`: one of the serving checks, on a server or on spans that were recorded. */
export function evalCheckCommand(): Command {
  const command = new Command("check")
    .description("make one serving check, on servers or on recorded spans")
    .argument("<name>", "which; octavo eval list checks has their names");
  return outputFlags(runnerFlags(targetFlags(command)))
    .option("--set <setting=value...>", "a setting of the check, such as margin=0.02", collectSetting)
    .option(
      "--spans <file...>",
      "judge recorded spans (JSON, JSON lines, Parquet) instead of asking anybody; [CONDITION=]FILE",
    )
    .action(evalAction(evalCheck));
}

/** `octavo eval checks`: all of them that the targets allow. */
export function evalChecksCommand(): Command {
  const command = new Command("checks").description("make all serving checks that the given servers allow");
  return outputFlags(runnerFlags(targetFlags(command)))
    .option("--recording <file>", "spans of production, for traffic-drift to replay")
    .addOption(new Option("--only <name...>", "these, and none may be left out").choices(checkNames))
    .action(evalAction(evalChecks));
}

async function evalCheck(name: string, flags: EvalCheckFlags): Promise<void> {
  const row = checkNamed(name);
  if (flags.spans !== undefined) {
    const report = await reportOfSpans(row, flags.spans, flags);
    await writeOutputs(report, flags, questions());
    process.exitCode = exitCodeOfChecks(report.checks);
    return;
  }
  await run(flags, { [row.name]: flags.set ?? {} });
}

async function evalChecks(flags: EvalChecksFlags): Promise<void> {
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
    const message = `${name} is left out: it needs ${missing.join(", ")}`;
    if (flags.only !== undefined) throw new OctavoError("invalid_option", message, { param: "only" });
    process.stderr.write(`octavo: ${message}\n`);
  }
  if (Object.keys(checks).length === 0)
    throw new OctavoError("invalid_option", "no check can be made with what was given");
  await run(flags, checks);
}

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

/** `name=value`, the value as JSON where it is some. */
function collectSetting(
  text: string,
  earlier: Readonly<Record<string, unknown>> | undefined,
): Readonly<Record<string, unknown>> {
  const at = text.indexOf("=");
  if (at <= 0) throw new InvalidArgumentError(`expected NAME=VALUE, not "${text}".`);
  const written = text.slice(at + 1);
  let value: unknown;
  try {
    value = JSON.parse(written);
  } catch {
    value = written;
  }
  return { ...earlier, [text.slice(0, at).trim()]: value };
}
