import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { machineWarnings } from "./machine-warnings.js";

const usual = { instructionSet: "avx512", numThreads: 2 };

describe("warnings about the machine", () => {
  test("a machine as it should be has none", () => {
    assert.deepEqual(machineWarnings({ info: usual, numProcessors: 2, wantedIsa: undefined }), []);
    assert.deepEqual(machineWarnings({ info: usual, numProcessors: 2, wantedIsa: "avx512" }), []);
    assert.deepEqual(machineWarnings({ info: usual, numProcessors: 2, wantedIsa: "" }), []);
  });

  test("an instruction set that cannot be had is named with the one that runs", () => {
    const [warning, ...others] = machineWarnings({ info: usual, numProcessors: 4, wantedIsa: "avx1024" });
    assert.match(warning ?? "", /avx1024.*avx512 is used/);
    assert.deepEqual(others, []);
  });

  test("portable kernels are announced, unless they were asked for", () => {
    const info = { ...usual, instructionSet: "scalar" };
    assert.match(machineWarnings({ info, numProcessors: 2, wantedIsa: undefined })[0] ?? "", /portable/);
    assert.deepEqual(machineWarnings({ info, numProcessors: 2, wantedIsa: "scalar" }), []);
  });

  test("more threads than processors", () => {
    const info = { ...usual, numThreads: 16 };
    assert.match(
      machineWarnings({ info, numProcessors: 2, wantedIsa: undefined })[0] ?? "",
      /16 threads.*2 processors/,
    );
    assert.match(
      machineWarnings({ info, numProcessors: 1, wantedIsa: undefined })[0] ?? "",
      /is 1 processor /,
    );
  });
});
