import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import type { MachineRecord, MeteringRecord } from "@octavo/protocol";
import type { LlmSpan } from "@octavo/tracing";
import { SpanStore } from "@octavo/tracing/store";
import { type EndedOctavo, runOctavo, serveOctavo } from "../testing/run-octavo.js";
import { readPriceTable } from "./price-table.js";
import { TraceOutcomes } from "./trace-outcomes.js";

const costs = (...args: readonly string[]): Promise<EndedOctavo> => runOctavo(["costs", ...args]);

interface Report {
  readonly machines: { readonly seconds: number; readonly dollars: number };
  readonly parts: readonly { readonly part: string; readonly seconds: number; readonly dollars: number }[];
  readonly groups: readonly Group[];
  readonly total: Group;
  readonly unreadable: number;
}

interface Group {
  readonly group: string | null;
  readonly requests: number;
  readonly gpu_seconds: number;
  readonly dollars: number | null;
  readonly full_dollars: number | null;
  readonly traces: number;
  readonly successful_traces: number;
  readonly dollars_per_successful_trace: number | null;
  readonly apis: readonly { readonly name: string; readonly dollars: number }[];
}

async function report(...args: readonly string[]): Promise<Report> {
  const { code, out, err } = await costs(...args, "--json");
  assert.equal(code, 0, err);
  return JSON.parse(out) as Report;
}

async function inFolder(act: (folder: string) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "octavo-costs-"));
  try {
    await act(folder);
  } finally {
    await rm(folder, { recursive: true });
  }
}

const minute = 60_000;
const startMs = Date.UTC(2026, 0, 5, 9);
const at = (ms: number): string => new Date(startMs + ms).toISOString();

function request(over: Partial<MeteringRecord>): MeteringRecord {
  return {
    kind: "request",
    feature: "search",
    "inference.backend": "octavo",
    model: "mini",
    gpu_seconds: 1,
    input_tokens: 1000,
    cached_input_tokens: 400,
    output_tokens: 100,
    tenant: "acme",
    time: at(minute),
    outcome: "ok",
    ...over,
  };
}

const machine: MachineRecord = {
  kind: "machine",
  time: at(60 * minute),
  server: "a",
  seconds: 3600,
  computing_seconds: 900,
  overhead_seconds: 100,
  idle_seconds: 2600,
  dollars_per_hour: 7.2,
};

const near = (actual: number | null | undefined, expected: number): void =>
  assert.ok(
    Math.abs((actual ?? Number.NaN) - expected) < 1e-9 * Math.max(1, expected),
    `${actual} is not ${expected}`,
  );

