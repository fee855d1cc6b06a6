import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { fixtureCheckpoint } from "@octavo/artifacts/testing/model-fixtures";
import { LLM } from "@octavo/engine";
import { createWebGpuBackend } from "@octavo/kernels-webgpu";
import { openTestGpu } from "@octavo/kernels-webgpu/testing/software-gpu";
import { createServer } from "@octavo/server";

const gpu = await openTestGpu();
const noGpu =
  typeof gpu === "string"
    ? gpu
    : gpu.hasTimestamps
      ? false
      : "the adapter has no timestamps (timestamp-query)";

/** Counters of a kind of op in `/metrics` of a server that has answered once. */
async function countersOf(load: Parameters<typeof LLM.load>[1]): Promise<ReadonlyMap<string, number>> {
  await using llm = await LLM.load(fixtureCheckpoint("llama3"), {
    maxModelLen: 64,
    kvCacheMemoryBytes: 1 << 20,
    ...load,
  });
  const server = createServer({ model: llm, config: { port: 0, logLevel: "silent" } });
  const { url } = await server.listen();
  try {
    const body = JSON.stringify({ prompt: [1, 2, 3], temperature: 0, max_tokens: 3, ignore_eos: true });
    const headers = { "content-type": "application/json" };
    const answer = await fetch(`${url}/v1/completions`, { method: "POST", headers, body });
    assert.equal(answer.status, 200);
    const text = await (await fetch(`${url}/metrics`)).text();
    const lines = text.matchAll(/^octavo:(op_seconds|ops)_total\{.*\bop="(\w+)".*\} (\S+)$/gm);
    return new Map([...lines].map(([, name, op, value]) => [`${name} ${op}`, Number(value)]));
  } finally {
    await server.close();
  }
}

describe("/metrics with --op-times", () => {
  for (const [device, skip] of [
    ["the CPU", false],
    ["a GPU", noGpu],
  ] as const)
    test(`tells what each kind of op took on ${device}, in the same words`, { skip }, async () => {
      const backend = device === "a GPU" && typeof gpu !== "string" ? createWebGpuBackend(gpu) : undefined;
      const found = await countersOf({ backend, opTimes: true });
      for (const op of ["embedding", "linear", "attention", "head"]) {
        assert.ok((found.get(`op_seconds ${op}`) ?? 0) > 0, `${op}: ${JSON.stringify([...found])}`);
        assert.ok((found.get(`ops ${op}`) ?? 0) >= 3, `${op}: ${JSON.stringify([...found])}`);
      }
    });

  test("tells nothing without it", async () => {
    const found = await countersOf({});
    assert.deepEqual(
      [...found.values()].filter((value) => value !== 0),
      [],
    );
  });
});
