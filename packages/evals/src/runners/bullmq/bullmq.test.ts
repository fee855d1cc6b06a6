import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { Queue, QueueEvents } from "bullmq";
import type { Evaluator, Sample } from "../../evaluators/evaluator.js";
import { loadEvaluatorTable } from "../../evaluators/load-table.js";
import { defineEvaluator, EvaluatorTable, noOptions } from "../../evaluators/registry.js";
import { evaluatorTable } from "../../evaluators/table.js";
import { sampleOf } from "../../evaluators/testing/sample.js";
import { openAiJudge } from "../../judges/openai-judge.js";
import { chatCompletion, replyJson, startFakeOpenAi } from "../../testing/fake-openai-server.js";
import type { ScoredCase } from "../runner.js";
import { conformanceModule, runnerConformance } from "../testing/conformance.js";
import { LocalRunner } from "../local-runner.js";
import { BullMqRunner, type BullMqRunnerOptions } from "./bullmq-runner.js";
import { BullMqWorker, type BullMqWorkerOptions } from "./bullmq-worker.js";
import { hasRedis, RedisServer } from "./testing/redis-server.js";

const skip = hasRedis ? false : "there is no redis-server on this machine";
const busyModule = new URL("testing/busy-evaluators.js", import.meta.url).href;
const workerMain = fileURLToPath(new URL("worker-main.js", import.meta.url));

