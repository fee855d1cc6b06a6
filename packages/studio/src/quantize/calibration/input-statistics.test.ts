import assert from "node:assert/strict";
import { test } from "node:test";
import { createCpuBackend } from "@octavo/kernels";
import { InputStatistics } from "./input-statistics.js";

test("the sample comes from all places of a sequence, however long the sequences are", async () => {
  using backend = createCpuBackend({ numThreads: 1 });
  for (const [numSequences, length] of [
    [128, 512],
    [24, 256],
    [256, 256],
    [40, 333],
  ] as const) {
    const statistics = new InputStatistics(1, numSequences * length, false);
    const sequence = Array.from({ length }, (_, position) => Float32Array.of(position));
    for (let index = 0; index < numSequences; index++) await statistics.add(backend, sequence);
    const { sample } = statistics;
    assert.ok(sample.length > 200 && sample.length <= 256, `${sample.length} rows`);
    const places = new Set(sample);
    assert.ok(places.size > sample.length / 2, `${places.size} places of ${sample.length}`);
    const first = sample.filter((position) => position < length / 8).length;
    assert.ok(
      Math.abs(first / sample.length - 1 / 8) < 0.05,
      `${first} of ${sample.length} from the first eighth`,
    );
  }
});
