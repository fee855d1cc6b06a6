import { dirname, resolve } from "node:path";
import { concerns, evaluationVocabulary, parseGateConfig } from "@octavo/evals";
import { option } from "@octavo/protocol/options";
import { defineCommand } from "../command.js";
import { skippedReport } from "../eval/bare-reports.js";
import { changedSince } from "../eval/changed-files.js";
import { outputRows, runnerRows } from "../eval/eval-rows.js";
import { runConfig } from "../eval/run-plan.js";
import { writeOutputs } from "../eval/write-outputs.js";
import { readTextOf } from "../output/files.js";

/** `octavo eval gate --config eval.yaml`: whether to release. Its exit code says how it ended. */
export const evalGateCommand = defineCommand({
  options: {
    config: option.text("--config <file>", "what is expected", { default: "eval.yaml" }),
    validate: option.toggle("--validate", "check the file without sending any request"),
    changedFiles: option.texts(
      "--changed-files <file...>",
      "run only if one of these is in the file's when.paths",
    ),
    changedSince: option.text(
      "--changed-since <commit>",
      "the same for what git says has changed since, e.g. origin/main",
    ),
    ...runnerRows,
    ...outputRows,
  },
  async run(flags) {
    const config = parseGateConfig(
      flags.config,
      await readTextOf("config", flags.config),
      evaluationVocabulary,
    );
    if (flags.validate) {
      const { checks, assertions } = config;
      process.stdout.write(`${flags.config}: ${assertions.length} expectations, ${checks.length} checks\n`);
      return;
    }
    const changed =
      flags.changedSince === undefined ? flags.changedFiles : await changedSince(flags.changedSince);
    const { when } = config.file;
    if (when !== undefined && changed !== undefined && !concerns(when.paths, changed)) {
      await writeOutputs(skippedReport(config), flags);
      return;
    }
    const report = await runConfig(config, {
      ...flags,
      folder: dirname(resolve(flags.config)),
      isGate: true,
    });
    process.exitCode = report.gate?.exitCode;
  },
});
