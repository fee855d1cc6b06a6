// A GPU through WebGPU: what it copies a second, then decoding and prefill as shares of that. `-- MODEL [ADAPTER]`; default octavo-mini and
// the fastest adapter. Answers are held against the CPU's first.
import assert from "node:assert/strict";
import { LLM } from "@octavo/engine";
import { createWebGpuBackend, type Gpu, openGpu } from "@octavo/kernels-webgpu";
import { decode } from "./steps/step-costs.js";
import { type BenchCase, report } from "./support/results.js";
import { embeddedModel } from "./support/served-model.js";

const [model = embeddedModel, adapter] = process.argv.slice(2);
const maxModelLen = 2304;
const prompt = (length: number): Int32Array => Int32Array.from({ length }, (_, index) => 300 + (index % 900));

/** Bytes read and written a second by copies from one buffer to another, the best of several runs. */
async function copyBandwidth({ device, mostBytes }: Gpu): Promise<number> {
  const bytes = Math.min(1 << 28, mostBytes);
  const [from, to] = [0, 1].map(() => device.createBuffer({ size: bytes, usage: 4 | 8 }));
  assert.ok(from && to);
  let best = 0;
  for (let run = 0; run < 6; run++) {
    const encoder = device.createCommandEncoder();
    const count = 8;
    for (let i = 0; i < count; i++) encoder.copyBufferToBuffer(from, 0, to, 0, bytes);
    const started = performance.now();
    device.queue.submit([encoder.finish()]);
    await device.queue.onSubmittedWorkDone();
    best = Math.max(best, (2 * bytes * count) / ((performance.now() - started) / 1000));
  }
  from.destroy();
  to.destroy();
  return best;
}

/** The first tokens of a greedy answer. */
async function answerOf(llm: LLM): Promise<string> {
  const { text } = await llm.chat([{ role: "user", content: "Name three colours." }], {
    temperature: 0,
    maxTokens: 12,
  });
  return text;
}

async function secondsOf(work: () => Promise<void>): Promise<number> {
  const started = performance.now();
  await work();
  return (performance.now() - started) / 1000;
}

async function expectedAnswer(): Promise<string> {
  await using llm = await LLM.load(model, { maxModelLen });
  return answerOf(llm);
}

const expected = await expectedAnswer();
const gpu = await openGpu({ adapter });
process.stdout.write(`${gpu.description} (${gpu.features.join(" + ") || "no optional features"})\n`);
const bandwidth = await copyBandwidth(gpu);
using backend = createWebGpuBackend(gpu, { ownsGpu: true });
await using llm = await LLM.load(model, { backend, maxModelLen, maxNumBatchedTokens: 2048 });
const found = await answerOf(llm);
assert.equal(found.slice(0, 8), expected.slice(0, 8), "the GPU answers as the CPU does");

const cases: BenchCase[] = [{ name: "copies", unit: "GB/s", octavo: bandwidth / 1e9 }];
const secondsPerStep: number[] = [];
for (const streams of [1, 32]) {
  const tokens = 64;
  await decode(llm.engine, prompt(16), streams, 8);
  const before = { ...gpu.counters };
  const seconds = (await secondsOf(() => decode(llm.engine, prompt(16), streams, tokens))) / tokens;
  const steps = gpu.counters.submits - before.submits;
  secondsPerStep.push(seconds);
  cases.push(
    {
      name: `decode, ${streams} ${streams === 1 ? "stream" : "streams"}`,
      unit: "tokens/s",
      octavo: streams / seconds,
      details: {
        encodeMs: (gpu.counters.encodeMs - before.encodeMs) / steps,
        dispatches: (gpu.counters.dispatches - before.dispatches) / steps,
      },
    },
    {
      name: `decode, ${streams} ${streams === 1 ? "stream" : "streams"}: weights read, of copy bandwidth`,
      unit: "%",
      octavo: (100 * llm.weightBytes) / seconds / bandwidth,
    },
  );
}
const [alone = 0, together = 1] = secondsPerStep;
cases.push({
  name: "decode, 32 streams over 1",
  unit: "x",
  octavo: (32 * alone) / together,
  target: { atLeast: 12 },
});
await decode(llm.engine, prompt(2048).fill(7), 1, 1);
const prefill = await secondsOf(() => decode(llm.engine, prompt(2048), 1, 1));
cases.push({ name: "prefill of 2,048 tokens", unit: "tokens/s", octavo: 2048 / prefill });
if (/swiftshader|llvmpipe/i.test(gpu.description)) {
  process.stdout.write("A software adapter: these figures say that everything runs, and nothing of speed.\n");
  for (const { name, octavo, unit } of cases) process.stdout.write(`${name}: ${octavo.toFixed(2)} ${unit}\n`);
} else report("gpu", cases);
