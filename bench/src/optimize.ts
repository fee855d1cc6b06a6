// What the optimisers reach: candidates as one batch, GEPA against random search and against ax's, runs where nothing helps, and judge
// calls that a classifier saves. `--only NAME...` and `--runs N` for shorter runs.
import { parseArgs } from "node:util";
import { benchAgainstAx } from "./optimize/against-ax.js";
import { benchCascade } from "./optimize/cascade.js";
import { benchAgainstRandom } from "./optimize/embedded-model.js";
import { benchNullTasks } from "./optimize/null-tasks.js";
import { benchBatched } from "./optimize/batched.js";
import { type BenchCase, report } from "./support/results.js";

const { values: flags } = parseArgs({
  options: {
    only: { type: "string", multiple: true },
    runs: { type: "string", default: "200" },
    cases: { type: "string", default: "400" },
    rounds: { type: "string", default: "3" },
  },
});

const parts: Readonly<Record<string, () => Promise<readonly BenchCase[]>>> = {
  batched: () => benchBatched(Number(flags.rounds)),
  random: () => benchAgainstRandom(),
  ax: () => benchAgainstAx(10),
  null: () => benchNullTasks(Number(flags.runs)),
  cascade: () => benchCascade(Number(flags.cases)),
};

const cases: BenchCase[] = [];
for (const [name, run] of Object.entries(parts))
  if (flags.only === undefined || flags.only.includes(name)) cases.push(...(await run()));
report("optimize", cases);
