// A day of spans at 50 requests a second in the local store: how fast they go in, and how long its questions take.
// `--spans N` for another number, `--folder DIR` to keep and reuse the store.
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import type { LlmSpan } from "@octavo/tracing";
import { SpanQuery, SpanStore } from "@octavo/tracing/store";
import { median } from "./support/median.js";
import { type BenchCase, report } from "./support/results.js";

const { values: flags } = parseArgs({
  options: { spans: { type: "string", default: "4320000" }, folder: { type: "string" } },
});
const numSpans = Number(flags.spans);
const dayMs = 86_400_000;
const startMs = Date.UTC(2026, 0, 1);
const tenants = Array.from({ length: 20 }, (_, index) => `tenant-${index}`);
const models = ["octavo-mini", "qwen3-0.6b", "llama-3.2-1b"];
const samples = 7;

/** Repeatable numbers in [0, 1) by span and purpose. */
function noise(index: number, purpose: number): number {
  let value = Math.imul(index ^ Math.imul(purpose + 1, 0x9e3779b1), 0x85ebca6b);
  value = Math.imul(value ^ (value >>> 13), 0xc2b2ae35);
  return ((value ^ (value >>> 16)) >>> 0) / 2 ** 32;
}

const startOf = (index: number): number => startMs + (index * dayMs) / numSpans;
const tenantOf = (index: number): number => Math.floor(noise(index, 0) ** 2 * tenants.length);
const ttftOf = (index: number): number => 20 + 400 * noise(index, 1) ** 4;

function spanOf(index: number): LlmSpan {
  const ttftMs = ttftOf(index);
  const outputTokens = 1 + Math.floor(noise(index, 2) * 400);
  const gapMs = 8 + 20 * noise(index, 3);
  const durationMs = ttftMs + outputTokens * gapMs;
  const gaps = { count: outputTokens, meanMs: gapMs, p50Ms: gapMs, p99Ms: 2 * gapMs, maxMs: 3 * gapMs };
  const hex = index.toString(16).padStart(16, "0");
  const model = models[index % models.length] ?? "";
  return {
    identity: { traceId: hex + hex, spanId: hex, parentSpanId: undefined, traceState: undefined },
    side: "server",
    operation: "chat",
    startEpochMs: startOf(index),
    durationMs,
    outcome:
      noise(index, 4) < 0.01
        ? { kind: "error", errorType: "queue_full", message: undefined }
        : { kind: "ok" },
    provider: "octavo",
    server: { host: "127.0.0.1", port: 8000 },
    request: { model, stream: true },
    response: { id: `chatcmpl-${hex}`, model, finishReasons: ["stop"], httpStatus: 200, requestId: hex },
    usage: { inputTokens: 500, outputTokens, cacheReadInputTokens: Math.floor(noise(index, 5) * 500) },
    stream: undefined,
    serving: {
      requestId: hex,
      engineVersion: "0.1.0",
      quantization: "bf16",
      replicaId: undefined,
      queueDepth: 0,
      queueMs: ttftMs / 4,
      timeToFirstTokenMs: ttftMs,
      prefillMs: ttftMs / 2,
      decodeMs: durationMs - ttftMs,
      kernelMs: durationMs / 10,
      readerLagMs: 0,
      gaps,
      preemptions: 0,
      recomputedTokens: 0,
      blocksEvicted: 0,
      evictedPrefixTokens: 0,
      draftTokens: 0,
      acceptedDraftTokens: 0,
      cacheHitRatio: noise(index, 5),
      batchSize: { min: 1, mean: 8, max: 32 },
      prefillTokensInBatch: { min: 0, mean: 100, max: 2048 },
      firstTokenCause: "prefill",
      slowestGap: undefined,
    },
    context: { tenantId: tenants[tenantOf(index)] ?? "" },
    content: undefined,
  };
}