describe("octavo costs", () => {
  it("of a metering log: parts add up to the price, failed tries count against the good traces", async () => {
    await inFolder(async (folder) => {
      const log = join(folder, "log.jsonl");
      const lines: unknown[] = [
        request({ gpu_seconds: 300, trace_id: "t1", outcome: "error" }),
        request({ gpu_seconds: 300, trace_id: "t1", time: at(2 * minute) }),
        request({ gpu_seconds: 100, trace_id: "t2", outcome: "aborted" }),
        request({ gpu_seconds: 100, feature: "chat", tenant: "zeta" }),
        // the record alone, as others write it
        {
          feature: "chat",
          "inference.backend": "vllm",
          model: "8b",
          gpu_seconds: 50,
          input_tokens: 1,
          output_tokens: 1,
        },
        machine,
      ];
      await writeFile(log, `${lines.map((line) => JSON.stringify(line)).join("\n")}\n{"torn\n[]\n`);
      const whole = await report("--log", log, "--compare", "openai/gpt-4o-mini");
      near(whole.machines.dollars, 7.2);
      near(
        whole.parts.reduce((sum, { seconds }) => sum + seconds, 0),
        3600,
      );
      near(
        whole.parts.reduce((sum, { dollars }) => sum + dollars, 0),
        7.2,
      );
      assert.equal(whole.unreadable, 2);
      assert.deepEqual(
        whole.groups.map(({ group, requests, traces, successful_traces: good }) => [
          group,
          requests,
          traces,
          good,
        ]),
        [
          ["search", 3, 2, 1],
          ["chat", 2, 2, 2],
        ],
      );
      const [search] = whole.groups;
      near(search?.dollars, (700 / 3600) * 7.2);
      // 900 of 3,600 seconds were computing: the rest is shared by it
      near(search?.full_dollars, (700 / 900) * 7.2);
      near(search?.dollars_per_successful_trace, (700 / 900) * 7.2);
      near(search?.apis[0]?.dollars, 3 * ((600 * 0.15 + 400 * 0.075 + 100 * 0.6) / 1e6));

      const zeta = await report("--log", log, "--tenant", "zeta", "--by", "tenant");
      near(zeta.total.full_dollars, (100 / 900) * 7.2);
      near(
        zeta.parts.reduce((sum, { dollars }) => sum + dollars, 0),
        7.2,
      );
      const later = await report("--log", log, "--since", at(90_000));
      assert.equal(later.total.requests, 1);

      const evaluations = join(folder, "evaluations.jsonl");
      await writeFile(
        evaluations,
        '{"trace_id":"t1","passed":true}\n{"trace_id":"t1","score":0.2}\n{"trace_id":"t2","label":"pass"}\n',
      );
      const judged = await report("--log", log, "--evaluations", evaluations);
      assert.equal(judged.groups[0]?.successful_traces, 1);
      assert.equal(
        (await report("--log", log, "--evaluations", evaluations, "--pass-score", "0.1")).groups[0]
          ?.successful_traces,
        2,
      );

      const text = await costs("--log", log);
      assert.match(text.out, /1\.00 machine hours, \$7\.2 an hour, \$7\.20/);
      assert.match(text.out, /^idle +2600\.0 +72\.2 % +5\.20$/m);
      assert.match(text.out, /^search +3 +700 /m);
      assert.match(text.out, /prices as of \d{4}-\d\d-\d\d \(check them\)/);
      assert.match(text.out, /2 lines are not records/);
    });
  });

  it("of a trace store: what was not computed is idle, and retries belong to their trace", async () => {
    await inFolder(async (folder) => {
      const store = await SpanStore.open({ folder });
      const add = (
        offsetMs: number,
        trace: string,
        feature: string | undefined,
        isOk: boolean,
        kernelMs: number,
      ): void => store.add(span(startMs + offsetMs, trace, feature, isOk, kernelMs));
      add(0, "1", "search", false, 2000);
      add(1000, "1", "search", true, 3000);
      add(2000, "2", "search", false, 1000);
      add(3000, "3", undefined, true, 4000);
      add(39_000, "4", undefined, true, 0);
      await store.close(30_000);
      const whole = await report("--store", folder, "--rate", "3600");
      // from the first request to the end of the last, which took a second
      near(whole.machines.seconds, 40);
      near(whole.machines.dollars, 40);
      near(
        whole.parts.reduce((sum, { dollars }) => sum + dollars, 0),
        40,
      );
      assert.deepEqual(
        whole.groups.map(({ group, requests, gpu_seconds: seconds, traces, successful_traces: good }) => [
          group,
          requests,
          seconds,
          traces,
          good,
        ]),
        [
          ["search", 3, 6, 2, 1],
          [null, 2, 4, 2, 2],
        ],
      );
      near(whole.groups[0]?.full_dollars, 24);
      near(whole.groups[0]?.dollars_per_successful_trace, 24);
      const search = await report("--store", folder, "--rate", "3600", "--feature", "search");
      near(search.total.full_dollars, 24);
      const evaluations = join(folder, "evaluations.jsonl");
      await writeFile(
        evaluations,
        `{"trace_id":"${traceId("2")}","passed":true}\n{"gen_ai.response.id":"r-3","gen_ai.evaluation.score.label":"fail"}\n`,
      );
      const judged = await report("--store", folder, "--rate", "1", "--evaluations", evaluations);
      assert.deepEqual(
        judged.groups.map(({ successful_traces: good }) => good),
        [2, 1],
      );
      const crowded = await costs("--store", folder, "--since", at(0), "--until", at(5000), "--rate", "1");
      assert.match(crowded.err, /replicas: the requests took 10\.0 s.*\[invalid_option\]/);
      assert.equal((await report("--store", folder, "--replicas", "2")).total.dollars, null);
    });
  });

  it("reads what octavo serve wrote", async () => {
    await inFolder(async (folder) => {
      const log = join(folder, "metering.jsonl");
      const metered = ["--metering-log", log, "--rate", "3600", "--detector-thresholds", "kvUsage=0.8"];
      const server = await serveOctavo("--log-level", "silent", ...metered);
      const response = await fetch(`${server.url}/v1/completions`, {
        method: "POST",
        headers: { "content-type": "application/json", "x-octavo-feature": "greeting" },
        body: JSON.stringify({ prompt: "hello", max_tokens: 4, ignore_eos: true }),
      });
      assert.equal(response.status, 200);
      await response.text();
      assert.equal((await server.stop()).code, 0);
      const { groups, parts, machines } = await report("--log", log);
      assert.equal(groups[0]?.group, "greeting");
      near(groups[0]?.dollars, groups[0]?.gpu_seconds ?? Number.NaN);
      near(
        parts.reduce((sum, { dollars }) => sum + dollars, 0),
        machines.dollars,
      );
    });
  });

  it("questions that make no sense end with one line", async () => {
    await inFolder(async (folder) => {
      const path = join(folder, "x.json");
      await writeFile(path, '{"asOf":"yesterday","prices":[]}\n');
      const log = join(folder, "empty.jsonl");
      await writeFile(log, "");
      for (const [args, expected] of [
        [["--log", "/nonexistent"], /log: \/nonexistent cannot be read.*\[invalid_option\]/],
        [["--prices", path, "--log", log], /is not a price table: .*asOf.*\[invalid_option\]/],
        [["--compare", "nobody/none", "--log", log], /the price table has no nobody\/none/],
        [["--evaluations", path, "--log", log], /line 1 has none of trace_id/],
        [["--by", "weather"], /expected one of feature, tenant, model/],
      ] as const) {
        const ended = await costs(...args);
        assert.equal(ended.code, 1, args.join(" "));
        assert.match(ended.err, expected);
      }
      assert.equal((await costs("--log", log)).out, "no requests\n");
    });
  });

  it("ships a price table that says its date, its sources and that it must be checked", async () => {
    const table = await readPriceTable();
    assert.match(table.note ?? "", /check each/);
    assert.ok(table.prices.length > 0);
    for (const { source } of table.prices) assert.match(source ?? "", /^https:\/\//);
  });
});

describe("traces of a log", () => {
  it("are counted in bounded memory, each once", () => {
    const outcomes = new TraceOutcomes();
    for (let index = 0; index < 250_000; index += 1)
      outcomes.add(`t${index >> 1}`, index, { isOk: index % 2 === 1, verdict: undefined });
    assert.deepEqual(outcomes.counts(), { traces: 125_000, successfulTraces: 125_000 });
  });
});

function traceId(trace: string): string {
  return trace.repeat(32);
}

function span(
  startEpochMs: number,
  trace: string,
  feature: string | undefined,
  isOk: boolean,
  kernelMs: number,
): LlmSpan {
  return {
    identity: {
      traceId: traceId(trace),
      spanId: "b7ad6b7169203331",
      parentSpanId: undefined,
      traceState: undefined,
    },
    side: "server",
    operation: "chat",
    startEpochMs,
    durationMs: 1000,
    outcome: isOk ? { kind: "ok" } : { kind: "error", errorType: "deadline_exceeded", message: undefined },
    provider: "octavo",
    server: undefined,
    request: {},
    response: { id: `r-${trace}`, model: "mini" },
    usage: { inputTokens: 10, outputTokens: 5 },
    stream: undefined,
    serving: {
      requestId: undefined,
      engineVersion: "1",
      quantization: undefined,
      queueMs: undefined,
      timeToFirstTokenMs: undefined,
      prefillMs: undefined,
      decodeMs: undefined,
      kernelMs,
      readerLagMs: undefined,
      gaps: undefined,
      replicaId: undefined,
      queueDepth: undefined,
      preemptions: undefined,
      recomputedTokens: undefined,
      blocksEvicted: undefined,
      evictedPrefixTokens: undefined,
      draftTokens: undefined,
      acceptedDraftTokens: undefined,
      cacheHitRatio: undefined,
      batchSize: undefined,
      prefillTokensInBatch: undefined,
      firstTokenCause: undefined,
      slowestGap: undefined,
    },
    context: feature === undefined ? {} : { feature },
    content: undefined,
  };
}
