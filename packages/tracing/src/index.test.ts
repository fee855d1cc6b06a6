import assert from "node:assert/strict";
import { it } from "node:test";
import * as tracing from "./index.js";

it("exports these values and no others", () => {
  assert.deepEqual(Object.keys(tracing).toSorted(), [
    "EvaluationExporter",
    "GapSketch",
    "HttpPoster",
    "OtlpExporter",
    "OtlpMetricsExporter",
    "ServerMetrics",
    "Tracing",
    "captureContent",
    "checkOtlpEndpoint",
    "childContext",
    "conventionNames",
    "conventions",
    "formatTraceParent",
    "instrumentOpenAI",
    "parseTraceContext",
    "register",
    "renderAttributes",
    "requestFacts",
    "spanName",
    "usingAttributes",
    "usingTraceParent",
  ]);
});
