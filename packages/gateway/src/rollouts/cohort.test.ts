import assert from "node:assert/strict";
import test from "node:test";
import { cohortPosition } from "./cohort.js";

test("cohorts grow: who is in at 5 % is in at 25 %, and shares come out", () => {
  const positions = Array.from({ length: 20_000 }, (_, index) => cohortPosition("r", `tenant-${index}`));
  for (const share of [0.01, 0.05, 0.25]) {
    const members = positions.filter((position) => position < share).length / positions.length;
    assert.ok(Math.abs(members - share) < 4 * Math.sqrt((share * (1 - share)) / positions.length));
  }
  assert.ok(positions.every((position) => position >= 0 && position < 1));
  assert.equal(cohortPosition("r", "tenant-1"), positions[1]);
});

test("rollouts deal independently", () => {
  const both = Array.from({ length: 20_000 }, (_, index) => `t${index}`).filter(
    (key) => cohortPosition("a", key) < 0.25 && cohortPosition("b", key) < 0.25,
  );
  assert.ok(Math.abs(both.length / 20_000 - 0.0625) < 0.008);
});
