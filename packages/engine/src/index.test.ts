import assert from "node:assert/strict";
import { test } from "node:test";
import * as engine from "./index.js";

test("exports these values and no others", () => {
  assert.deepEqual(Object.keys(engine).toSorted(), [
    "Generation",
    "GrammarCompiler",
    "LLM",
    "compileChatTemplate",
    "createEngine",
    "createProgressBar",
    "createTokenizer",
    "defaultTenant",
    "describeModel",
    "detectContentFormat",
    "faultKinds",
    "openCheckpoint",
    "planKvCache",
    "quantizationNames",
    "resolveModel",
    "resolveSamplingParams",
    "schedulingPolicyNames",
    "supportedArchitectures",
  ]);
});
