import assert from "node:assert/strict";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { after, before } from "node:test";
import type { Evaluator, Sample } from "../../evaluators/evaluator.js";
import { loadEvaluatorTable } from "../../evaluators/load-table.js";
import { sampleOf } from "../../evaluators/testing/sample.js";
import type { ScoredCase } from "../runner.js";
import { conformanceModule, runnerConformance } from "../testing/conformance.js";
import { BatchJobsRunner, type BatchJobsOptions } from "./batch-jobs-runner.js";
import { ProcessCluster } from "./testing/process-cluster.js";

let folder = "";
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "octavo-jobs-"));
});
after(() => rm(folder, { recursive: true, force: true }));

const options = (): BatchJobsOptions => ({
  sharedFolder: folder,
  pollMs: 20,
  nodeCommand: [process.execPath],
  workerArguments: ["--module", conformanceModule, "--threads", "1"],
});

runnerConformance(
  "BatchJobsRunner",
  () => new BatchJobsRunner(new ProcessCluster(), { ...options(), samplesPerJob: 100, jobsInFlight: 2 }),
  // two jobs, one that is being read and one that is being filled
  { samplesInFlight: 400, manySamples: 500 },
);

const samples: readonly Sample[] = Array.from({ length: 30 }, (_, index) =>
  sampleOf({ output: "x".repeat(index), case: { id: `case-${index}` } }),
);

async function lengthEvaluators(): Promise<Evaluator[]> {
  return (await loadEvaluatorTable([conformanceModule])).create(["test_length"]);
}

async function collect(runner: BatchJobsRunner): Promise<ScoredCase[]> {
  const rows: ScoredCase[] = [];
  const { signal } = new AbortController();
  for await (const row of runner.run(samples, await lengthEvaluators(), { signal })) rows.push(row);
  return rows;
}

test("a job that is killed is begun again with what it lacks, and nothing stays in the folder", async () => {
  const cluster = new ProcessCluster();
  let left: Promise<void> | undefined;
  cluster.onSubmit = (jobId, job) => {
    if (cluster.jobs.size > 1) return;
    job.kill("SIGKILL");
    // as if it had got this far: a score of its own kind, and a line that is torn
    const path = join(folder, jobId, "scores.ndjson.partial");
    const score = { status: "scored", value: 0.99, passed: true };
    left = writeFile(path, `${JSON.stringify({ index: 3, score })}\n{"index":4,"sco`);
  };
  const rows = await collect(new BatchJobsRunner(cluster, options()));
  await left;
  assert.equal(cluster.jobs.size, 2);
  assert.equal(rows.length, 30);
  for (const [index, { caseId, score }] of rows.entries()) {
    assert.equal(caseId, `case-${index}`);
    assert.ok(score.status === "scored");
    assert.equal(score.value, index === 3 ? 0.99 : index / 100);
  }
  assert.deepEqual(await readdir(folder), []);
});

test("a run that died is run again and finds what its jobs finished meanwhile", async () => {
  const cluster = new ProcessCluster();
  const first = new BatchJobsRunner(cluster, options());
  const { signal } = new AbortController();
  for await (const row of first.run(samples, await lengthEvaluators(), { signal })) {
    assert.ok(row);
    break;
  }
  const second = new ProcessCluster();
  assert.equal((await collect(new BatchJobsRunner(second, options()))).length, 30);
  assert.equal(second.jobs.size, 0);
});

test("jobs that go on failing cost their scores and not the run; the reason is told", async () => {
  const cluster = new ProcessCluster();
  const failing = { ...options(), attempts: 2, workerArguments: ["--module", "file:///nowhere.mjs"] };
  const rows = await collect(new BatchJobsRunner(cluster, failing));
  assert.equal(cluster.jobs.size, 2);
  assert.equal(rows.length, 30);
  for (const { score } of rows) {
    assert.ok(score.status === "failed" && score.code === "runner_unavailable");
    assert.match(score.reason, /the job failed: exit 1/);
  }
});

test("jobs that are stopped, and jobs that are never scheduled, end the run", async () => {
  const stopped = new ProcessCluster();
  stopped.onSubmit = (jobId) => void stopped.stop(jobId);
  await assert.rejects(collect(new BatchJobsRunner(stopped, options())), /octavo-\w+ was stopped/);

  const full = new ProcessCluster();
  full.status = (jobId) =>
    Promise.resolve(
      full.jobs.has(jobId) ? { state: "pending", message: "no CPU is free" } : { state: "unknown" },
    );
  const runner = new BatchJobsRunner(full, { ...options(), pendingTimeoutMs: 50 });
  await assert.rejects(collect(runner), /has waited for a place to run for 0 s: no CPU is free/);
  await full.close();
});

test("tasks are written as JSON lines that the worker of another machine can read", async () => {
  const cluster = new ProcessCluster();
  let tasks = "";
  const runner = new BatchJobsRunner(cluster, options());
  cluster.submit = async (jobId) => {
    tasks = await readFile(join(folder, jobId, "tasks.ndjson"), "utf8");
    throw new TypeError("seen");
  };
  await assert.rejects(collect(runner), /seen/);
  const lines = tasks.trimEnd().split("\n");
  assert.equal(lines.length, 30);
  assert.deepEqual(JSON.parse(lines[0] ?? "").spec, { name: "test_length" });
});
