import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { OctavoError } from "@octavo/protocol";
import { parquetWriteFile } from "hyparquet-writer";
import { observationsFromSpans } from "./from-spans.js";
import type { Observation } from "../checks/observation.js";
import { gatherSpans } from "./gather-spans.js";
import { readSpans } from "./read-spans.js";

const reading = { condition: "production" };

async function all(path: string): Promise<readonly Observation[]> {
  const found: Observation[] = [];
  for await (const observation of readSpans(path, reading)) found.push(observation);
  return found;
}

/** As `otlpAttributes` of packages/tracing writes them. */
function otlp(attributes: Readonly<Record<string, unknown>>): readonly object[] {
  return Object.entries(attributes).map(([key, value]) => ({
    key,
    value: Array.isArray(value)
      ? { arrayValue: { values: value.map((stringValue: unknown) => ({ stringValue })) } }
      : typeof value === "number"
        ? Number.isInteger(value)
          ? { intValue: String(value) }
          : { doubleValue: value }
        : { stringValue: value },
  }));
}

const openTelemetry = {
  "gen_ai.operation.name": "chat",
  "gen_ai.response.id": "chatcmpl-1",
  "gen_ai.response.finish_reasons": ["length"],
  "gen_ai.usage.input_tokens": 100,
  "gen_ai.usage.output_tokens": 20,
  "gen_ai.latency.time_in_queue": 0.01,
  "octavo.stream.time_to_first_token": 0.125,
  "octavo.gap.count": 19,
  "octavo.gap.p99": 0.09,
  "octavo.gap.max": 0.095,
  "octavo.tenant.id": "acme",
  "octavo.replica.id": "r2",
  "octavo.cache_hit_ratio": 0.64,
  "octavo.preemptions": 1,
  "octavo.batch_size.mean": 3.5,
  "octavo.prefill_in_batch.max": 4096,
  "octavo.slowest_gap.cause": "prefill_burst",
  "octavo.slowest_gap.duration": 0.091,
  "octavo.slowest_gap.usual": 0.034,
  "octavo.slowest_gap.culprit": "other",
  "octavo.queue_depth": 3,
};

test("reads OpenTelemetry's names from an OTLP body, with evaluation events", () => {
  const body = {
    resourceSpans: [
      {
        resource: { attributes: otlp({ "service.instance.id": "host-1" }) },
        scopeSpans: [
          {
            spans: [
              {
                spanId: "00f067aa0ba902b7",
                startTimeUnixNano: "1700000000000500000",
                endTimeUnixNano: "1700000001500500000",
                kind: 2,
                attributes: otlp(openTelemetry),
                events: [
                  {
                    name: "gen_ai.evaluation.result",
                    attributes: otlp({
                      "gen_ai.evaluation.name": "groundedness",
                      "gen_ai.evaluation.score.value": 0.5,
                    }),
                  },
                ],
                status: {},
              },
              {
                spanId: "1",
                startTimeUnixNano: "1",
                endTimeUnixNano: "2",
                attributes: otlp({ "db.system": "x" }),
              },
            ],
          },
        ],
      },
    ],
  };
  const [seen, ...rest] = observationsFromSpans(body, reading);
  assert.equal(rest.length, 0);
  assert.ok(seen);
  assert.equal(seen.caseId, "chatcmpl-1");
  assert.equal(seen.condition, "production");
  assert.equal(seen.scheduledEpochMs, 1_700_000_000_000.5);
  assert.equal(seen.durationMs, 1500);
  assert.equal(seen.firstTokenMs, 125);
  assert.equal(seen.queueMs, 10);
  assert.equal(seen.finishReason, "length");
  assert.equal(seen.tenant, "acme");
  assert.equal(seen.replica, "r2");
  assert.equal(seen.prefillTokensInBatch, 4096);
  assert.equal(seen.queueDepth, 3);
  assert.deepEqual(seen.gapSummary, { count: 19, p99Ms: 90, maxMs: 95 });
  assert.deepEqual(seen.slowGaps?.[0]?.culprits, ["other"]);
  assert.equal(seen.slowGaps?.[0]?.ms, 91);
  assert.deepEqual(seen.scores, { groundedness: 0.5 });
  assert.deepEqual(observationsFromSpans(body, { ...reading, side: "client" }), []);
});

test("reads the guides' names from spans with a map of attributes", () => {
  const [seen] = observationsFromSpans(
    {
      name: "chat",
      context: { span_id: "0xabc", trace_id: "0xdef" },
      start_time: "2026-01-05T09:00:00.000Z",
      end_time: "2026-01-05T09:00:02.000Z",
      status: { status_code: "ERROR" },
      attributes: {
        "llm.system": "anyscale",
        "fi.span.kind": "LLM",
        "llm.token_count.prompt": 10,
        "llm.token_count.completion": 5,
        "llm.vllm.batch_size": 8,
        "llm.vllm.prefill_in_batch": 4500,
        "llm.vllm.cache_hit_ratio": 0.5,
        "ray.serve.replica_id": "replica-7",
        "cluster.queue_depth": 40,
        "cluster.replica_count": 2,
        tenant_id: "t",
        "octavo.score.exact_match": 1,
      },
    },
    reading,
  );
  assert.ok(seen);
  assert.equal(seen.caseId, "0xabc");
  assert.equal(seen.durationMs, 2000);
  assert.equal(seen.queueDepth, 40);
  assert.equal(seen.replicaCount, 2);
  assert.equal(seen.replica, "replica-7");
  assert.equal(seen.tenant, "t");
  assert.equal(seen.failureCode, "error");
  assert.deepEqual(seen.scores, { exact_match: 1 });
  assert.equal(seen.gapSummary, undefined);
});

