import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Backend, Op, Program } from "@octavo/kernels";
import {
  assertSameBits,
  matrix,
  promptPlan,
  smallestCache,
  vector,
} from "@octavo/kernels/testing/op-harness";
import { SeededRandom } from "@octavo/kernels/testing/seeded-random";
import { Gpu } from "./device/gpu.js";
import { openLesserGpu } from "./testing/lesser-gpu.js";
import { openTestGpu } from "./testing/software-gpu.js";
import { createWebGpuBackend } from "./webgpu-backend.js";
import { embeddingShader } from "./wgsl/linear.js";

const gpu = await openTestGpu();
const skip = typeof gpu === "string" && gpu;

/** Rows of every matrix, its columns, and what a binding holds where it is little: of 8 tiles of 16 KiB in f32, four. */
const [rows, cols, littleBytes] = [250, 128, 72 * 1024];

describe("limits below the model's tensors", { skip }, () => {
  /** Logits of a program whose embedding, linear with a gate, and head all have as many rows. */
  async function logits(on: Gpu): Promise<Float32Array | undefined> {
    using backend = createWebGpuBackend(on);
    const random = new SeededRandom(11);
    const weights = (count: number, width: number) =>
      matrix(backend, count, width, random.floats(count * width));
    using program = backend.compile({
      buffers: [cols, rows, rows / 2],
      ops: [
        { op: "embedding", weight: await weights(rows, cols), out: { buffer: 0 } },
        {
          op: "linear",
          in: { buffer: 0 },
          weight: await weights(rows, cols),
          bias: vector(backend, random.floats(rows)),
          out: { buffer: 1 },
        },
        { op: "gated_activation", in: { buffer: 1 }, out: { buffer: 2 }, activation: "silu" },
        { op: "gather", in: { buffer: 2 }, out: { buffer: 2 } },
      ],
      hidden: { buffer: 2 },
      head: { weight: await weights(rows, rows / 2) },
      maxTokens: 2,
    });
    using cache = backend.createKvCache(smallestCache);
    const plan = promptPlan([rows - 1, 3], [{ kind: "score", target: 0, numLogprobs: 0 }]);
    const result = await backend.execute(program, cache, {
      ...plan,
      outputTokens: Int32Array.of(0),
      wantLogits: true,
    });
    return result.rows[0]?.logits;
  }

  test("are met by parts of whole rows, with the same bits", async () => {
    if (typeof gpu === "string") return;
    const little = await littleGpu(littleBytes);
    const { dispatches } = gpu.counters;
    const expected = await logits(gpu);
    assertSameBits(await logits(little), expected, "logits");
    const whole = gpu.counters.dispatches - dispatches;
    assert.ok(little.counters.dispatches >= whole + 3, "each of the three matrices is taken in parts");
    little[Symbol.dispose]();
  });

  test("are refused by the tensor's name where not even 32 rows fit", async () => {
    const little = await littleGpu(8 * 1024);
    using backend = createWebGpuBackend(little, { ownsGpu: true });
    await assert.rejects(matrix(backend, 1, 256, new Float32Array(256)), {
      code: "out_of_memory",
      message: "Tensor test.matrix takes 32 KiB, but this GPU binds at most 8 KiB at a time.",
    });
  });

  /** The test adapter, with bindings of few bytes. */
  async function littleGpu(bytes: number): Promise<Gpu> {
    const little = await openTestGpu();
    assert.ok(typeof little !== "string");
    Object.defineProperty(little, "mostBytes", { value: bytes });
    return little;
  }
});

