import { type EvalReport, exitCodes, healthDimensions, parseExpectation, dimensionOf } from "@octavo/evals";
import { OctavoError } from "@octavo/protocol/errors";
import { option } from "@octavo/protocol/options";
import { defineCommand } from "../command.js";
import { configFromFlags } from "../eval/config-from-flags.js";
import { outputRows, runnerRows, targetRows } from "../eval/eval-rows.js";
import { runConfig } from "../eval/run-plan.js";

/** `octavo eval run`: answers of a server, and of a baseline beside it, scored. */
export const evalRunCommand = defineCommand({
  options: {
    ...targetRows,
    ...runnerRows,
    ...outputRows,
    expect: option.texts(
      "--expect <expectation...>",
      "what must hold, e.g. 'pass_rate(json_schema) >= 0.97' or 'delta pass_rate(exact_match) >= -0.02'",
    ),
  },
  async run(flags) {
    if (flags.dataset === undefined)
      throw new OctavoError("invalid_option", "--dataset: name at least one file of cases", {
        param: "dataset",
      });
    const health: Record<string, string[]> = Object.fromEntries(healthDimensions.map((name) => [name, []]));
    for (const text of flags.expect ?? []) health[dimensionOf(parseExpectation(text))]?.push(text);
    const isGate = flags.expect !== undefined;
    const config = configFromFlags(flags, { health });
    const report = await runConfig(config, { ...flags, folder: process.cwd(), isGate });
    process.exitCode = isGate
      ? report.gate?.exitCode
      : judgedExit(report, config.file.judge?.max_failure_rate);
  },
});

/** Without expectations only a judge that could not judge is a failure. */
function judgedExit({ evaluators }: EvalReport, mostFailures = 1): number {
  const isBroken = evaluators.some(
    ({ scored, failed }) => failed > 0 && failed / (scored + failed) > mostFailures,
  );
  return isBroken ? exitCodes.judge_broken : exitCodes.pass;
}
