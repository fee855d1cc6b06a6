import assert from "node:assert/strict";
import { test } from "node:test";
import * as quantize from "./index.js";

test("exports these values and no others", () => {
  assert.deepEqual(Object.keys(quantize).toSorted(), ["quantize", "quantizeMethods"]);
});
