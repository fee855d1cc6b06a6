import { OctavoError, parseJson } from "@octavo/protocol";
import { request } from "undici";
import { z } from "zod";
import type { BatchCluster, JobStatus } from "../batch-jobs/batch-cluster.js";

/** A Ray cluster that runs evaluation jobs. */
export interface RayClusterOptions {
  /** URL of the head's dashboard, such as `http://127.0.0.1:8265`. */
  readonly dashboardUrl: string;
  /** Sent with every request, such as what a proxy wants. */
  readonly headers?: Readonly<Record<string, string>>;
  /** CPUs that Ray sets aside for a job, on whichever node has them. With 0 all jobs run on the head. Default 1. */
  readonly cpusPerJob?: number;
  /** Ray's `runtime_env`. */
  readonly runtimeEnvironment?: Readonly<Record<string, unknown>>;
  /** Limit on a request. Default 30,000. */
  readonly timeoutMs?: number;
}

const maxAnswerBytes = 4 * 1024 * 1024;

const jobDetails = z.object({
  status: z.enum(["PENDING", "RUNNING", "STOPPED", "SUCCEEDED", "FAILED"]),
  message: z.string().nullish(),
});

/** Ray's Jobs over their REST interface (version 4 of the API, Ray 2). */
export class RayCluster implements BatchCluster {
  readonly name = "ray";
  readonly #options: RayClusterOptions;
  readonly #url: URL;

  /** @throws OctavoError `invalid_option` when the URL is none */
  constructor(options: RayClusterOptions) {
    this.#options = options;
    if (!URL.canParse(options.dashboardUrl) || !/^https?:/.test(options.dashboardUrl)) {
      throw new OctavoError(
        "invalid_option",
        `dashboardUrl: expected a URL such as http://127.0.0.1:8265, got ${options.dashboardUrl}`,
        { param: "dashboardUrl" },
      );
    }
    this.#url = new URL(options.dashboardUrl);
  }

  async submit(jobId: string, command: readonly string[]): Promise<void> {
    const { cpusPerJob = 1, runtimeEnvironment } = this.#options;
    const { status, text } = await this.#request("POST", "api/jobs/", {
      submission_id: jobId,
      entrypoint: command.map(shellWord).join(" "),
      ...(cpusPerJob > 0 && { entrypoint_num_cpus: cpusPerJob }),
      ...(runtimeEnvironment !== undefined && { runtime_env: runtimeEnvironment }),
      metadata: { submitted_by: "octavo" },
    });
    if (status < 300) return;
    // Ray answers with an error where an id was used before; a job that there is then is that one
    if ((await this.status(jobId)).state !== "unknown") return;
    throw refused("take a job", status, text);
  }

  async status(jobId: string): Promise<JobStatus> {
    const { status, text } = await this.#request("GET", `api/jobs/${jobId}`);
    if (status === 404) return { state: "unknown" };
    const parsed = status < 300 ? jobDetails.safeParse(parseJson(text)?.value) : undefined;
    if (parsed?.success !== true) throw refused("say how a job is", status, text);
    const message = parsed.data.message ?? "no reason given";
    switch (parsed.data.status) {
      case "PENDING":
        return { state: "pending", message };
      case "RUNNING":
        return { state: "running" };
      case "SUCCEEDED":
        return { state: "succeeded" };
      case "FAILED":
        return { state: "failed", message };
      case "STOPPED":
        return { state: "stopped", message };
    }
  }

  async stop(jobId: string): Promise<void> {
    await this.#request("POST", `api/jobs/${jobId}/stop`);
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  async #request(
    method: "GET" | "POST",
    path: string,
    body?: unknown,
  ): Promise<{ readonly status: number; readonly text: string }> {
    const { headers = {}, timeoutMs = 30_000 } = this.#options;
    const base = this.#url.href.endsWith("/") ? this.#url.href : `${this.#url.href}/`;
    try {
      const answer = await request(new URL(path, base), {
        method,
        headers: { ...headers, ...(body !== undefined && { "content-type": "application/json" }) },
        ...(body !== undefined && { body: JSON.stringify(body) }),
        signal: AbortSignal.timeout(timeoutMs),
      });
      const chunks: Buffer[] = [];
      let bytes = 0;
      for await (const chunk of answer.body as AsyncIterable<Buffer>) {
        bytes += chunk.length;
        if (bytes > maxAnswerBytes) {
          throw new OctavoError("runner_unavailable", `an answer of more than ${maxAnswerBytes} bytes`);
        }
        chunks.push(chunk);
      }
      return { status: answer.statusCode, text: Buffer.concat(chunks).toString("utf8") };
    } catch (cause) {
      const { message } = OctavoError.from(cause);
      throw new OctavoError(
        "runner_unavailable",
        `Ray's dashboard at ${this.#url.origin} does not answer (${message}); start Ray with its dashboard, or name another`,
        { cause },
      );
    }
  }
}

function refused(what: string, status: number, text: string): OctavoError {
  return new OctavoError(
    "runner_unavailable",
    `Ray would not ${what}: status ${status}, ${text.trim().slice(-400)}`,
  );
}

/** A word as a POSIX shell reads it: Ray gives entrypoints to one. */
function shellWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
