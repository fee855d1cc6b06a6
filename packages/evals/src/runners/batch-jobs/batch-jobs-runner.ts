import { createHash, randomBytes } from "node:crypto";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { OctavoError } from "@octavo/protocol";
import type { Evaluator, Sample, Score } from "../../evaluators/evaluator.js";
import { concurrently } from "../concurrently.js";
import { ContentKeys } from "../content-key.js";
import { concurrencyOf } from "../local-runner.js";
import { ProgressCount } from "../progress-count.js";
import type { RunOptions, Runner, ScoredCase } from "../runner.js";
import { batchesOf } from "../sample-streams.js";
import { scoringTask } from "../scoring-task.js";
import type { BatchCluster } from "./batch-cluster.js";
import { JobFiles } from "./job-files.js";

/** How samples are scored by jobs of a cluster, such as Ray's. */
export interface BatchJobsOptions {
  /** A folder that this machine and the cluster's see under one path. Nothing of a run that was read through stays in it. */
  readonly sharedFolder: string;
  /** Default 500. */
  readonly samplesPerJob?: number;
  /** Default 4. */
  readonly jobsInFlight?: number;
  /** Default 1000. */
  readonly pollMs?: number;
  /** A job that fails is tried again until it was tried so often. Default 3. */
  readonly attempts?: number;
  /** How long a job may wait for a place to run. Default 600,000. */
  readonly pendingTimeoutMs?: number;
  /** What starts Node on the cluster's machines, and the worker's script there. Default: `node`, and the path it has here. */
  readonly nodeCommand?: readonly string[];
  readonly workerScript?: string;
  /** Further arguments of the worker, such as `--module` and `--judge`. */
  readonly workerArguments?: readonly string[];
}

interface Pair {
  readonly sample: Sample;
  readonly evaluator: Evaluator;
}

/**
 * Scores in jobs of a cluster, each a batch of samples. What a job is to do and what it found are files in a shared folder,
 * named by the hash of what decides their scores: a run that died and is run again finds jobs that went on without it, and
 * a job that dies is begun again with what it lacks.
 */
export class BatchJobsRunner implements Runner {
  readonly name: string;
  readonly #cluster: BatchCluster;
  readonly #options: BatchJobsOptions;
  readonly #keys = new ContentKeys();

  constructor(cluster: BatchCluster, options: BatchJobsOptions) {
    this.name = cluster.name;
    this.#cluster = cluster;
    this.#options = options;
    for (const value of [options.samplesPerJob, options.jobsInFlight, options.attempts]) {
      if (value !== undefined) concurrencyOf(value);
    }
  }

  async *run(
    samples: AsyncIterable<Sample> | Iterable<Sample>,
    evaluators: readonly Evaluator[],
    options: RunOptions,
  ): AsyncGenerator<ScoredCase, void, undefined> {
    options.signal.throwIfAborted();
    if (evaluators.length === 0) return;
    const progress = new ProgressCount(options);
    const jobs = concurrently(
      batchesOf(samples, this.#options.samplesPerJob ?? 500),
      this.#options.jobsInFlight ?? 4,
      (batch, signal) => this.#perform(batch, evaluators, signal),
      options.signal,
    );
    for await (const { rows, files } of jobs) {
      for (const row of rows) {
        progress.count(row);
        yield row;
      }
      // only now: what its reader never got is still there for the next run
      await files.remove();
    }
  }

  async close(): Promise<void> {
    await this.#cluster.close();
  }

  async #perform(
    batch: readonly Sample[],
    evaluators: readonly Evaluator[],
    signal: AbortSignal,
  ): Promise<{ readonly rows: readonly ScoredCase[]; readonly files: JobFiles }> {
    const pairs = batch.flatMap((sample) => evaluators.map((evaluator): Pair => ({ sample, evaluator })));
    const key = this.#keyOf(pairs);
    const files = new JobFiles(join(resolve(this.#options.sharedFolder), `octavo-${key}`));
    let problem = "";
    if (!(await files.isFinished())) {
      await files.writeTasks(pairs.map(({ sample, evaluator }) => scoringTask(sample, evaluator, this.name)));
      problem = await this.#tryJobs(key, files, signal);
    }
    const scores = await files.readScores();
    const rows = pairs.map(({ sample, evaluator }, index): ScoredCase => ({
      caseId: sample.case.id,
      evaluator: evaluator.name,
      score: scores.get(index) ?? lost(problem),
    }));
    return { rows, files };
  }

  /** Jobs until one has scored everything; why the last one did not, when none has. */
  async #tryJobs(key: string, files: JobFiles, signal: AbortSignal): Promise<string> {
    const { attempts = 3 } = this.#options;
    let problem = "";
    let jobId = `octavo-${key}`;
    for (let attempt = 0; attempt < attempts;) {
      const { isAdopted, ...outcome } = await this.#runJob(jobId, files, signal);
      if (await files.isFinished()) return "";
      problem = outcome.problem;
      // the job of an earlier run, of which nothing is left, is no attempt of this one
      if (!isAdopted) attempt++;
      jobId = `octavo-${key}-${randomBytes(4).toString("hex")}`;
    }
    return problem;
  }

  async #runJob(
    jobId: string,
    files: JobFiles,
    signal: AbortSignal,
  ): Promise<{ readonly problem: string; readonly isAdopted: boolean }> {
    const { pollMs = 1000, pendingTimeoutMs = 600_000 } = this.#options;
    const cluster = this.#cluster;
    signal.throwIfAborted();
    const before = await cluster.status(jobId);
    const isAdopted = before.state !== "unknown";
    if (!isAdopted) await cluster.submit(jobId, this.#command(files));
    const pendingSinceMs = Date.now();
    try {
      for (;;) {
        const status = await cluster.status(jobId);
        switch (status.state) {
          case "succeeded":
            return {
              problem: "the job ended without its scores; do its machines see the shared folder?",
              isAdopted,
            };
          case "failed":
            return { problem: `the job failed: ${status.message}`, isAdopted };
          case "unknown":
            return { problem: "the cluster lost the job", isAdopted };
          case "stopped":
            if (isAdopted) return { problem: status.message, isAdopted };
            throw new OctavoError("runner_unavailable", `the job ${jobId} was stopped: ${status.message}`);
          case "pending":
            if (Date.now() - pendingSinceMs < pendingTimeoutMs) break;
            throw new OctavoError(
              "runner_unavailable",
              `the job ${jobId} has waited for a place to run for ${Math.round(pendingTimeoutMs / 1000)} s: ${status.message}`,
            );
          case "running":
            break;
        }
        await sleep(pollMs, undefined, { signal });
      }
    } catch (thrown) {
      await cluster.stop(jobId).catch(() => undefined);
      signal.throwIfAborted();
      throw thrown;
    }
  }

  #command(files: JobFiles): string[] {
    const { nodeCommand = ["node"], workerScript, workerArguments = [] } = this.#options;
    const script = workerScript ?? fileURLToPath(new URL("score-file-main.js", import.meta.url));
    return [...nodeCommand, script, "--folder", files.folder, ...workerArguments];
  }

  #keyOf(pairs: readonly Pair[]): string {
    const hash = createHash("sha256");
    for (const { sample, evaluator } of pairs) hash.update(this.#keys.of(sample, evaluator));
    return hash.digest("hex").slice(0, 24);
  }
}

function lost(problem: string): Score {
  return { status: "failed", code: "runner_unavailable", reason: problem };
}
