import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import { type LanguageModel, LLM, type StepRecord } from "@octavo/engine";
import {
  machineRecord,
  type MachineRecord,
  meteringRecord,
  type MeteringRecord,
  OctavoError,
} from "@octavo/protocol";
import * as fc from "fast-check";
import { pino } from "pino";
import type { ServerConfig } from "../config.js";
import { createServer } from "../create-server.js";
import { BoundedLabels } from "../metrics/bounded-labels.js";
import { FakeLanguageModel } from "../testing/fake-language-model.js";
import { octavoMiniPath } from "../testing/octavo-mini.js";
import { parseExposition, type ParsedFamily } from "../testing/parse-exposition.js";
import { MachineClock } from "./machine-clock.js";
import { MeteringLog } from "./metering-log.js";

interface Stage {
  readonly url: string;
  readonly metrics: () => Promise<ReadonlyMap<string, ParsedFamily>>;
  readonly post: (
    path: string,
    body: unknown,
    headers?: Readonly<Record<string, string>>,
  ) => Promise<Response>;
}

interface Metered {
  readonly requests: readonly MeteringRecord[];
  readonly machine: readonly MachineRecord[];
}

/** What the metering log of a server holds after `act`. */
async function metered(
  act: (stage: Stage) => Promise<void>,
  config: Partial<ServerConfig> = {},
  model: LanguageModel = new FakeLanguageModel(),
): Promise<Metered> {
  const folder = await mkdtemp(join(tmpdir(), "octavo-metering-"));
  const path = join(folder, "metering.jsonl");
  try {
    const meteringLog = await MeteringLog.open({ path });
    const server = createServer({
      model,
      config: { port: 0, servedModelNames: ["fake"], ...config },
      logger: pino({ level: "silent" }),
      meteringLog,
    });
    const { url } = await server.listen();
    try {
      await act({
        url,
        metrics: async () => parseExposition(await (await fetch(`${url}/metrics`)).text()),
        post: (to, body, headers = {}) =>
          fetch(url + to, {
            method: "POST",
            headers: { "content-type": "application/json", ...headers },
            body: JSON.stringify(body),
          }),
      });
    } finally {
      await server.drain(5000);
    }
    const lines = (await readFile(path, "utf8"))
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as object);
    const isMachine = (line: object): boolean => "kind" in line && line.kind === "machine";
    return {
      requests: lines.filter((line) => !isMachine(line)).map((line) => meteringRecord.parse(line)),
      machine: lines.filter(isMachine).map((line) => machineRecord.parse(line)),
    };
  } finally {
    await rm(folder, { recursive: true });
  }
}

function sumOf(family: ParsedFamily | undefined): number {
  return (family?.samples ?? []).reduce((sum, { value }) => sum + value, 0);
}

