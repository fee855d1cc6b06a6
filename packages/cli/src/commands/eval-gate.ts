import { readFile } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { concerns, evaluationVocabulary, type GateConfig, parseGateConfig } from "@octavo/evals";
import { OctavoError } from "@octavo/protocol";
import { Command } from "commander";
import { changedSince } from "../eval/changed-files.js";
import { evalAction } from "../eval/eval-action.js";
import { outputFlags, type OutputFlags, runnerFlags, type RunnerFlags } from "../eval/eval-flags.js";
import { questions, runConfig } from "../eval/run-plan.js";
import { skippedReport } from "../eval/skipped-report.js";
import { writeOutputs } from "../eval/write-outputs.js";

interface EvalGateFlags extends RunnerFlags, OutputFlags {
  readonly config: string;
  readonly changedFiles?: readonly string[];
  readonly changedSince?: string;
  readonly validate?: boolean;
}

/** `octavo eval gate --config eval.yaml`: whether to release. Its exit code says how it ended. */
export function evalGateCommand(): Command {
  const command = new Command("gate")
    .description("judge a release by what eval.yaml expects")
    .option("--config <file>", "what is expected", "eval.yaml")
    .option("--validate", "check the file and ask nobody")
    .option("--changed-files <file...>", "run only if one of these is in the file's when.paths")
    .option("--changed-since <commit>", "the same for what git says has changed since, e.g. origin/main");
  return outputFlags(runnerFlags(command)).action(evalAction(evalGate));
}

async function evalGate(flags: EvalGateFlags): Promise<void> {
  const config = await readConfig(flags.config);
  if (flags.validate === true) {
    const { checks, assertions } = config;
    process.stdout.write(`${flags.config}: ${assertions.length} expectations, ${checks.length} checks\n`);
    return;
  }
  const changed =
    flags.changedSince === undefined ? flags.changedFiles : await changedSince(flags.changedSince);
  const { when } = config.file;
  if (when !== undefined && changed !== undefined && !concerns(when.paths, changed)) {
    await writeOutputs(skippedReport(config), flags, questions());
    return;
  }
  const report = await runConfig(config, { ...flags, folder: dirname(resolve(flags.config)), isGate: true });
  process.exitCode = report.gate?.exitCode;
}

async function readConfig(path: string): Promise<GateConfig> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (cause) {
    const { code = "unknown" } = cause as NodeJS.ErrnoException;
    throw new OctavoError("invalid_option", `--config: ${path} cannot be read (${code})`, {
      param: "config",
      cause,
    });
  }
  return parseGateConfig(path, text, evaluationVocabulary);
}