describe("attention heads too wide for a workgroup's memory", { skip }, () => {
  for (const [heads, bytes, refused] of [
    [[256], 24 * 1024, "heads of 256 elements, for which attention on a GPU needs 25408 bytes"],
    [[512], 24 * 1024, "heads of 512 elements, for which attention on a GPU needs 24864 bytes"],
    // Fewer queries share the keys of the wider ones, which need less.
    [[256, 512], 25 * 1024 - 512, "heads of 256 elements, for which attention on a GPU needs 25408 bytes"],
  ] as const)
    test(`of ${heads.join(" and ")} are refused by ${bytes} bytes with both sizes`, async () => {
      const least = await openLesserGpu({ limits: { maxComputeWorkgroupStorageSize: bytes } });
      assert.ok(typeof least !== "string");
      assert.equal(least.device.limits.maxComputeWorkgroupStorageSize, bytes);
      using backend = createWebGpuBackend(least, { ownsGpu: true });
      (await attending(backend, [128, 96]))[Symbol.dispose]();
      await assert.rejects(attending(backend, heads), {
        code: "artifact_unsupported",
        message: `The model has ${refused} of memory shared by a workgroup; this one has ${bytes}.`,
      });
    });

  /** A program with a layer of each head size. */
  async function attending(backend: Backend, headDims: readonly number[]): Promise<Program> {
    const width = 3 * Math.max(...headDims);
    return backend.compile({
      buffers: [width, width],
      ops: [
        {
          op: "embedding",
          weight: await matrix(backend, 4, width, new Float32Array(4 * width)),
          out: { buffer: 0 },
        },
        ...headDims.map((headDim, layer): Op => {
          const part = (index: number) => ({ buffer: 0, column: index * headDim, width: headDim });
          const [q, k, v] = [part(0), part(1), part(2)];
          const out = { buffer: 1, column: 0, width: headDim };
          return { op: "attention", q, k, v, out, numHeads: 1, numKvHeads: 1, headDim, scale: 1, layer };
        }),
      ],
      hidden: { buffer: 1 },
      maxTokens: 1,
    });
  }
});

describe("a GPU that fails", { skip }, () => {
  /** A program of one product, and what runs it. */
  async function smallProgram(on: Gpu): Promise<() => Promise<unknown>> {
    const backend = createWebGpuBackend(on);
    const program = backend.compile({
      buffers: [32],
      ops: [
        { op: "embedding", weight: await matrix(backend, 4, 32, new Float32Array(128)), out: { buffer: 0 } },
      ],
      hidden: { buffer: 0 },
      maxTokens: 1,
    });
    const cache = backend.createKvCache(smallestCache);
    return () => backend.execute(program, cache, promptPlan([1], [{ kind: "hidden" }]));
  }

  test("is lost mid-step: the step ends with device_lost, and so do later ones", async () => {
    const lost = await openTestGpu();
    assert.ok(typeof lost !== "string");
    const run = await smallProgram(lost);
    await run();
    const { submits } = lost.counters;
    const step = run();
    assert.equal(lost.counters.submits, submits + 1, "the step is under way");
    lost.device.destroy();
    await assert.rejects(step, { code: "device_lost" });
    await assert.rejects(run(), { code: "device_lost" });
  });

  test("has a driver that refuses a shader: it is named", async () => {
    const broken = await openTestGpu();
    assert.ok(typeof broken !== "string");
    broken.device.createComputePipelineAsync = () => Promise.reject(new Error("VK_ERROR_UNKNOWN"));
    await assert.rejects(broken.compile(embeddingShader({ codes: "f32", scales: "none", group: 32 })), {
      code: "internal_error",
      message: /^The GPU's driver did not compile embedding .*: VK_ERROR_UNKNOWN$/,
    });
    broken[Symbol.dispose]();
  });

  test("runs out of memory after the weights: what had fitted is told", () => {
    const listeners: ((event: { readonly error: object }) => void)[] = [];
    class GPUOutOfMemoryError {
      readonly message = "vkAllocateMemory failed.";
    }
    const device = {
      features: new Set<string>(),
      limits: { maxBufferSize: 1 << 30, maxStorageBufferBindingSize: 1 << 30 },
      lost: new Promise(() => undefined),
      createBuffer: () => ({}),
      addEventListener: (_: string, listener: (typeof listeners)[0]) => listeners.push(listener),
    };
    const info = { vendor: "", architecture: "", device: "", description: "Planted" };
    const planted = new Gpu(device as unknown as GPUDevice, info as unknown as GPUAdapterInfo);
    planted.buffer(3 << 20, "weights");
    planted.buffer(64 << 20, "A layer's keys in the KV cache");
    planted.check();
    for (const listener of listeners) listener({ error: new GPUOutOfMemoryError() });
    assert.throws(() => planted.check(), {
      code: "out_of_memory",
      message:
        /no memory left for the KV cache or activations, after 3 MiB that fitted: vkAllocateMemory failed\. /,
    });
  });
});
