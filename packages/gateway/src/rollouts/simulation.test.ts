import assert from "node:assert/strict";
import test from "node:test";
import { rolloutSchema } from "./rollout-config.js";
import { simulateRollout } from "./simulation.js";

const config = rolloutSchema.parse({
  name: "int4",
  model: "chat",
  primary: { target: "bf16" },
  canary: { target: "int4" },
  gates: [{ check: "json_valid" }, { check: "latency" }],
});
const good = { jsonValid: 0.98, medianMs: 400 };

for (const sharedDifficulty of [0, 0.5]) {
  test(`three points less valid JSON are rolled back within 1,500 pairs, ${sharedDifficulty} of the difficulty shared`, () => {
    const canary = { jsonValid: 0.95, medianMs: 400 };
    const ended = Array.from({ length: 20 }, (_, seed) =>
      simulateRollout({ config, primary: good, canary, sharedDifficulty, maxPairs: 1500, seed }),
    );
    const rolledBack = ended.filter(({ decisions }) => decisions.at(-1)?.decision === "rollback");
    assert.ok(rolledBack.length >= 19, `${rolledBack.length} of 20`);
  });
}

test("the same model against itself is seldom rolled back, and promoted in the end", () => {
  let rolledBack = 0;
  let promoted = 0;
  for (let seed = 0; seed < 60; seed++) {
    const { decisions } = simulateRollout({
      config,
      primary: good,
      canary: good,
      sharedDifficulty: 0.5,
      maxPairs: 6000,
      seed: 1000 + seed,
    });
    if (decisions.at(-1)?.decision === "rollback") rolledBack++;
    if (decisions.at(-1)?.decision === "complete") promoted++;
  }
  // 60 runs at 2 %: four or more come by chance once in thirty times, these seeds are fixed
  assert.ok(rolledBack <= 3, `${rolledBack} of 60`);
  assert.ok(promoted >= 50, `${promoted} of 60`);
});
