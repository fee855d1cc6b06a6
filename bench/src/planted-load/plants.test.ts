import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { OctavoProcesses } from "./octavo-processes.js";
import { type LoadPlant, loadPlants } from "./plants.js";

type Judged = Awaited<ReturnType<LoadPlant["judge"]>>;

/** What must be found besides the fault itself. */
const expectations: Readonly<Partial<Record<LoadPlant["check"], (judged: Judged) => void>>> = {
  fairness({ result }) {
    assert.ok(result.advice.some(({ knob }) => knob.includes("--scheduling-policy fair")));
  },
  jitter({ result }) {
    assert.equal(result.advice[0]?.knob, "--max-num-batched-tokens", result.notes.join("\n"));
  },
  "autoscaling-lag"({ result, observations }) {
    assert.ok(observations.some(({ condition, replica }) => condition === "scaled" && replica === "late"));
    assert.ok(
      result.notes.some((note) => /^All \d+ answers/.test(note)),
      "no schedule changes an answer",
    );
  },
  "traffic-drift"({ result, sound }) {
    assert.notEqual(sound?.verdict, "fail", sound?.summary);
    const failed = result.hypotheses.filter(({ verdict }) => verdict === "fail").map(({ name }) => name);
    for (const part of ["prompt tokens", "output tokens", "shares of tenants"])
      assert.ok(
        failed.some((name) => name.includes(part)),
        `${part}: ${failed.join("; ")}`,
      );
  },
};

/** Takes half a minute of processor time: `npm run test:all -- --full`. */
const isSkipped = ({ check }: LoadPlant): boolean =>
  check === "fairness" && process.env["OCTAVO_TEST_FULL"] === undefined;

/** One seed of each fault; `npm run bench -- planted-load` runs twenty, of sound servers too. */
describe("faults of load, planted in octavo serve", () => {
  for (const plant of loadPlants.filter(({ isFaulty, check }) => isFaulty && check in expectations)) {
    it(`${plant.check}: ${plant.name}`, { skip: isSkipped(plant) }, async () => {
      await using processes = new OctavoProcesses();
      const target = await processes.serve("candidate", plant.flags);
      const judged = await plant.judge(target, processes, 1);
      assert.equal(judged.result.verdict, "fail", judged.result.summary);
      expectations[plant.check]?.(judged);
    });
  }
});
