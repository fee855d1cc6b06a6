import {
  type EvalReport,
  type GateConfig,
  exitCodes,
  healthDimensions,
  parseExpectation,
  dimensionOf,
} from "@octavo/evals";
import { OctavoError } from "@octavo/protocol/errors";
import { option } from "@octavo/protocol/options";
import { defineCommand } from "../command.js";
import { configFromFlags } from "../eval/config-from-flags.js";
import {
  type OutputFlags,
  outputRows,
  type RunnerFlags,
  runnerRows,
  spanRows,
  targetRows,
} from "../eval/eval-rows.js";
import { runConfig } from "../eval/run-plan.js";

/** `octavo eval run`: scores the answers of a server, and of a baseline beside it. */
export default defineCommand({
  options: {
    ...targetRows,
    ...spanRows,
    ...runnerRows,
    ...outputRows,
    expect: option.texts(
      "--expect <expectation...>",
      "what must hold, e.g. 'pass_rate(json_schema) >= 0.97' or 'delta pass_rate(exact_match) >= -0.02'",
    ),
  },
  async run(flags) {
    if (flags.dataset === undefined && flags.spans === undefined)
      refuse("dataset", "name at least one file of cases, or recorded calls with --spans");
    if (flags.spans !== undefined && flags.baseline !== undefined)
      refuse("baseline", "with --spans the recorded answers are the baseline: leave one of the two out");
    const config = configFromFlags(flags, {
      health: healthOf(flags.expect),
      ...(flags.spans !== undefined && { recorded: "baseline" }),
    });
    await runScored(config, flags);
  },
});

/** The expectations by what they are about. */
export function healthOf(expect: readonly string[] = []): Readonly<Record<string, readonly string[]>> {
  const health: Record<string, string[]> = Object.fromEntries(healthDimensions.map((name) => [name, []]));
  for (const text of expect) health[dimensionOf(parseExpectation(text))]?.push(text);
  return health;
}

/** Runs evaluators over cases and sets the exit code. */
export async function runScored(
  config: GateConfig,
  flags: RunnerFlags & OutputFlags & { readonly expect?: readonly string[] | undefined },
): Promise<void> {
  const isGate = flags.expect !== undefined;
  if (config.file.evaluators.length === 0 && !isGate)
    refuse(
      "evaluator",
      "nothing would be scored: name an evaluator (octavo eval list has the names), or what must hold with --expect",
    );
  const report = await runConfig(config, { ...flags, folder: process.cwd(), isGate });
  process.exitCode = isGate ? report.gate?.exitCode : judgedExit(report, config.file.judge?.max_failure_rate);
}

function refuse(param: string, message: string): never {
  throw new OctavoError("invalid_option", `--${param}: ${message}`, { param });
}

/** Without expectations only a target that never answered and a broken judge are failures. */
function judgedExit({ evaluators }: EvalReport, mostFailures = 1): number {
  const own = evaluators.filter(({ target }) => target === "candidate");
  if (own.length > 0 && own.every(({ scored, skipped, failed }) => scored + skipped + failed === 0))
    return exitCodes.target_unreachable;
  const isBroken = evaluators.some(
    ({ scored, failed }) => failed > 0 && failed / (scored + failed) > mostFailures,
  );
  return isBroken ? exitCodes.judge_broken : exitCodes.pass;
}
