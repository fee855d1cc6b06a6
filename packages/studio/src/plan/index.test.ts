import assert from "node:assert/strict";
import { test } from "node:test";
import * as plan from "./index.js";

test("exports these values and no others", () => {
  assert.deepEqual(Object.keys(plan).toSorted(), [
    "hardwareTable",
    "kvFormats",
    "makePlan",
    "measureCpu",
    "renderPlan",
  ]);
});
