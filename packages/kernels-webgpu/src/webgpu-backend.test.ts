import { test } from "node:test";
import { backendConformance } from "@octavo/kernels/testing/backend-conformance";
import { openTestGpu } from "./testing/software-gpu.js";
import { createWebGpuBackend } from "./webgpu-backend.js";

const gpu = await openTestGpu();
if (typeof gpu === "string") test("webgpu backend", { skip: gpu }, () => undefined);
else
  backendConformance("webgpu", () => createWebGpuBackend(gpu, { fusion: false }), {
    numDraws: 100,
    hasFewSteps: true,
  });
