import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { EngineFleet } from "./engine-fleet.js";
import { plants } from "./plants.js";

/** One seed of each; `npm run bench -- planted-faults` runs twenty. */
describe("checks on the real engine", () => {
  let fleet: EngineFleet;
  before(() => {
    fleet = new EngineFleet();
  });
  after(() => fleet[Symbol.asyncDispose]());

  for (const plant of plants.filter(({ isLong }) => !isLong)) {
    const expected = plant.isFaulty ? "is found" : "is not called a fault";
    it(`${plant.check}: ${plant.name} ${expected}`, async () => {
      const { verdict, summary, notes } = await plant.judge(fleet, 1);
      assert.equal(verdict === "fail", plant.isFaulty, summary);
      if (plant.check === "quantization")
        assert(notes.some((note) => note.startsWith("forced tokens, json_value: ")));
    });
  }
});