test("reads OpenInference's names and leaves embeddings out", () => {
  const span = (kind: string) => ({
    spanId: "1",
    startTimeUnixNano: "1000000",
    endTimeUnixNano: "3000000",
    attributes: {
      "openinference.span.kind": kind,
      "llm.token_count.prompt": 100,
      "llm.token_count.prompt_details.cache_read": 25,
      "llm.finish_reason": "stop",
      "session.id": "s-1",
    },
  });
  const [seen, ...rest] = observationsFromSpans([span("LLM"), span("EMBEDDING")], reading);
  assert.equal(rest.length, 0);
  assert.equal(seen?.cacheHitRatio, 0.25);
  assert.equal(seen?.cluster, "s-1");
  assert.equal(seen?.finishReason, "stop");
});

const row = {
  start_ms: 1000,
  duration_ms: 50,
  span_id: "s",
  side: "server",
  operation: "chat",
  outcome: "error",
  error_type: "queue_full",
  tenant: "small",
  replica: "a",
  input_tokens: 7,
  output_tokens: 3,
  ttft_ms: 20,
  gap_p99_ms: 9,
  gap_max_ms: 11,
  queue_depth: 2,
  slowest_gap_cause: "host",
  attributes: JSON.stringify({ "cluster.replica_count": 4, "octavo.case.id": "case-9", tags: ["beta"] }),
};

test("reads rows of the local store, with the caller's own attributes", () => {
  const [seen] = observationsFromSpans(row, reading);
  assert.ok(seen);
  assert.equal(seen.caseId, "case-9");
  assert.equal(seen.replicaCount, 4);
  assert.equal(seen.failureCode, "queue_full");
  assert.deepEqual(seen.gapSummary, { count: 2, p99Ms: 9, maxMs: 11 });
  assert.equal(seen.slowGaps?.[0]?.ms, 11);
  assert.deepEqual(seen.tags, ["beta"]);
});

test("what is no span is left out, and numbers that are none are unknown", () => {
  for (const value of [null, 3, "x", [], {}, { resourceSpans: [null, { scopeSpans: 7 }] }, { start_ms: 4 }])
    assert.deepEqual(observationsFromSpans(value, reading), []);
  const [seen] = observationsFromSpans(
    { ...row, attributes: "{", input_tokens: "many", queue_depth: null },
    reading,
  );
  assert.equal(seen?.promptTokens, undefined);
  assert.equal(seen?.queueDepth, undefined);
});

test("files are lines or one value, and say which line is wrong", async () => {
  const folder = await mkdtemp(join(tmpdir(), "octavo-spans-"));
  const read = async (name: string, text: string): Promise<readonly Observation[]> => {
    await writeFile(join(folder, name), text);
    return all(join(folder, name));
  };
  try {
    const line = JSON.stringify(row);
    assert.equal((await read("a.jsonl", `${line}\n\n${line}\n`)).length, 2);
    assert.equal((await read("b.json", JSON.stringify([row, row, row], undefined, 2))).length, 3);
    assert.equal((await read("c.jsonl", "")).length, 0);
    const invalid = (part: string) => (thrown: unknown) =>
      thrown instanceof OctavoError && thrown.code === "dataset_invalid" && thrown.message.includes(part);
    await assert.rejects(read("d.jsonl", `${line}\n{"start_ms": 1\n`), invalid("line 2"));
    await assert.rejects(read("e.parquet", "PAR1"), invalid("Parquet"));
    await assert.rejects(all(join(folder, "none")), invalid("cannot be read"));
  } finally {
    await rm(folder, { recursive: true });
  }
});

test("spans of a Parquet file are read group by group, whole numbers of 64 bits too", async () => {
  const folder = await mkdtemp(join(tmpdir(), "octavo-spans-"));
  try {
    const filename = join(folder, "spans.parquet");
    const numbers = Array.from({ length: 25 }, (_, index) => index);
    await Promise.resolve(
      parquetWriteFile({
        filename,
        rowGroupSize: 10,
        columnData: [
          {
            name: "start_ms",
            data: numbers.map((index) => BigInt(1_700_000_000_000 + index)),
            type: "INT64",
          },
          { name: "duration_ms", data: numbers.map((index) => index + 0.5), type: "DOUBLE" },
          { name: "operation", data: numbers.map(() => "chat"), type: "STRING" },
          { name: "input_tokens", data: numbers.map(BigInt), type: "INT64" },
          { name: "output.value", data: numbers.map((index) => `answer ${index}`), type: "STRING" },
        ],
      }),
    );
    const found = await all(filename);
    assert.equal(found.length, 25);
    assert.deepEqual(
      [found[20]?.scheduledEpochMs, found[20]?.durationMs, found[20]?.promptTokens],
      [1_700_000_000_020, 20.5, 20],
    );
    const files = [
      { path: filename, condition: "baseline" },
      { path: filename, condition: "candidate" },
    ];
    assert.deepEqual(
      (await gatherSpans(files)).map(({ condition }) => condition),
      [...numbers.map(() => "baseline"), ...numbers.map(() => "candidate")],
    );
    await assert.rejects(gatherSpans(files, { limits: { calls: 49, characters: 1e9 } }), {
      code: "dataset_invalid",
      message: /spans\.parquet: more than 49 calls, which are held in memory: give a part/,
    });
    await assert.rejects(
      gatherSpans(files, { limits: { calls: 50, characters: 100 } }),
      /more than 100 characters/,
    );
  } finally {
    await rm(folder, { recursive: true });
  }
});