describe("metering", () => {
  it("writes a cost record for every endpoint", async () => {
    const ask = { max_tokens: 3 };
    const messages = [{ role: "user", content: "hi" }];
    const { requests, machine } = await metered(
      async ({ post }) => {
        const tags = { "x-tenant-id": "acme", "x-octavo-feature": "support-intent-classifier" };
        await (await post("/v1/chat/completions", { ...ask, messages }, tags)).text();
        const metadata = { feature: "search" };
        await (await post("/v1/chat/completions", { ...ask, messages, metadata, stream: true })).text();
        await (await post("/v1/completions", { ...ask, prompt: ["a", "b"], metadata }, tags)).text();
        await (await post("/v1/messages", { ...ask, model: "fake", messages, metadata })).text();
        await (await post("/v1/responses", { input: "hi", max_output_tokens: 3, metadata })).text();
        await (await post("/v1/embeddings", { input: "hi" })).text();
        await (await post("/v1/chat/completions", { messages, n: 0 })).text();
        await (await post("/tokenize", { prompt: "hi" })).text();
      },
      { dollarsPerHour: 3.6 },
    );
    assert.deepEqual(
      requests.map(({ feature, tenant }) => [feature, tenant]),
      [
        ["support-intent-classifier", "acme"],
        ["search", null],
        ["support-intent-classifier", "acme"],
        ["search", null],
        ["search", null],
        [null, null],
      ],
    );
    const [first] = requests;
    assert.equal(first?.["inference.backend"], "octavo");
    assert.equal(first.model, "fake");
    assert.equal(first.output_tokens, 3);
    assert.equal(first.gpu_seconds, 0.003);
    assert.equal(first.dollars, 0.003 * 0.001);
    assert.equal(first.outcome, "ok");
    assert.equal(requests[2]?.output_tokens, 6);
    assert.equal(requests[2]?.gpu_seconds, 0.006);
    const [time] = machine;
    assert.ok(time !== undefined && time.dollars_per_hour === 3.6);
    const { seconds, computing_seconds, overhead_seconds, idle_seconds } = time;
    assert.ok(Math.abs(computing_seconds + overhead_seconds + idle_seconds - seconds) < 1e-9);
    assert.ok(idle_seconds >= 0 && overhead_seconds >= 0);
  });

  it("charges a cancelled request for what was computed, and a refused one nothing", async () => {
    const model = new FakeLanguageModel({ stepDelayMs: 5, reply: () => "x".repeat(2000) });
    const { requests } = await metered(
      async ({ url, post }) => {
        const abort = new AbortController();
        const response = await fetch(`${url}/v1/completions`, {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify({ prompt: "a", max_tokens: 2000, stream: true }),
          signal: abort.signal,
        });
        await response.body?.getReader().read();
        abort.abort();
        await model.engine.whenIdle();
        model.engine.behaviour.refuseWith = new OctavoError("queue_full", "the queue is full");
        assert.equal((await post("/v1/completions", { prompt: "a" })).status, 429);
      },
      {},
      model,
    );
    assert.equal(requests.length, 1);
    assert.equal(requests[0]?.outcome, "aborted");
    assert.ok((requests[0]?.gpu_seconds ?? 0) > 0);
  });

  it("bounds the series that callers can create, and loses no counts", async () => {
    await metered(
      async ({ post, metrics }) => {
        for (let index = 0; index < 40; index += 1) {
          const tags = { "x-tenant-id": `t${index}`, "x-octavo-feature": `f${index % 4}` };
          await (await post("/v1/completions", { prompt: "a", max_tokens: 1 }, tags)).text();
        }
        const forged = { "x-tenant-id": "(other)", "x-octavo-feature": 'x"y' };
        await (await post("/v1/completions", { prompt: "a", max_tokens: 1 }, forged)).text();
        const families = await metrics();
        const requests = families.get("octavo:metered_requests_total");
        assert.equal(sumOf(requests), 41);
        const tenants = new Set(requests?.samples.map(({ labels }) => labels["tenant"]));
        assert.deepEqual([...tenants], ["t0", "t1", "t2", "(other)", "(none)"]);
        const gpuSeconds = sumOf(families.get("octavo:metered_gpu_seconds_total"));
        assert.ok(Math.abs(gpuSeconds - 0.041) < 1e-9);
        assert.equal(sumOf(families.get("octavo:unsettled_gpu_seconds")), 0);
      },
      { maxMeteredTenants: 3 },
    );
    const labels = new BoundedLabels({ maxTenants: 2, maxFeatures: 3 });
    const seen = new Set<string>();
    for (let index = 0; index < 1000; index += 1) {
      const { tenant, feature } = labels.resolve(`t${index % 50}`, `f${index}`);
      seen.add(`${tenant}/${feature}`);
    }
    assert.equal(seen.size, 3 * (3 + 1));
  });

  it("attributes all of a real engine's time", async () => {
    const model = await LLM.load(octavoMiniPath, { numThreads: 1 });
    const steps: StepRecord[] = [];
    using _ = model.engine.observe({ onStep: (step) => void steps.push(step) });
    const { requests, machine } = await metered(
      async ({ post, metrics }) => {
        await Promise.all(
          ["one", "two", "three"].map(async (prompt) => {
            const body = { prompt: [prompt, `${prompt} more`], max_tokens: 8, ignore_eos: true };
            await (await post("/v1/completions", body)).text();
          }),
        );
        const families = await metrics();
        const machineSeconds = families.get("octavo:machine_seconds_total")?.samples ?? [];
        const computing = machineSeconds.find(({ labels }) => labels["state"] === "computing")?.value;
        assert.ok(
          Math.abs((computing ?? 0) - sumOf(families.get("octavo:metered_gpu_seconds_total"))) < 1e-6,
        );
      },
      { servedModelNames: ["octavo-mini"] },
      model,
    );
    const busySeconds = steps.reduce((sum, { computeMs }) => sum + computeMs, 0) / 1000;
    const charged = requests.reduce((sum, { gpu_seconds }) => sum + gpu_seconds, 0);
    assert.equal(requests.length, 3);
    assert.ok(requests.every(({ output_tokens, input_tokens }) => output_tokens === 16 && input_tokens > 2));
    assert.ok(Math.abs(charged / busySeconds - 1) < 1e-9, `${charged} of ${busySeconds} s`);
    const computing = machine.reduce((sum, { computing_seconds }) => sum + computing_seconds, 0);
    assert.ok(Math.abs(computing / busySeconds - 1) < 1e-9);
    await model[Symbol.asyncDispose]();
  });
});

