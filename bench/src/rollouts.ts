// How well rollouts decide, simulated through the gateway's own state machine: canaries with three points less valid JSON, and none
// that are worse. `--rollouts N` sets how many.
import { parseArgs } from "node:util";
import { rolloutSchema, simulateRollout } from "@octavo/gateway";
import { type BenchCase, report } from "./support/results.js";

const { values: flags } = parseArgs({ options: { rollouts: { type: "string", default: "1000" } } });
const runs = Number(flags.rollouts);

const config = rolloutSchema.parse({
  name: "simulated",
  model: "m",
  primary: { target: "primary" },
  canary: { target: "canary" },
  gates: [{ check: "json_valid" }, { check: "latency" }],
});
const primary = { jsonValid: 0.98, medianMs: 400 };
const worse = { jsonValid: 0.95, medianMs: 400 };

const cases: BenchCase[] = [];
for (const sharedDifficulty of [0.5, 0]) {
  const rollouts = (canary: typeof primary, maxPairs: number, firstSeed: number) =>
    Array.from({ length: runs }, (_, index) =>
      simulateRollout({ config, primary, canary, sharedDifficulty, maxPairs, seed: firstSeed + index }),
    );
  const isRolledBack = ({ decisions }: ReturnType<typeof simulateRollout>): boolean =>
    decisions.at(-1)?.decision === "rollback";
  const caught = rollouts(worse, 1500, 0).filter(isRolledBack);
  const pairs = caught.map((rollout) => rollout.pairs).toSorted((a, b) => a - b);
  const same = rollouts(primary, 8000, 1_000_000);
  const name = sharedDifficulty === 0 ? "failures independent" : "half of the difficulty shared";
  cases.push(
    {
      name: `three points worse, rolled back within 1,500 pairs, ${name}`,
      unit: "%",
      octavo: (100 * caught.length) / runs,
      target: { atLeast: 95 },
      details: { runs, medianPairs: pairs[pairs.length >> 1] ?? null },
    },
    {
      name: `no worse, rolled back, ${name}`,
      unit: "%",
      octavo: (100 * same.filter(isRolledBack).length) / runs,
      target: { atMost: 2 },
      details: {
        runs,
        promoted: same.filter(({ decisions }) => decisions.at(-1)?.decision === "complete").length,
      },
    },
  );
}
report("rollouts", cases);
