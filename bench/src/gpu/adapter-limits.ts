import type { Gpu } from "@octavo/kernels-webgpu";

/** What the adapter can do at most, measured. */
export interface AdapterLimits {
  /** Bytes read and written a second by copies from one buffer to another. */
  readonly copyBytes: number;
  /** Multiply-adds and additions a second on matrices of f16, counted as two each, and what computed them. */
  readonly f16Operations: number;
  readonly f16Unit: string;
}

export async function measureAdapter(gpu: Gpu): Promise<AdapterLimits> {
  const copyBytes = await copyBandwidth(gpu);
  let best = { operations: 0, unit: "none" };
  for (const kernel of peakKernels(gpu)) {
    const operations = await operationsPerSecond(gpu, kernel);
    if (operations > best.operations) best = { operations, unit: kernel.unit };
  }
  return { copyBytes, f16Operations: best.operations, f16Unit: best.unit };
}

/** The best of several runs. */
async function copyBandwidth({ device, mostBytes, isSoftware }: Gpu): Promise<number> {
  const bytes = Math.min(isSoftware ? 1 << 25 : 1 << 28, mostBytes);
  const [from, to] = [0, 1].map(() => device.createBuffer({ size: bytes, usage: 4 | 8 })) as [
    GPUBuffer,
    GPUBuffer,
  ];
  let best = 0;
  for (let run = 0; run < 6; run++) {
    const encoder = device.createCommandEncoder();
    const count = isSoftware ? 2 : 16;
    for (let i = 0; i < count; i++) encoder.copyBufferToBuffer(from, 0, to, 0, bytes);
    const seconds = await secondsOf(device, encoder.finish());
    best = Math.max(best, (2 * bytes * count) / seconds);
  }
  from.destroy();
  to.destroy();
  return best;
}

interface PeakKernel {
  readonly unit: string;
  readonly code: string;
  readonly threads: number;
  /** Of one workgroup, a round. */
  readonly operations: number;
}

const chains = 8;

/** Products of what lies in registers: independent chains of them, so that latency does not count. */
function peakKernels({ matrixShapes, subgroups, features }: Gpu): PeakKernel[] {
  const hasHalf = features.includes("shader-f16");
  const each = (make: (chain: number) => string): string =>
    Array.from({ length: chains }, (_, chain) => make(chain)).join("\n");
  const kernels: PeakKernel[] = [];
  for (const { result, m, n, k } of matrixShapes.filter(({ component }) => component === "f16")) {
    const numSubgroups = 4;
    const threads = numSubgroups * (subgroups?.max ?? 32);
    const load = (side: string, columns: number, rows: number): string =>
      `subgroupMatrixLoad<subgroup_matrix_${side}<f16, ${columns}, ${rows}>, row_major>(&input, 0u, ${columns}u)`;
    kernels.push({
      unit: `subgroup matrices ${m} x ${n} x ${k}, f16 into ${result}`,
      threads,
      operations: numSubgroups * chains * 2 * m * n * k,
      code: `enable f16; enable subgroups; enable chromium_experimental_subgroup_matrix;
diagnostic(off, chromium.subgroup_matrix_uniformity);
@group(0) @binding(0) var<storage, read_write> input: array<f16>;
@group(0) @binding(1) var<storage, read_write> output: array<${result}>;
@group(0) @binding(2) var<uniform> rounds: vec4<u32>;
@compute @workgroup_size(${threads}) fn main() {
  let a = ${load("left", k, m)};
  let b = ${load("right", n, k)};
  ${each((i) => `var c${i}: subgroup_matrix_result<${result}, ${n}, ${m}>;`)}
  for (var i = 0u; i < rounds.x; i++) {
    ${each((i) => `c${i} = subgroupMatrixMultiplyAccumulate(a, b, c${i});`)}
  }
  ${each((i) => `subgroupMatrixStore<row_major>(&output, ${i * m * n}u, c${i}, ${n}u);`)}
}`,
    });
  }
  const scalars = hasHalf ? ["f16", "f32"] : ["f32"];
  for (const scalar of scalars) {
    kernels.push({
      unit: `${scalar} lanes`,
      threads: 256,
      operations: 256 * chains * 2 * 4,
      code: `${scalar === "f16" ? "enable f16;" : ""}
@group(0) @binding(0) var<storage, read_write> input: array<vec4<${scalar}>>;
@group(0) @binding(1) var<storage, read_write> output: array<vec4<${scalar}>>;
@group(0) @binding(2) var<uniform> rounds: vec4<u32>;
@compute @workgroup_size(256) fn main(@builtin(local_invocation_index) lane: u32) {
  let a = input[lane & 1u];
  let b = input[2u + (lane & 1u)];
  ${each((i) => `var c${i} = vec4<${scalar}>(${scalar}(${i}));`)}
  for (var i = 0u; i < rounds.x; i++) {
    ${each((i) => `c${i} = fma(c${i}, a, b);`)}
  }
  output[lane & 15u] = ${Array.from({ length: chains }, (_, i) => `c${i}`).join(" + ")};
}`,
    });
  }
  return kernels;
}

/** None where the driver does not take the kernel. */
async function operationsPerSecond({ device, isSoftware }: Gpu, kernel: PeakKernel): Promise<number> {
  device.pushErrorScope("validation");
  const pipeline = device.createComputePipeline({
    layout: "auto",
    compute: { module: device.createShaderModule({ code: kernel.code }), entryPoint: "main" },
  });
  if ((await device.popErrorScope()) !== null) return 0;
  const [input, output] = [0, 1].map(() => device.createBuffer({ size: 1 << 16, usage: 128 | 8 })) as [
    GPUBuffer,
    GPUBuffer,
  ];
  const rounds = device.createBuffer({ size: 16, usage: 64 | 8 });
  const group = device.createBindGroup({
    layout: pipeline.getBindGroupLayout(0),
    entries: [input, output, rounds].map((buffer, binding) => ({ binding, resource: { buffer } })),
  });
  const [groups, count] = isSoftware ? [16, 64] : [4096, 4096];
  device.queue.writeBuffer(rounds, 0, Uint32Array.of(count, 0, 0, 0));
  let best = 0;
  for (let run = 0; run < 6; run++) {
    const encoder = device.createCommandEncoder();
    const pass = encoder.beginComputePass();
    pass.setPipeline(pipeline);
    pass.setBindGroup(0, group);
    pass.dispatchWorkgroups(groups);
    pass.end();
    const seconds = await secondsOf(device, encoder.finish());
    best = Math.max(best, (groups * count * kernel.operations) / seconds);
  }
  for (const buffer of [input, output, rounds]) buffer.destroy();
  return best;
}

async function secondsOf(device: GPUDevice, commands: GPUCommandBuffer): Promise<number> {
  await device.queue.onSubmittedWorkDone();
  const started = performance.now();
  device.queue.submit([commands]);
  await device.queue.onSubmittedWorkDone();
  return (performance.now() - started) / 1000;
}
