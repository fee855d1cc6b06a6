import assert from "node:assert/strict";
import test from "node:test";
import { checkFaultFlags, parseCorruption } from "./fault-flags.js";

test("corruption is a seed, a size and perhaps a pattern, which may hold colons", () => {
  assert.deepEqual(parseCorruption("1:0.05"), { seed: 1, scale: 0.05 });
  assert.deepEqual(parseCorruption("12:2e-3:*.mlp.*"), { seed: 12, scale: 0.002, pattern: "*.mlp.*" });
  assert.deepEqual(parseCorruption("1:1:a:b"), { seed: 1, scale: 1, pattern: "a:b" });
  for (const text of ["", "1", "1:", "-1:1", "1.5:1", "1:much", "1: ", "1:1:", ":1"])
    assert.throws(() => parseCorruption(text), /expected SEED:SCALE/, text);
});

test("no fault is allowed that was not enabled", () => {
  checkFaultFlags({});
  checkFaultFlags({
    enableFaultInjection: true,
    faultStartDelay: 3,
    faultCorruptWeights: { seed: 1, scale: 1 },
  });
  assert.throws(() => checkFaultFlags({ faultStartDelay: 0 }), {
    code: "invalid_option",
    param: "fault-start-delay",
  });
  assert.throws(() => checkFaultFlags({ faultCorruptWeights: { seed: 1, scale: 1 } }), {
    code: "invalid_option",
    param: "fault-corrupt-weights",
  });
});
