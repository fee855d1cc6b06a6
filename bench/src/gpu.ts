// A GPU through WebGPU: what it copies and multiplies a second, then decoding and prefill as shares of that, and Python peers on the same
// GPU where an interpreter is named. Answers are held against the CPU's first. `--help` lists the flags.
import { OctavoError } from "@octavo/protocol/errors";
import { type Gpu, openGpu } from "@octavo/kernels-webgpu";
import { openTestGpu } from "@octavo/kernels-webgpu/testing/software-gpu";
import { modelFile } from "./cpu/models/model-file.js";
import { measureAdapter } from "./gpu/adapter-limits.js";
import { readFlags } from "./gpu/flags.js";
import { type GpuJob, measureModel } from "./gpu/measured-model.js";
import { peerCases } from "./gpu/peers.js";
import { type BenchCase, report, thisRun } from "./support/results.js";
import { embeddedModel } from "./support/served-model.js";

const flags = readFlags(process.argv.slice(2));
const say = (line: string): void => void process.stdout.write(`${line}\n`);

async function openAdapter(): Promise<Gpu> {
  try {
    return await openGpu({ adapter: flags.adapter });
  } catch (error) {
    if (OctavoError.from(error).code !== "native_unavailable" || flags.adapter !== undefined) throw error;
    const software = await openTestGpu();
    if (typeof software !== "string") return software;
    throw error;
  }
}

const gpu = await openAdapter();
say(`${gpu.description} (${gpu.features.join(" + ") || "no optional features"})`);
const limits = await measureAdapter(gpu);
const cases: BenchCase[] = [
  { name: "copies, read and written", unit: "GB/s", octavo: limits.copyBytes / 1e9 },
  {
    name: "f16 products, in registers",
    unit: "GFLOP/s",
    octavo: limits.f16Operations / 1e9,
    details: { unit: limits.f16Unit },
  },
];

const sizes = {
  streams: flags.streams,
  promptTokens: flags.promptTokens ?? (gpu.isSoftware ? 40 : 2048),
  newTokens: flags.newTokens ?? (gpu.isSoftware ? 2 : 64),
};
const jobs: (() => GpuJob)[] = [
  () => ({ ...sizes, name: flags.model ?? "octavo-mini", path: flags.model ?? embeddedModel }),
];
for (const shape of flags.shapes ?? (gpu.isSoftware ? [] : ["llama-3.1-8b" as const]))
  for (const type of flags.types)
    jobs.push(() => {
      const { path } = modelFile(flags.modelFolder, shape, type, (file) => say(`writing ${file}`));
      const is8B = shape === "llama-3.1-8b" && !gpu.isSoftware;
      const decodeShare = type.startsWith("q4") ? 40 : 55;
      return {
        ...sizes,
        name: `${shape} ${type}`,
        shape,
        path,
        ...(is8B && { targets: { decodeShare, batchRatio: 12 } }),
      };
    });

/** With products in f32, then in f16 where the adapter has matrix units for them. */
async function* openings(): AsyncGenerator<readonly [gpu: Gpu, suffix: string]> {
  yield [gpu, ""];
  if (flags.lanesOnly || gpu.matrixShapes.length === 0) return;
  let onUnits: Gpu;
  try {
    onUnits = await openGpu({ adapter: flags.adapter, matrixUnits: true });
  } catch (error) {
    if (OctavoError.from(error).code !== "native_unavailable") throw error;
    say(OctavoError.from(error).message);
    return;
  }
  yield [onUnits, ", f16 products"];
  onUnits[Symbol.dispose]();
}

for await (const [opened, suffix] of openings())
  for (const make of jobs) {
    const plain = make();
    const job = { ...plain, name: `${plain.name}${suffix}` };
    say(`${job.name} ...`);
    try {
      const measured = await measureModel(opened, limits, job);
      cases.push(...measured, ...(await peerCases(flags, job, measured)));
    } catch (error) {
      const { code, message } = OctavoError.from(error);
      if (code !== "out_of_memory") throw error;
      say(`${job.name} does not fit: ${message}`);
    }
  }
gpu[Symbol.dispose]();
if (gpu.isSoftware) {
  say(
    "A software adapter: these figures say that everything runs, and nothing of speed; they are printed, not kept.",
  );
  say(JSON.stringify({ benchmark: "gpu", adapter: gpu.description, ...thisRun(), cases }, undefined, 2));
} else report("gpu", cases);
