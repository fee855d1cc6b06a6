import assert from "node:assert/strict";
import test from "node:test";
import { openGpu } from "./open-gpu.js";

test("an adapter whose workgroups share too little memory is refused by name before a model is read", async (context) => {
  const limits = { maxComputeWorkgroupStorageSize: 16 * 1024, maxComputeInvocationsPerWorkgroup: 256 };
  const adapter = { limits, info: { description: "Small GPU" }, features: new Set() };
  const before = Object.getOwnPropertyDescriptor(globalThis, "navigator");
  const navigator = { gpu: { requestAdapter: () => Promise.resolve(adapter) } };
  Object.defineProperty(globalThis, "navigator", { value: navigator, configurable: true });
  context.after(() => {
    if (before === undefined) Reflect.deleteProperty(globalThis, "navigator");
    else Object.defineProperty(globalThis, "navigator", before);
  });
  await assert.rejects(openGpu(), {
    code: "native_unavailable",
    message: "Small GPU has a maxComputeWorkgroupStorageSize of 16384; Octavo's kernels need 24576.",
  });
});
