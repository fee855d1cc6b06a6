// What the gateway costs: CPU time of its process for a call and a stream that it passes on, beside the least that any proxy on
// Node takes and beside other gateways (`--peers FOLDER`); how often prompts meet a replica that has their beginning; and what it
// adds to the time of answers, in an open loop.
import { rmSync } from "node:fs";
import { parseArgs } from "node:util";
import { OctavoError } from "@octavo/protocol";
import { addedDelay } from "./gateway/added-delay.js";
import { callCost } from "./gateway/call-cost.js";
import { folder } from "./gateway/contenders.js";
import { prefixHits } from "./gateway/prefix-hits.js";
import { type BenchCase, report } from "./support/results.js";

const { values: flags } = parseArgs({
  options: {
    /** Of calls, for each contender in a round. */
    seconds: { type: "string", default: "1" },
    streams: { type: "string", default: "50" },
    /** Many short ones: what else the machine does then falls on all contenders alike. */
    rounds: { type: "string", default: "11" },
    /** A folder with `portkey/node_modules`, and `litellm` and `vllm-router`, which are virtual environments. */
    peers: { type: "string" },
    cases: { type: "string", default: "cpu,prefix,delay" },
  },
});
const rounds = Number(flags.rounds);
const { peers } = flags;
const cases: Readonly<Record<string, () => Promise<readonly BenchCase[]>>> = {
  cpu: () => callCost({ seconds: Number(flags.seconds), streams: Number(flags.streams), rounds, peers }),
  prefix: () => prefixHits({ rounds: 3, peers }),
  delay: () => addedDelay(Math.min(rounds, 5)),
};

const results: BenchCase[] = [];
try {
  for (const name of flags.cases.split(",")) {
    const measure = cases[name];
    if (measure === undefined)
      throw new OctavoError("invalid_option", `--cases: there is no ${name}`, { param: "cases" });
    results.push(...(await measure()));
  }
  report("gateway", results);
} finally {
  rmSync(folder, { recursive: true });
}
