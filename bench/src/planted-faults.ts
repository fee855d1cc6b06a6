// How often each check finds a fault that is planted in a real engine, and how often it calls a sound one faulty.
// `--seeds N` (default 20) runs of other cases each; `--only TEXT` takes the plants whose name or check contains it.
import { parseArgs } from "node:util";
import { Fleet } from "./planted-faults/fleet.js";
import { plants } from "./planted-faults/plants.js";
import { type BenchCase, report } from "./support/results.js";

const { values } = parseArgs({
  options: { seeds: { type: "string", default: "20" }, only: { type: "string", default: "" } },
});
const seeds = Number(values.seeds);
const figures: BenchCase[] = [];
for (const plant of plants) {
  if (!`${plant.check} ${plant.name}`.includes(values.only)) continue;
  await using fleet = new Fleet();
  const verdicts = { pass: 0, fail: 0, inconclusive: 0 };
  const began = performance.now();
  for (let seed = 1; seed <= seeds; seed++) {
    const result = await plant.judge(fleet, seed);
    verdicts[result.verdict] += 1;
    process.stderr.write(
      `${plant.check}, ${plant.name}, seed ${seed}: ${result.verdict}: ${result.summary}\n`,
    );
  }
  figures.push({
    name: `${plant.check}: ${plant.name}`,
    unit: `of ${seeds} called a failure`,
    octavo: verdicts.fail,
    target: plant.isFaulty ? { atLeast: Math.ceil(0.95 * seeds) } : { atMost: Math.floor(0.05 * seeds) },
    details: { ...verdicts, secondsPerRun: Math.round((performance.now() - began) / seeds / 100) / 10 },
  });
}
report("planted-faults", figures);
