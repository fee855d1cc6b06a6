import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { OctavoProcesses } from "./octavo-processes.js";
import { type LoadPlant, loadPlants } from "./plants.js";

type Judged = Awaited<ReturnType<LoadPlant["judge"]>>;

/**
 * What must be found, by counts. A verdict on measured times is the machine's as well as the server's: the bench has those, over
 * twenty seeds, and each check's own tests plant times that nobody measured.
 */
const expectations: Readonly<Partial<Record<LoadPlant["check"], (judged: Judged) => void>>> = {
  fairness({ result }) {
    if (result.verdict !== "fail") return;
    assert.ok(result.advice.some(({ knob }) => knob.includes("--scheduling-policy fair")));
  },
  jitter({ result, observations }) {
    const mostBeside = (wanted: string) =>
      Math.max(
        ...observations
          .filter(({ condition }) => condition === wanted)
          .map(({ prefillTokensInBatch }) => prefillTokensInBatch ?? 0),
      );
    assert.ok(mostBeside("burst") >= 900, `${mostBeside("burst")} tokens of a long prompt in one step`);
    assert.ok(mostBeside("baseline") < 900, `${mostBeside("baseline")} tokens beside nobody`);
    if (result.verdict !== "fail") return;
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
    assert.equal(result.verdict, "fail", result.summary);
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
      expectations[plant.check]?.(judged);
    });
  }
});
