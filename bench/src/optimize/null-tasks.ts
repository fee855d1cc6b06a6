import { optimizePrompts } from "@octavo/optimize";
import { rulesTask } from "@octavo/optimize/testing/rules-task";
import { clopperPearson } from "@octavo/statistics";
import type { BenchCase } from "../support/results.js";

/** Searches where no text changes how often answers are right: how many winners are called better. */
export async function benchNullTasks(runs: number): Promise<readonly BenchCase[]> {
  let numBetter = 0;
  const names = ["gepa", "random_search"];
  for (let seed = 1; seed <= runs; seed += 1) {
    const task = rulesTask({ seed, isNull: true, sizes: { train: 30, validation: 30, heldOut: 100 } });
    const { verdict } = await optimizePrompts({
      ...task,
      teacher: { model: task.teacher },
      optimizer: { name: names[seed % names.length]! },
      budget: { calls: 400 },
      randomSeed: seed,
    });
    if (verdict === "better") numBetter += 1;
  }
  return [
    {
      name: "null tasks whose winner is called better",
      unit: "%",
      octavo: (100 * numBetter) / runs,
      target: { atMost: 5 },
      details: { runs, numBetter, interval: clopperPearson(numBetter, runs) },
    },
  ];
}
