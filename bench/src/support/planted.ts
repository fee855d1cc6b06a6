import { parseArgs } from "node:util";
import type { CheckName, CheckResult } from "@octavo/evals";
import { type BenchCase, report, resultsFolder } from "./results.js";
import { readCases } from "./merged-results.js";

/** A fault, or its absence, and the check that is to tell. */
export interface PlantedFault {
  readonly name: string;
  readonly check: CheckName;
  readonly isFaulty: boolean;
}

/**
 * Judges each plant `--seeds N` times (default 20) by other cases and randomness, and reports how often its check called it a
 * failure. `--only TEXT` takes the plants whose name or check contains it; the others keep what earlier runs found.
 * @param open - readies what all seeds of a plant share, and tells how one of them is judged
 */
export async function judgePlants<Plant extends PlantedFault>(
  benchmark: string,
  plants: readonly Plant[],
  open: (plant: Plant) => Promise<AsyncDisposable & { judge(seed: number): Promise<CheckResult> }>,
): Promise<void> {
  const { values } = parseArgs({
    options: { seeds: { type: "string", default: "20" }, only: { type: "string", default: "" } },
  });
  const seeds = Number(values.seeds);
  const earlier = readCases(`${resultsFolder}${benchmark}.json`, benchmark) as BenchCase[];
  const figures: BenchCase[] = [];
  for (const plant of plants) {
    const title = `${plant.check}: ${plant.name}`;
    if (!title.includes(values.only)) continue;
    await using opened = await open(plant);
    const verdicts = { pass: 0, fail: 0, inconclusive: 0 };
    const startMs = performance.now();
    for (let seed = 1; seed <= seeds; seed++) {
      const { verdict, summary } = await opened.judge(seed);
      verdicts[verdict] += 1;
      process.stderr.write(`${title}, seed ${seed}: ${verdict}: ${summary}\n`);
    }
    figures.push({
      name: title,
      unit: `of ${seeds} called a failure`,
      octavo: verdicts.fail,
      target: plant.isFaulty ? { atLeast: Math.ceil(0.95 * seeds) } : { atMost: Math.floor(0.05 * seeds) },
      details: { ...verdicts, secondsPerRun: Math.round((performance.now() - startMs) / seeds / 100) / 10 },
    });
    // After each, since all of them take long.
    const others = earlier.filter(({ name }) => figures.every((figure) => figure.name !== name));
    report(benchmark, [...others, ...figures]);
  }
}
