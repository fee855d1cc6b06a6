import assert from "node:assert/strict";
import { it } from "node:test";
import * as tracing from "./index.js";

it("exports these values and no others", () => {
  assert.deepEqual(Object.keys(tracing).toSorted(), [
    "GapSketch",
    "OtlpExporter",
    "Tracing",
    "conventionNames",
    "conventions",
    "formatTraceParent",
    "instrumentOpenAI",
    "parseTraceContext",
    "register",
    "renderAttributes",
    "spanName",
    "usingAttributes",
    "usingTraceParent",
  ]);
});
