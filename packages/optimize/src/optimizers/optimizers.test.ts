import assert from "node:assert/strict";
import test from "node:test";
import { optimizePrompts, type OptimizeResult } from "../search/optimize.js";
import { type RulesTask, rulesTask, type RulesTaskOptions } from "../testing/rules-task.js";
import { optimizers } from "./table.js";

const budget = { calls: 900 };

async function tuned(
  task: RulesTask,
  name: string,
  seed: number,
  options: object = {},
): Promise<OptimizeResult> {
  return optimizePrompts({
    ...task,
    teacher: { model: task.teacher },
    optimizer: { name, options },
    budget,
    randomSeed: seed,
  });
}

const small: Omit<RulesTaskOptions, "seed"> = { sizes: { train: 48, validation: 30, heldOut: 60 } };

for (const { name } of optimizers) {
  if (name === "bayesian") continue;
  test(`${name} finds rules of the task and stays inside its budget`, async () => {
    const task = rulesTask({ ...small, seed: 3 });
    const result = await tuned(task, name, 3);
    const gain = task.expectedScore(result.winner) - task.expectedScore(task.seed);
    assert.ok(gain > 0.1, `${name} gained ${gain}`);
    assert.ok(result.spent.calls <= budget.calls);
    assert.equal(result.spentOnHeldOut.calls, 120);
    assert.ok(result.teacher.replies > 0);
  });
}

test("gepa is at least as good as random search on nine of ten seeds at an equal budget", async () => {
  let wins = 0;
  for (let seed = 1; seed <= 10; seed += 1) {
    const task = rulesTask({ ...small, seed });
    const [reflected, random] = [
      await tuned(task, "gepa", seed),
      await tuned(task, "random_search", seed, { variations: 1000 }),
    ];
    const heldOut = (result: OptimizeResult): number => result.heldOut?.winner ?? 0;
    if (heldOut(reflected) >= heldOut(random)) wins += 1;
    assert.equal(reflected.verdict, "better");
  }
  assert.ok(wins >= 9, `${wins} of 10`);
});

test("gepa joins lineages that changed different parts", async () => {
  const task = rulesTask({ ...small, seed: 5, numKinds: 2, numUseless: 0, parts: ["prompt", "tool:look"] });
  const result = await optimizePrompts({
    ...task,
    teacher: { model: task.teacher },
    optimizer: { name: "gepa", options: { merge_batch: 10 } },
    budget: { calls: 1500 },
    randomSeed: 2,
  });
  assert.ok(task.expectedScore(result.winner) > 0.9, JSON.stringify(result.winner));
});

test("where nothing helps, hardly any run calls its winner better", async () => {
  let numBetter = 0;
  for (let seed = 1; seed <= 20; seed += 1) {
    const task = rulesTask({ seed, isNull: true, sizes: { train: 20, validation: 20, heldOut: 60 } });
    const result = await optimizePrompts({
      ...task,
      teacher: { model: task.teacher },
      optimizer: { name: "random_search", options: { variations: 10 } },
      budget: { calls: 300 },
      randomSeed: seed,
    });
    if (result.verdict === "better") numBetter += 1;
  }
  // 20 runs at 2.5 % each: more than 3 has a probability of 0.1 %
  assert.ok(numBetter <= 3, `${numBetter} of 20`);
});