describe("evaluation on a queue", { skip }, () => {
  let redis: RedisServer;
  before(async () => {
    redis = await RedisServer.start();
  });
  const opened: { close(): Promise<void> }[] = [];
  const processes: ChildProcess[] = [];
  after(async () => {
    await Promise.all(opened.map((one) => one.close()));
    for (const one of processes) one.kill("SIGKILL");
    await redis.stop();
  });

  const open = (queueName: string, options: Partial<BullMqRunnerOptions> = {}): BullMqRunner => {
    const runner = new BullMqRunner({ redisUrl: redis.url, queueName, ...options });
    opened.push(runner);
    return runner;
  };
  const startHere = async (
    queueName: string,
    options: Omit<BullMqWorkerOptions, "redisUrl" | "queueName">,
  ): Promise<BullMqWorker> => {
    const worker = await BullMqWorker.start({ redisUrl: redis.url, queueName, ...options });
    opened.push(worker);
    return worker;
  };

  async function startWorker(queueName: string, ...options: readonly string[]): Promise<ChildProcess> {
    const quick = ["--lock-ms", "1500", "--stalled-ms", "500", "--threads", "1"];
    const worker = spawn(
      process.execPath,
      [workerMain, "--redis", redis.url, "--queue", queueName, ...quick, ...options],
      { stdio: ["ignore", "pipe", "inherit"] },
    );
    processes.push(worker);
    const [ready] = (await once(worker.stdout, "data")) as [Buffer];
    assert.equal(ready.toString(), "ready\n");
    return worker;
  }

  async function stop(worker: ChildProcess): Promise<void> {
    if (worker.exitCode !== null || worker.signalCode !== null) return;
    const exited = once(worker, "exit");
    worker.kill("SIGTERM");
    await exited;
  }

  const samplesUpTo = (count: number): Sample[] =>
    Array.from({ length: count }, (_, index) =>
      sampleOf({ output: `answer ${index}`, case: { id: `case-${index}` } }),
    );

  async function collect(
    runner: BullMqRunner,
    samples: readonly Sample[],
    evaluators: readonly Evaluator[],
    onRow: (rows: number) => void = () => undefined,
  ): Promise<ScoredCase[]> {
    const rows: ScoredCase[] = [];
    const { signal } = new AbortController();
    for await (const row of runner.run(samples, evaluators, { signal })) {
      rows.push(row);
      onRow(rows.length);
    }
    return rows;
  }

  async function jobsLeft(queueName: string): Promise<number> {
    const queue = new Queue(queueName, { connection: { url: redis.url } });
    const counts = await queue.getJobCounts();
    await queue.close();
    return Object.values(counts).reduce((sum, count) => sum + count, 0);
  }

  describe("with a worker in another process", () => {
    let worker: ChildProcess;
    before(async () => {
      worker = await startWorker("conformance", "--module", conformanceModule);
    });
    after(() => stop(worker));
    runnerConformance("BullMqRunner", () => open("conformance", { pairsInFlight: 64 }), {
      samplesInFlight: 66,
      manySamples: 600,
    });
  });

  test("two thousand judged cases on two workers, one of which is killed: each scored exactly once, nothing left behind", async () => {
    let asked = 0;
    await using server = await startFakeOpenAi({
      "/v1/chat/completions": ({ body }, response) => {
        asked++;
        const text = JSON.stringify(body["messages"]);
        const number = Number(/answer (\d+)/.exec(text)?.[1]);
        const verdict = number % 3 === 0 ? "fail" : "pass";
        replyJson(response, 200, chatCompletion(JSON.stringify({ reason: `of ${number}`, verdict })));
      },
    });
    const judgeOptions = ["--judge", server.baseUrl, "--judge-model", "small-judge"];
    const judge = openAiJudge({ baseUrl: server.baseUrl, model: "small-judge" });
    const evaluators = evaluatorTable.create(["is_concise"], { judge });
    const [doomed, other] = await Promise.all([
      startWorker("judged", ...judgeOptions),
      startWorker("judged", ...judgeOptions),
    ]);
    const runner = open("judged");
    try {
      const rows = await collect(runner, samplesUpTo(2000), evaluators, (count) => {
        if (count === 300) doomed.kill("SIGKILL");
      });
      assert.equal(doomed.signalCode, "SIGKILL");
      assert.equal(rows.length, 2000);
      assert.equal(new Set(rows.map(({ caseId }) => caseId)).size, 2000);
      for (const { caseId, score } of rows) {
        const number = Number(caseId.slice("case-".length));
        assert.ok(score.status === "scored", JSON.stringify(score));
        assert.equal(score.passed, number % 3 !== 0, caseId);
        assert.equal(score.reason, `of ${number}`);
      }
      assert.ok(asked >= 2000, `${asked} questions were asked`);
      assert.equal(await jobsLeft("judged"), 0);
    } finally {
      await runner.close();
      await stop(other);
    }
  });

  test("a run that died is run again and takes what was finished meanwhile: nothing is scored twice", async () => {
    const counting = new CountingRow();
    const table = new EvaluatorTable([counting.entry]);
    const evaluators = table.create(["test_counted"]);
    const samples = samplesUpTo(40);
    await startHere("resumed", { table, runner: new LocalRunner() });

    const first = open("resumed");
    const { signal } = new AbortController();
    for await (const row of first.run(samples, evaluators, { signal })) {
      assert.ok(row);
      // the reader stands still while the workers go on, and is never seen again
      while (counting.asked < samples.length) await new Promise((resolve) => setTimeout(resolve, 5));
      break;
    }

    const second = open("resumed");
    const rows = await collect(second, samples, evaluators);
    assert.equal(new Set(rows.map(({ caseId }) => caseId)).size, samples.length);
    assert.equal(counting.asked, samples.length);
    assert.equal(await jobsLeft("resumed"), 0);
  });

  test("rows that were read and not written down are there for the next run, until they are acknowledged", async () => {
    const counting = new CountingRow();
    const table = new EvaluatorTable([counting.entry]);
    const evaluators = table.create(["test_counted"]);
    const samples = samplesUpTo(60);
    await startHere("acknowledged", { table, runner: new LocalRunner() });
    const { signal } = new AbortController();

    // it reads them all, and dies before it has written one down
    let read = 0;
    const options = { signal, untilAcknowledged: true };
    for await (const row of open("acknowledged").run(samples, evaluators, options)) if (row) read++;
    assert.equal(read, samples.length);
    assert.equal(await jobsLeft("acknowledged"), samples.length);

    const second = open("acknowledged");
    const again = new Set<string>();
    for await (const { caseId } of second.run(samples, evaluators, options)) again.add(caseId);
    assert.equal(again.size, samples.length);
    assert.equal(counting.asked, samples.length, "nothing is judged twice");
    await second.acknowledge();
    assert.equal(await jobsLeft("acknowledged"), 0);
  });

  test("a Redis that loses everything is filled again, and a queue without workers is told", async () => {
    const table = await loadEvaluatorTable([conformanceModule]);
    const evaluators = table.create(["test_length"]);
    const runner = open("emptied", { lookUpMs: 200, noWorkerTimeoutMs: 60_000 });
    const rows = collect(runner, samplesUpTo(50), evaluators);
    while ((await jobsLeft("emptied")) < 50) await new Promise((resolve) => setTimeout(resolve, 20));
    await redis.restartEmpty();
    const threads = new LocalRunner({ threads: 1, modules: [conformanceModule] });
    opened.push(threads);
    await startHere("emptied", { table, runner: threads });
    assert.equal((await rows).length, 50);

    const lonely = open("lonely", { lookUpMs: 50, noWorkerTimeoutMs: 100 });
    await assert.rejects(
      collect(lonely, samplesUpTo(1), evaluators),
      /the queue lonely has had no worker for/,
    );
  });

  test("a score that computes for longer than its lock lasts is not taken for dead", async () => {
    const worker = await startWorker("busy", "--module", busyModule);
    const events = new QueueEvents("busy", { connection: { url: redis.url } });
    const stalled: string[] = [];
    events.on("stalled", ({ jobId }) => stalled.push(jobId));
    opened.push(events);
    await events.waitUntilReady();
    const evaluators = (await loadEvaluatorTable([busyModule])).create([
      { name: "test_busy", options: { forMs: 3500 } },
    ]);
    const [row] = await collect(open("busy"), samplesUpTo(1), evaluators);
    assert.equal(row?.score.status, "scored");
    assert.deepEqual(stalled, []);
    await stop(worker);
  });

  test("workers whose evaluators differ, and jobs that are none, fail by themselves", async () => {
    const ask = { baseUrl: "http://127.0.0.1:9/v1" };
    await startHere("differs", {
      table: evaluatorTable,
      services: { judge: openAiJudge({ ...ask, model: "theirs" }) },
      runner: new LocalRunner(),
    });
    const runner = open("differs");
    const judged = evaluatorTable.create(["is_concise"], { judge: openAiJudge({ ...ask, model: "ours" }) });
    const [row] = await collect(runner, samplesUpTo(1), judged);
    assert.ok(row?.score.status === "failed");
    assert.match(row.score.reason, /give runner and workers the same judge/);

    const own: Evaluator = { ...judged[0]!, name: "own" };
    const { spec: _, ...unspecified } = own;
    await assert.rejects(collect(runner, samplesUpTo(1), [unspecified]), /own was not made from the table/);
  });
});

test("a Redis that does not answer and a URL that is none are told at once", async () => {
  const { signal } = new AbortController();
  const run = async (redisUrl: string): Promise<void> => {
    const runner = new BullMqRunner({ redisUrl });
    for await (const row of runner.run([sampleOf()], evaluatorTable.create(["one_line"]), { signal }))
      assert.fail(row.caseId);
  };
  await assert.rejects(run("redis://:secret@127.0.0.1:1"), (error: Error & { code?: string }) => {
    assert.equal(error.code, "runner_unavailable");
    assert.match(error.message, /Redis at redis:\/\/127\.0\.0\.1:1 does not answer/);
    return true;
  });
  await assert.rejects(run("http://127.0.0.1:1"), { code: "invalid_option" });
});

/** Counts how often it is asked. */
class CountingRow {
  asked = 0;
  readonly entry = defineEvaluator({
    name: "test_counted",
    description: "Counts.",
    inputs: ["output"],
    output: "score",
    options: noOptions,
    create: () => ({
      score: () => {
        this.asked++;
        return { status: "scored", value: 1 };
      },
    }),
  });
}
