import assert from "node:assert/strict";
import { appendFile, mkdtemp, readdir, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import { OctavoError } from "@octavo/protocol";
import { parquetWriteFile } from "hyparquet-writer";
import type { LlmSpan } from "../span/llm-span.js";
import { bareSpan, fullSpan } from "../testing/example-spans.js";
import { columns } from "./columns.js";
import { listSegments, segmentName } from "./segments.js";
import { SpanQuery } from "./span-query.js";
import { SpanStore, type SpanStoreOptions } from "./span-store.js";

async function inFolder(act: (folder: string) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "octavo-traces-"));
  try {
    await act(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function written(
  folder: string,
  spans: readonly LlmSpan[],
  options: Partial<SpanStoreOptions> = {},
): Promise<void> {
  const store = await SpanStore.open({ folder, ...options });
  for (const span of spans) store.add(span);
  await store.close(30_000);
  assert.deepEqual(store.counts, { delivered: spans.length, droppedFull: 0, droppedFailed: 0, waiting: 0 });
}

const minute = 60_000;

/** Spans of two tenants, one a minute for each, whose first token takes as many ms as their number. */
function hour(): readonly LlmSpan[] {
  return Array.from({ length: 120 }, (_, index): LlmSpan => {
    const tenantId = index % 2 === 0 ? "acme" : "o'brien";
    return {
      ...bareSpan,
      identity: { ...bareSpan.identity, spanId: index.toString(16).padStart(16, "0") },
      side: "server",
      startEpochMs: Math.floor(index / 2) * minute,
      durationMs: 1000 + index,
      outcome:
        index % 10 === 9 ? { kind: "error", errorType: "queue_full", message: undefined } : { kind: "ok" },
      response: { model: "m" },
      usage: { inputTokens: 10, outputTokens: 2, cacheReadInputTokens: 5 },
      serving: { ...fullSpan.serving!, timeToFirstTokenMs: index },
      context: { tenantId },
    };
  });
}

/** By linear interpolation, as `quantile_cont` has it. */
function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((left, right) => left - right);
  const at = share * (sorted.length - 1);
  const low = sorted[Math.floor(at)] ?? 0;
  return low + (at - Math.floor(at)) * ((sorted[Math.ceil(at)] ?? 0) - low);
}

describe("the store of spans", () => {
  it("gives every column back as it was, from lines and from Parquet", async () => {
    for (const maxSegmentRows of [1000, 2]) {
      await inFolder(async (folder) => {
        await written(folder, [fullSpan, bareSpan], { maxSegmentRows });
        const segments = await listSegments(folder);
        assert.deepEqual(
          segments.map(({ isParquet }) => isParquet),
          [maxSegmentRows === 2],
        );
        using query = await SpanQuery.open(folder);
        const rows = await query.list({}, { limit: 10 });
        for (const [index, span] of [fullSpan, bareSpan].entries()) {
          const expected = Object.fromEntries(columns.map(({ name, of }) => [name, of(span) ?? null]));
          assert.deepEqual(rows[index], expected);
        }
      });
    }
  });

  it("answers for buckets, groups and windows as counting by hand does", async () => {
    await inFolder(async (folder) => {
      const spans = hour();
      // some of it in Parquet, the rest still in lines
      await written(folder, spans, { maxSegmentRows: 50 });
      using query = await SpanQuery.open(folder);

      const byTenant = await query.stats({}, { by: "tenant" });
      assert.deepEqual(
        byTenant.map(({ group, count, errors }) => [group, count, errors]),
        [
          ["acme", 60, 0],
          ["o'brien", 60, 12],
        ],
      );
      const odd = spans.flatMap((_, index) => (index % 2 === 1 ? [index] : []));
      const { ttftMs, durationMs, cacheHitRatio, inputTokens, outputTokens } = byTenant[1]!;
      for (const [share, value] of [
        [0.5, ttftMs.p50],
        [0.95, ttftMs.p95],
        [0.99, ttftMs.p99],
      ] as const) {
        assert.ok(Math.abs((value ?? 0) - quantile(odd, share)) < 1e-9);
      }
      assert.equal(durationMs.p50, 1000 + quantile(odd, 0.5));
      assert.deepEqual([cacheHitRatio, inputTokens, outputTokens], [0.5, 600, 120]);

      const buckets = await query.stats({ tenant: "o'brien" }, { bucketMs: 15 * minute });
      assert.deepEqual(
        buckets.map(({ bucketMs, count }) => [bucketMs, count]),
        [0, 15, 30, 45].map((start) => [start * minute, 15]),
      );
      const window = await query.stats({ sinceMs: 10 * minute, untilMs: 20 * minute, outcome: "error" }, {});
      assert.equal(window[0]?.count, 2);
      assert.deepEqual(await query.stats({ model: "nobody's" }, {}), []);

      const slowest = await query.list({ tenant: "acme" }, { limit: 2, slowest: true });
      assert.deepEqual(
        slowest.map(({ ttft_ms: ms }) => ms),
        [118, 116],
      );
      assert.equal((await query.find("0000000000000007")).length, 1);
      assert.equal((await query.find("0af76519")).length, 120);
      assert.equal((await query.find("' OR 1=1 --")).length, 0);
    });
  });

  it("exports Parquet that reads back", async () => {
    await inFolder(async (folder) => {
      await written(folder, hour());
      using query = await SpanQuery.open(folder);
      const exported = join(folder, "out", `spans-${"0".repeat(13)}-other-1-0.parquet`);
      assert.equal(await query.exportParquet({ tenant: "acme" }, exported), 60);
      using again = await SpanQuery.open(join(folder, "out"));
      assert.equal((await again.stats({}, {}))[0]?.count, 60);
    });
  });

  it("reads segments that lack columns of today", async () => {
    await inFolder(async (folder) => {
      parquetWriteFile({
        filename: join(folder, `${segmentName(1, 0)}.parquet`),
        columnData: [
          { name: "start_ms", data: [1, 2], type: "DOUBLE" },
          { name: "model", data: ["old", "old"], type: "STRING" },
          { name: "gone", data: ["x", "y"], type: "STRING" },
        ],
      });
      using query = await SpanQuery.open(folder);
      assert.equal((await query.stats({ model: "old" }, {}))[0]?.count, 2);
      const [row] = await query.list({}, { limit: 1 });
      assert.deepEqual(
        Object.keys(row ?? {}),
        columns.map(({ name }) => name),
      );
      assert.equal(row?.["tenant"], null);
    });
  });

  it("an empty or absent folder has no spans", async () => {
    await inFolder(async (folder) => {
      using query = await SpanQuery.open(join(folder, "absent"));
      assert.deepEqual(await query.list({}, { limit: 5 }), []);
      assert.deepEqual(await query.stats({}, { bucketMs: minute, by: "model" }), []);
    });
  });

  it("reads around torn lines and foreign files, and finishes what a dead process left", async () => {
    await inFolder(async (folder) => {
      const dead = segmentName(1, 0).replace(`-${process.pid}-`, "-999999999-");
      await written(folder, [bareSpan]);
      await writeFile(join(folder, `${dead}.jsonl`), '{"start_ms":1,"model":"left"}\n{"start_ms":2,"mod');
      await writeFile(join(folder, "notes.txt"), "not spans");
      const [live] = await listSegments(folder).then((all) => all.filter(({ stem }) => !stem.endsWith(dead)));
      await appendFile(`${live?.stem}.jsonl`, '{"start_ms":');
      using query = await SpanQuery.open(folder);
      assert.equal((await query.stats({ model: "left" }, {}))[0]?.count, 1);
      const store = await SpanStore.open({ folder });
      await store.close(30_000);
      assert.ok((await readdir(folder)).includes(`${dead}.parquet`));
      assert.ok(!(await readdir(folder)).includes(`${dead}.jsonl`));
      assert.equal((await query.stats({ model: "left" }, {}))[0]?.count, 1);
    });
  });

  it("keeps within its bounds: what waits, and what lies on the disk", async () => {
    await inFolder(async (folder) => {
      const store = await SpanStore.open({ folder, maxWaiting: 10, maxSegmentRows: 5, maxBytes: 1 });
      for (let index = 0; index < 25; index++) store.add(bareSpan);
      assert.equal(store.counts.droppedFull, 15);
      await store.close(30_000);
      assert.equal(store.counts.delivered, 10);
      assert.deepEqual(await listSegments(folder), []);
      store.add(bareSpan);
      assert.equal(store.counts.droppedFull, 16);
    });
  });

  it("ends segments by their bytes and their age, so that none grows beyond memory or outlives its time", async () => {
    for (const limit of [{ maxSegmentBytes: 1 }, { maxSegmentAgeMs: -1 }]) {
      await inFolder(async (folder) => {
        const store = await SpanStore.open({ folder, ...limit });
        for (let index = 0; index < 3; index++) {
          store.add(bareSpan);
          await store.flush(10_000);
        }
        await store.close(30_000);
        const full = (await listSegments(folder)).filter(({ isParquet }) => isParquet);
        assert.equal(full.length, "maxSegmentBytes" in limit ? 3 : 2);
      });
    }
  });

  it("removes lines that nobody will finish: of machines that are gone, and of its own number before it", async () => {
    await inFolder(async (folder) => {
      const line = '{"start_ms":1,"model":"left"}\n';
      const gone = segmentName(1, 0).replace(/^(spans-\d+)-.*-(\d+)-0$/, "$1-elsewhere-$2-0");
      const fresh = gone.replace("-0000000000001-", "-0000000000002-");
      const earlier = segmentName(3, 0);
      for (const name of [gone, fresh, earlier]) await writeFile(join(folder, `${name}.jsonl`), line);
      await writeFile(join(folder, `${gone}.parquet.x.partial`), "");
      const past = new Date(Date.now() - 10 * 86_400_000);
      for (const name of [`${gone}.jsonl`, `${gone}.parquet.x.partial`])
        await utimes(join(folder, name), past, past);
      const store = await SpanStore.open({ folder });
      await store.close(30_000);
      assert.deepEqual(
        (await readdir(folder)).toSorted(),
        [`${fresh}.jsonl`, `${earlier}.parquet`].toSorted(),
      );
    });
  });

  it("reads and exports where folders' names are patterns, and says what cannot be written", async () => {
    await inFolder(async (outer) => {
      const folder = join(outer, "a[b]*c?$& '");
      await written(folder, [bareSpan, bareSpan], { maxSegmentRows: 1 });
      await written(folder, [bareSpan]);
      using query = await SpanQuery.open(folder);
      assert.equal((await query.stats({}, {}))[0]?.count, 3);
      const file = join(folder, "out.parquet");
      assert.equal(await query.exportParquet({}, file), 3);
      await assert.rejects(query.exportParquet({}, join(file, "below")), {
        code: "invalid_option",
        message: /cannot be written: a file of that name is in the way$/,
      });
    });
  });

  it("a torn line is no span", async () => {
    await inFolder(async (folder) => {
      await writeFile(join(folder, `${segmentName(Date.now(), 0)}.jsonl`), '{"start_ms":1}\n{"start_ms":');
      using query = await SpanQuery.open(folder);
      assert.equal((await query.stats({}, {}))[0]?.count, 1);
      assert.equal((await query.list({}, { limit: 5 })).length, 1);
    });
  });

  it("refuses more buckets than it answers, instead of leaving some out", async () => {
    await inFolder(async (folder) => {
      const lines = Array.from({ length: 10_001 }, (_, index) => `{"start_ms":${index}}\n`);
      await writeFile(join(folder, `${segmentName(1, 0)}.jsonl`), lines.join(""));
      using query = await SpanQuery.open(folder);
      await assert.rejects(query.stats({}, { bucketMs: 1 }), {
        code: "invalid_option",
        message: /longer buckets/,
      });
      assert.equal((await query.stats({}, { bucketMs: 1, limit: 5 })).length, 5);
      assert.equal((await query.stats({}, { bucketMs: 2 })).length, 5001);
    });
  });

  it("counts what the disk does not take, and goes on", async () => {
    await inFolder(async (folder) => {
      const problems: string[] = [];
      const store = await SpanStore.open({ folder, onProblem: (message) => problems.push(message) });
      await rm(folder, { recursive: true });
      store.add(bareSpan);
      await store.flush(10_000);
      assert.equal(store.counts.droppedFailed, 1);
      assert.equal(problems.length, 1);
      await store.close(1000);
    });
  });

  it("refuses a folder that is a file, by name", async () => {
    await inFolder(async (folder) => {
      const path = join(folder, "file");
      await writeFile(path, "");
      await assert.rejects(
        SpanStore.open({ folder: path }),
        (error) => error instanceof OctavoError && error.param === "traceStore",
      );
    });
  });

  it("refuses questions that make no sense", async () => {
    await inFolder(async (folder) => {
      using query = await SpanQuery.open(folder);
      await assert.rejects(query.stats({}, { bucketMs: 0 }), OctavoError);
      await assert.rejects(query.stats({}, { by: "1; DROP TABLE x" as "model" }), OctavoError);
      assert.throws(() => void query.list({}, { limit: -1 }), OctavoError);
      assert.throws(() => void query.list({ sinceMs: Number.NaN }, { limit: 1 }), OctavoError);
    });
  });
});
