import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import type { BatchCluster, JobStatus } from "../batch-cluster.js";

/** A cluster of one machine: jobs are processes of it. */
export class ProcessCluster implements BatchCluster {
  readonly name = "processes";
  readonly jobs = new Map<string, ChildProcess>();
  readonly #stopped = new Set<string>();
  /** Called with each submitted job. */
  onSubmit: (jobId: string, job: ChildProcess) => void = () => undefined;

  async submit(jobId: string, [command = "", ...rest]: readonly string[]): Promise<void> {
    if (this.jobs.has(jobId)) return;
    const job = spawn(command, rest, { stdio: ["ignore", "ignore", "pipe"] });
    job.on("error", () => undefined);
    this.jobs.set(jobId, job);
    this.onSubmit(jobId, job);
    await Promise.resolve();
  }

  async status(jobId: string): Promise<JobStatus> {
    await Promise.resolve();
    const job = this.jobs.get(jobId);
    if (job === undefined) return { state: "unknown" };
    if (this.#stopped.has(jobId)) return { state: "stopped", message: "stopped" };
    if (job.exitCode === null && job.signalCode === null && job.pid !== undefined)
      return { state: "running" };
    if (job.exitCode === 0) return { state: "succeeded" };
    return { state: "failed", message: `exit ${job.exitCode ?? job.signalCode ?? "without a start"}` };
  }

  async stop(jobId: string): Promise<void> {
    const job = this.jobs.get(jobId);
    if (job === undefined || job.exitCode !== null || job.signalCode !== null) return;
    this.#stopped.add(jobId);
    const exited = once(job, "exit");
    job.kill("SIGKILL");
    await exited;
  }

  async close(): Promise<void> {
    await Promise.all(Array.from(this.jobs.keys(), (jobId) => this.stop(jobId)));
  }
}