/** Writes through the store's own path. Returns spans per second of CPU on the thread that adds them. */
async function fill(folder: string): Promise<number> {
  const store = await SpanStore.open({ folder, maxBytes: 2 ** 40 });
  const before = process.cpuUsage();
  const startedMs = performance.now();
  for (let index = 0; index < numSpans; index++) {
    store.add(spanOf(index));
    if (index % 10_000 === 9999) {
      await store.flush(60_000);
      process.stderr.write(`\r${index + 1} spans`);
    }
  }
  await store.close(3_600_000);
  process.stderr.write("\n");
  assert.equal(store.counts.delivered, numSpans);
  const { user, system } = process.cpuUsage(before);
  process.stderr.write(`filled in ${((performance.now() - startedMs) / 1000).toFixed(0)} s\n`);
  return numSpans / ((user + system) / 1e6);
}

function percentile(values: Float64Array, share: number): number {
  const at = share * (values.length - 1);
  const low = values[Math.floor(at)] ?? 0;
  return low + (at - Math.floor(at)) * ((values[Math.ceil(at)] ?? 0) - low);
}

/** The answers by plain counting. */
async function checkAnswers(query: SpanQuery): Promise<void> {
  const ttfts = tenants.map((): number[] => []);
  const buckets = new Map<number, number>();
  const bucketMs = 300_000;
  for (let index = 0; index < numSpans; index++) {
    ttfts[tenantOf(index)]?.push(ttftOf(index));
    const bucket = Math.floor(startOf(index) / bucketMs) * bucketMs;
    buckets.set(bucket, (buckets.get(bucket) ?? 0) + 1);
  }
  const byTenant = await query.stats({}, { by: "tenant" });
  for (const { group, count, ttftMs } of byTenant) {
    const sorted = Float64Array.from(ttfts[tenants.indexOf(group ?? "")] ?? []).toSorted();
    assert.equal(count, sorted.length);
    for (const [share, value] of [
      [0.5, ttftMs.p50],
      [0.99, ttftMs.p99],
    ] as const) {
      assert.ok(Math.abs((value ?? Number.NaN) - percentile(sorted, share)) < 1e-6, `${group} ${share}`);
    }
  }
  const counted = await query.stats({}, { bucketMs });
  assert.deepEqual(
    counted.map(({ bucketMs: start, count }) => [start, count]),
    [...buckets],
  );
}

const folder = flags.folder ?? (await mkdtemp(join(tmpdir(), "octavo-trace-store-")));
try {
  using existing = await SpanQuery.open(folder);
  const isFilled = (await existing.stats({}, {}))[0]?.count === numSpans;
  const insertRate = isFilled ? undefined : await fill(folder);
  using query = await SpanQuery.open(folder);
  await checkAnswers(query);
  const lastHour = { sinceMs: startMs + dayMs - 3_600_000 };
  const questions: readonly (readonly [string, () => Promise<unknown>])[] = [
    ["all of it: percentiles of three times by tenant", () => query.stats({}, { by: "tenant" })],
    [
      "all of it: percentiles of three times in buckets of 5 minutes",
      () => query.stats({}, { bucketMs: 300_000 }),
    ],
    [
      "one tenant: percentiles in buckets of 5 minutes",
      () => query.stats({ tenant: "tenant-7" }, { bucketMs: 300_000 }),
    ],
    [
      "last hour: percentiles by tenant in minutes",
      () => query.stats(lastHour, { by: "tenant", bucketMs: 60_000 }),
    ],
    ["the 20 slowest first tokens", () => query.list({}, { limit: 20, slowest: true })],
    ["one trace by its id", () => query.find((numSpans >> 1).toString(16).padStart(16, "0"))],
  ];
  const cases: BenchCase[] = [];
  for (const [name, ask] of questions) {
    const times: number[] = [];
    for (let sample = 0; sample < samples; sample++) {
      const before = performance.now();
      await ask();
      times.push(performance.now() - before);
    }
    cases.push({
      name,
      unit: "ms",
      octavo: median(times),
      target: { atMost: 1000 },
      details: { numSpans, times },
    });
  }
  if (insertRate !== undefined) {
    cases.push({ name: "spans written per second of CPU, all threads", unit: "spans/s", octavo: insertRate });
  }
  report("trace-store", cases);
} finally {
  if (flags.folder === undefined) await rm(folder, { recursive: true });
}
