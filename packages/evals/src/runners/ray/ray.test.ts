import assert from "node:assert/strict";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { after, before, describe, test } from "node:test";
import type { Sample } from "../../evaluators/evaluator.js";
import { loadEvaluatorTable } from "../../evaluators/load-table.js";
import { sampleOf } from "../../evaluators/testing/sample.js";
import { conformanceModule } from "../testing/conformance.js";
import type { ScoredCase } from "../runner.js";
import { type BatchJobsOptions, BatchJobsRunner } from "../batch-jobs/batch-jobs-runner.js";
import { RayCluster } from "./ray-cluster.js";
import { hasRay, RayServer } from "@octavo/protocol/testing/ray-server";

const skip = hasRay ? false : "there is no ray on this machine";

describe("evaluation on Ray", { skip }, () => {
  let ray: RayServer;
  let folder = "";
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "octavo ray's "));
    ray = await RayServer.start();
  });
  after(async () => {
    await ray.stop();
    await rm(folder, { recursive: true, force: true });
  });

  const open = (options: Partial<BatchJobsOptions> = {}): BatchJobsRunner =>
    new BatchJobsRunner(new RayCluster({ dashboardUrl: ray.dashboardUrl }), {
      sharedFolder: folder,
      samplesPerJob: 100,
      jobsInFlight: 2,
      pollMs: 100,
      nodeCommand: [process.execPath],
      workerArguments: ["--module", conformanceModule, "--threads", "1"],
      ...options,
    });
  const samples: readonly Sample[] = Array.from({ length: 200 }, (_, index) =>
    sampleOf({ output: index % 7 === 3 ? "throw" : "x".repeat(index % 40), case: { id: `case-${index}` } }),
  );

  test("two jobs score every pair exactly once, and leave no files", async () => {
    const table = await loadEvaluatorTable([conformanceModule]);
    const evaluators = table.create(["test_length", "test_throws"]);
    const runner = open();
    const rows: ScoredCase[] = [];
    const { signal } = new AbortController();
    for await (const row of runner.run(samples, evaluators, { signal })) rows.push(row);
    await runner.close();
    assert.equal(rows.length, 400);
    assert.equal(new Set(rows.map(({ caseId, evaluator }) => `${caseId} ${evaluator}`)).size, 400);
    for (const { caseId, evaluator, score } of rows) {
      const { text } = samples[Number(caseId.slice("case-".length))]?.answer ?? { text: "" };
      const isFailed = evaluator === "test_throws" && text === "throw";
      assert.equal(score.status, isFailed ? "failed" : "scored");
      if (evaluator === "test_length" && score.status === "scored") {
        assert.equal(score.value, text.length / 100);
      }
    }
    assert.deepEqual(await readdir(folder), []);
  });

  test("an aborted run stops its jobs", async () => {
    const cluster = new RayCluster({ dashboardUrl: ray.dashboardUrl });
    const control = new AbortController();
    const reason = new DOMException("enough", "AbortError");
    // a worker that never ends
    const runner = open({
      nodeCommand: [process.execPath, "-e", "setInterval(() => 0, 1000)"],
      samplesPerJob: 200,
    });
    const evaluators = (await loadEvaluatorTable([conformanceModule])).create(["test_length"]);
    const running = (async () => {
      for await (const row of runner.run(samples, evaluators, { signal: control.signal }))
        assert.fail(row.caseId);
    })();
    let jobId: string | undefined;
    while (jobId === undefined || (await cluster.status(jobId)).state !== "running") {
      jobId = (await readdir(folder))[0];
      await sleep(100);
    }
    control.abort(reason);
    await assert.rejects(running, reason);
    while ((await cluster.status(jobId)).state === "running") await sleep(100);
    assert.equal((await cluster.status(jobId)).state, "stopped");
  });

  test("jobs are idempotent by their id, fail with Ray's own words, and may be unknown", async () => {
    const cluster = new RayCluster({ dashboardUrl: ray.dashboardUrl });
    assert.deepEqual(await cluster.status("octavo-never"), { state: "unknown" });
    await cluster.submit("octavo-twice", ["sh", "-c", "echo it\\'s broken; exit 3"]);
    await cluster.submit("octavo-twice", ["true"]);
    let status = await cluster.status("octavo-twice");
    while (status.state === "pending" || status.state === "running") {
      await sleep(100);
      status = await cluster.status("octavo-twice");
    }
    assert.ok(status.state === "failed");
    assert.match(status.message, /it's broken|exit code 3/);
  });
});

test("a dashboard that does not answer and a URL that is none are told", async () => {
  const cluster = new RayCluster({ dashboardUrl: "http://127.0.0.1:1" });
  await assert.rejects(cluster.status("x"), (error: Error & { code?: string }) => {
    assert.equal(error.code, "runner_unavailable");
    assert.match(error.message, /Ray's dashboard at http:\/\/127\.0\.0\.1:1 does not answer/);
    return true;
  });
  assert.throws(() => new RayCluster({ dashboardUrl: "ray://head:10001" }), { code: "invalid_option" });
});