describe("a machine's time", () => {
  const step = (startMs: number, durationMs: number, computeMs: number): StepRecord => ({
    step: 0,
    startMs,
    durationMs,
    computeMs,
    prefillMs: 0,
    numSequences: 1,
    prefillTokens: 0,
    decodeTokens: 1,
    blocksUsed: 0,
    blocksEvicted: 0,
    preemptions: 0,
  });

  it("is computing, overhead or idle, and nothing else", () => {
    const clock = new MachineClock(100);
    clock.noteStep(step(150, 10, 8), true);
    clock.noteStep(step(165, 10, 9), false);
    assert.deepEqual(clock.read(200, false), { wallMs: 100, computingMs: 17, overheadMs: 8, idleMs: 75 });
    // while a step runs, time stands where the latest one ended
    assert.deepEqual(clock.read(230, true), { wallMs: 100, computingMs: 17, overheadMs: 8, idleMs: 75 });
    clock.noteStep(step(210, 40, 40), false);
    assert.deepEqual(clock.read(250, false), { wallMs: 150, computingMs: 57, overheadMs: 8, idleMs: 85 });
  });
});

describe("the metering log", () => {
  const record: MeteringRecord = { model: "m", gpu_seconds: 1, input_tokens: 1, output_tokens: 1 };

  it("refuses a file that cannot be written, by name", async () => {
    await assert.rejects(
      MeteringLog.open({ path: "/dev/null/metering.jsonl" }),
      (error) => error instanceof OctavoError && error.param === "meteringLog",
    );
  });

  it("drops and counts records that a full disk or buffer cannot take", async () => {
    const folder = await mkdtemp(join(tmpdir(), "octavo-metering-"));
    const problems: string[] = [];
    const log = await MeteringLog.open({
      path: join(folder, "log"),
      maxWaiting: 2,
      onProblem: (message) => problems.push(message),
    });
    for (let index = 0; index < 5; index += 1) log.add(record);
    assert.equal(log.dropped, 3);
    await log.flush();
    assert.equal(log.written, 2);
    await rm(folder, { recursive: true });
    log.add(record);
    await log.flush();
    log.add(record);
    await log.flush();
    assert.equal(log.dropped, 5);
    assert.equal(problems.length, 1);
  });

  it("holds whole records only, as many as it counted, wherever the disk was full", () => {
    const folder = mkdtempSync(join(tmpdir(), "octavo-metering-"));
    const path = join(folder, "log");
    const program = `
      const { MeteringLog } = await import(${JSON.stringify(import.meta.resolve("./metering-log.js"))});
      const log = await MeteringLog.open({ path: ${JSON.stringify(path)}, onProblem: () => {} });
      for (const size of JSON.parse(process.argv[1])) {
        for (let i = 0; i < 3; i += 1) log.add({ feature: "x".repeat(size), gpu_seconds: 1 });
        await log.flush();
      }
      console.log(JSON.stringify([log.written, log.dropped]));
    `;
    const sizes = fc.array(fc.integer({ min: 0, max: 400 }), { minLength: 1, maxLength: 8 });
    const torn = fc.constantFrom("", '{"feature":"to', '{"feature":"whole"}\n');
    try {
      fc.assert(
        fc.property(sizes, torn, (batches, left) => {
          writeFileSync(path, left);
          // A file may grow to 1 KiB: the disk is full within a record.
          const { stdout, stderr } = spawnSync(
            "bash",
            [
              "-c",
              'ulimit -f 1; exec "$@"',
              "bash",
              process.execPath,
              "--input-type=module",
              "-e",
              program,
              JSON.stringify(batches),
            ],
            { encoding: "utf8" },
          );
          assert.notEqual(stdout, "", stderr);
          const [written, dropped] = JSON.parse(stdout) as [number, number];
          const text = readFileSync(path, "utf8");
          const isTorn = left !== "" && !left.endsWith("\n");
          const lines = text.split("\n").filter((line) => line !== "" && line !== left);
          const whole = lines.filter((line) => line !== left.trim());
          for (const line of whole) assert.equal((JSON.parse(line) as MeteringRecord).gpu_seconds, 1);
          assert.equal(whole.length, written);
          assert.equal(written + dropped, 3 * batches.length);
          if (!isTorn || written > 0) assert.ok(text === "" || text.endsWith("\n"));
        }),
        { numRuns: 12 },
      );
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
