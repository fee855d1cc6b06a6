import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { openLesserGpu, withWebGpu } from "../testing/lesser-gpu.js";
import { openTestGpu } from "../testing/software-gpu.js";
import { findAdapters } from "./list-adapters.js";
import { openGpu } from "./open-gpu.js";

const gpu = await openTestGpu();
const skip = typeof gpu === "string" && gpu;

describe("no adapter", () => {
  const none = { requestAdapter: () => Promise.resolve(null) };

  test("is said with what brings one", async () => {
    await assert.rejects(
      withWebGpu(none, () => openGpu()),
      {
        code: "native_unavailable",
        message: /^No GPU can be used: no Vulkan, Metal or Direct3D driver offered an adapter/,
      },
    );
  });

  test("is listed with its reason", async () => {
    const [report, ...others] = await withWebGpu(none, findAdapters);
    assert.deepEqual(others, []);
    assert.match(report?.unusedBecause ?? "", /no Vulkan, Metal or Direct3D driver offers an adapter/);
    const broken = { requestAdapter: () => Promise.reject(new Error("the loader crashed")) };
    assert.equal((await withWebGpu(broken, findAdapters))[0]?.name, undefined);
  });
});

test("an adapter whose workgroups share too little memory is refused by name before a model is read", async () => {
  const limits = { maxComputeWorkgroupStorageSize: 16 * 1024, maxComputeInvocationsPerWorkgroup: 256 };
  const adapter = {
    limits,
    info: { description: "Small GPU" },
    features: new Set(),
  } as unknown as GPUAdapter;
  await assert.rejects(
    withWebGpu({ requestAdapter: () => Promise.resolve(adapter) }, () => openGpu()),
    {
      code: "native_unavailable",
      message: "Small GPU has a maxComputeWorkgroupStorageSize of 16384; Octavo's kernels need 24576.",
    },
  );
});

test(
  "a driver that does not open the adapter, as when other processes have all of it, is named",
  { skip },
  async () => {
    const requestDevice = () =>
      Promise.reject(new Error("vkCreateDevice failed with VK_ERROR_TOO_MANY_OBJECTS"));
    await assert.rejects(openLesserGpu({ requestDevice }), {
      code: "native_unavailable",
      message: /could not be opened, as where other processes have all of it: vkCreateDevice failed/,
    });
  },
);

test(
  "products in f16 are refused by an adapter without f16, and times of ops by one without timestamps",
  { skip },
  async () => {
    await assert.rejects(openLesserGpu({ features: ["subgroups"] }, { matrixUnits: true }), {
      code: "native_unavailable",
      message: /has no subgroup matrices of f16/,
    });
    const lesser = await openLesserGpu({});
    assert.ok(typeof lesser !== "string");
    assert.deepEqual([lesser.features, lesser.subgroups, lesser.hasTimestamps], [[], undefined, false]);
    assert.throws(() => lesser.commands(true), {
      code: "native_unavailable",
      message: /has no timestamps \(timestamp-query\), by which ops are timed/,
    });
    lesser[Symbol.dispose]();
  },
);
