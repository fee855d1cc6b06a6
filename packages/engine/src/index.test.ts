import assert from "node:assert/strict";
import { test } from "node:test";
import * as engine from "./index.js";
import * as parts from "./parts.js";

test("exports these values and no others", () => {
  assert.deepEqual(Object.keys(engine).toSorted(), [
    "Generation",
    "LLM",
    "createProgressBar",
    "defaultTenant",
    "describeModel",
    "faultKinds",
    "openCheckpoint",
    "planKvCache",
    "quantizationNames",
    "resolveModel",
    "resolveSamplingParams",
    "schedulingPolicyNames",
    "supportedArchitectures",
    "tool",
  ]);
});

test("exports these parts and no others", () => {
  assert.deepEqual(Object.keys(parts).toSorted(), [
    "GrammarCompiler",
    "compileChatTemplate",
    "createEngine",
    "createTokenizer",
    "detectContentFormat",
    "promptOf",
  ]);
});
