// A GPU through WebGPU: what it copies and multiplies a second, then decoding and prefill as shares of that, and Python peers on the same
// GPU where an interpreter is named. Answers are held against the CPU's first. `--help` lists the flags.
import { OctavoError } from "@octavo/protocol/errors";
import { type Gpu, openGpu } from "@octavo/kernels-webgpu";
import { openTestGpu } from "@octavo/kernels-webgpu/testing/software-gpu";
import { modelFile } from "./cpu/models/model-file.js";
import { measureAdapter } from "./gpu/adapter-limits.js";
import { readFlags } from "./gpu/flags.js";
import { type GpuJob, measureModel } from "./gpu/measured-model.js";
import { opTables } from "./gpu/op-times.js";
import { absentPeers, peerCases } from "./gpu/peers.js";
import { writeResults } from "./support/merged-results.js";
import { type BenchCase, printCases, resultsFolder, thisRun } from "./support/results.js";
import { embeddedModel } from "./support/served-model.js";

const flags = readFlags(process.argv.slice(2));
const say = (line: string): void => void process.stdout.write(`${line}\n`);

async function openAdapter(): Promise<Gpu> {
  try {
    return await openGpu({ adapter: flags.adapter, timesSteps: true });
  } catch (error) {
    if (OctavoError.from(error).code !== "native_unavailable" || flags.adapter !== undefined) throw error;
    const software = await openTestGpu({ timesSteps: true });
    if (typeof software !== "string") return software;
    throw error;
  }
}

const endsAt = flags.minutes === undefined ? Infinity : performance.now() + 60_000 * flags.minutes;
const gpu = await openAdapter();
say(`${gpu.description} (${gpu.features.join(" + ") || "no optional features"})`);
const cases: BenchCase[] = [];
const failures: { readonly name: string; readonly error: string }[] = [];
function noteFailure(name: string, error: unknown): void {
  const { message } = OctavoError.from(error);
  failures.push({ name, error: message });
  say(`${name} FAILED: ${message}`);
}

/** All that is known so far: whatever ends the process, what was measured is kept. */
function keep(): void {
  if (gpu.isSoftware) return;
  const results = { benchmark: "gpu", adapter: gpu.description, ...thisRun(), cases, failures };
  writeResults(`${resultsFolder}gpu.json`, results);
}

const limits = await measureAdapter(gpu);
cases.push(
  { name: "copies, read and written", unit: "GB/s", octavo: limits.copyBytes / 1e9 },
  {
    name: "f16 products, in registers",
    unit: "GFLOP/s",
    octavo: limits.f16Operations / 1e9,
    details: { unit: limits.f16Unit },
  },
);
keep();

const sizes = {
  streams: flags.streams,
  promptTokens: flags.promptTokens ?? (gpu.isSoftware ? 40 : 2048),
  newTokens: flags.newTokens ?? (gpu.isSoftware ? 2 : 64),
};
/** Layers of the model that answers are compared with: the same kernels, and a gigabyte or two in place of sixteen. */
const checkedLayers = 2;
const ownModel = flags.model ?? embeddedModel;
const jobs: { readonly name: string; readonly make: () => Omit<GpuJob, "name"> }[] = [
  {
    name: flags.model ?? "octavo-mini",
    make: () => ({ ...sizes, path: ownModel, checkPath: ownModel }),
  },
];
for (const shape of flags.shapes ?? (gpu.isSoftware ? [] : ["llama-3.1-8b" as const]))
  for (const type of flags.types)
    jobs.push({
      name: `${shape} ${type}`,
      make: () => {
        const write = (file: string): void => say(`writing ${file}`);
        const is8B = shape === "llama-3.1-8b" && !gpu.isSoftware;
        return {
          ...sizes,
          shape,
          path: modelFile(flags.modelFolder, shape, type, write).path,
          checkPath: modelFile(flags.modelFolder, shape, type, write, checkedLayers).path,
          ...(is8B && { targets: { decodeShare: type.startsWith("q4") ? 40 : 55, batchRatio: 12 } }),
        };
      },
    });

/** With products in f32, then in f16 where the adapter has matrix units for them. */
async function* openings(): AsyncGenerator<readonly [gpu: Gpu, suffix: string]> {
  yield [gpu, ""];
  if (flags.lanesOnly || gpu.matrixShapes.length === 0) return;
  let onUnits: Gpu;
  try {
    onUnits = await openGpu({ adapter: flags.adapter, matrixUnits: true, timesSteps: true });
  } catch (error) {
    noteFailure("f16 products", error);
    return;
  }
  yield [onUnits, ", f16 products"];
  onUnits[Symbol.dispose]();
}

for await (const [opened, suffix] of openings())
  for (const { name: plain, make } of jobs) {
    const name = `${plain}${suffix}`;
    if (performance.now() > endsAt) {
      noteFailure(name, new OctavoError("deadline_exceeded", `not begun: ${flags.minutes} minutes are over`));
      continue;
    }
    say(`${name} ...`);
    try {
      const job = { ...make(), name };
      const measured = await measureModel(opened, limits, job);
      cases.push(...measured);
      for (const line of opTables(measured)) say(line);
      keep();
      if (performance.now() < endsAt) cases.push(...(await peerCases(flags, job, measured, noteFailure)));
    } catch (error) {
      noteFailure(name, error);
    }
    keep();
  }
gpu[Symbol.dispose]();
if (gpu.isSoftware) {
  say(
    "A software adapter: these figures say that everything runs, and nothing of speed; they are printed, not kept.",
  );
  say(
    JSON.stringify(
      { benchmark: "gpu", adapter: gpu.description, ...thisRun(), cases, failures },
      undefined,
      2,
    ),
  );
} else printCases(cases);
for (const line of absentPeers(flags)) say(line);
if (failures.length > 0) process.exitCode = 1;
