import assert from "node:assert/strict";
import { test } from "node:test";
import * as compare from "./index.js";

test("exports these values and no others", () => {
  assert.deepEqual(Object.keys(compare).toSorted(), ["compareModels", "renderHtml", "renderTable"]);
});
