import { OctavoError } from "@octavo/protocol/errors";
import { option } from "@octavo/protocol/options";
import { defineCommand } from "../command.js";
import { configFromFlags } from "../eval/config-from-flags.js";
import { judgeRows, outputRows, runnerRows, spanRows, targetRows } from "../eval/eval-rows.js";
import { healthOf, runScored } from "./eval-run.js";

const { cases, evaluator, concurrency, seed, timeout, requestTimeout, name } = targetRows;

/** `octavo eval score`: scores the answers that spans recorded; no server under test is asked anything. */
export default defineCommand({
  options: {
    ...spanRows,
    cases,
    evaluator,
    ...judgeRows,
    concurrency,
    seed,
    timeout,
    requestTimeout,
    name,
    ...runnerRows,
    ...outputRows,
    expect: option.texts(
      "--expect <expectation...>",
      "what must hold, e.g. 'pass_rate(no_pii) >= 0.99' or 'p99(ttft) <= 2s'",
    ),
  },
  async run(flags) {
    if (flags.spans === undefined)
      throw new OctavoError("invalid_option", "--spans: name at least one file or folder of spans", {
        param: "spans",
      });
    await runScored(configFromFlags(flags, { health: healthOf(flags.expect), recorded: "candidate" }), flags);
  },
});
