// How often the checks of load find a fault that is planted in `octavo serve`, and how often they call a sound one faulty.
// `--seeds N` (default 20) runs of other cases and arrivals each; `--only TEXT` takes the plants whose name or check contains it.
import { readFile } from "node:fs/promises";
import { parseArgs } from "node:util";
import { OctavoProcesses } from "./planted-load/octavo-processes.js";
import { loadPlants } from "./planted-load/plants.js";
import { type BenchCase, type BenchResult, report, resultsFolder } from "./support/results.js";

const { values } = parseArgs({
  options: { seeds: { type: "string", default: "20" }, only: { type: "string", default: "" } },
});
const seeds = Number(values.seeds);
const earlier = await readFile(`${resultsFolder}planted-load.json`, "utf8").then(
  (text): BenchResult["cases"] => JSON.parse(text).cases,
  () => [],
);
const figures: BenchCase[] = [];
for (const plant of loadPlants) {
  if (!`${plant.check} ${plant.name}`.includes(values.only)) continue;
  await using processes = new OctavoProcesses();
  const target = await processes.serve("candidate", plant.flags);
  const verdicts = { pass: 0, fail: 0, inconclusive: 0 };
  const startMs = performance.now();
  for (let seed = 1; seed <= seeds; seed++) {
    const { verdict, summary } = await plant.judge(target, processes, seed);
    verdicts[verdict] += 1;
    process.stderr.write(`${plant.check}, ${plant.name}, seed ${seed}: ${verdict}: ${summary}\n`);
  }
  figures.push({
    name: `${plant.check}: ${plant.name}`,
    unit: `of ${seeds} called a failure`,
    octavo: verdicts.fail,
    target: plant.isFaulty ? { atLeast: Math.ceil(0.95 * seeds) } : { atMost: Math.floor(0.05 * seeds) },
    details: { ...verdicts, secondsPerRun: Math.round((performance.now() - startMs) / seeds / 100) / 10 },
  });
  // after each, beside what earlier runs found of the others, since all of them take long
  const others = earlier.filter(({ name }) => figures.every((figure) => figure.name !== name));
  report("planted-load", [...others, ...figures]);
}
