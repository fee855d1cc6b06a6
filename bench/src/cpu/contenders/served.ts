import { spawn } from "node:child_process";
import { OctavoError } from "@octavo/protocol/errors";
import { closedLoop, loadFromOutside } from "../../support/served-model.js";
import type { Job, Measurement } from "./contender.js";

export type ServerJob = Extract<Job, { kind: "server" }>;

export interface ServerProcess {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly baseUrl: string;
  /** Answers 200 once requests are served. */
  readonly healthUrl: string;
}

const START_TIMEOUT_MS = 120_000;
const REQUEST_TIMEOUT_MS = 600_000;

/** Starts a server, waits until it answers, and stops it when `use` has ended. */
export async function withServerProcess<T>(server: ServerProcess, use: () => Promise<T>): Promise<T> {
  const child = spawn(server.command, server.args, {
    stdio: ["ignore", "ignore", "pipe"],
    env: { ...process.env, ...server.env },
  });
  let errors = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    errors = (errors + text).slice(-2000);
  });
  const ended = new Promise<void>((resolve) => {
    child.on("error", () => resolve());
    child.on("close", () => resolve());
  });
  const hasEnded = (): boolean =>
    child.pid === undefined || child.exitCode !== null || child.signalCode !== null;
  try {
    await untilHealthy(server, hasEnded, () => errors);
    return await use();
  } finally {
    child.kill("SIGKILL");
    await ended;
  }
}

/** Starts a server and loads it from a process of its own. */
export async function measureServer(server: ServerProcess, job: ServerJob): Promise<Measurement> {
  return await withServerProcess(server, async () => {
    const { requestsPerSecond, sharedTokens: prefixTokens, inputTokens, outputTokens } = job;
    const load = closedLoop(server.baseUrl, job.clients, {
      dataset:
        prefixTokens > 0 ? { kind: "shared-prefix", prefixTokens, numPrefixes: 1 } : { kind: "random" },
      arrival: requestsPerSecond === undefined ? { kind: "burst" } : { kind: "poisson", requestsPerSecond },
      numRequests: job.requests,
      inputTokens,
      outputTokens,
      warmupRequests: 1,
      maxConcurrency: job.clients,
      timeoutMs: REQUEST_TIMEOUT_MS,
    });
    const { summary } = await loadFromOutside(load);
    return {
      serverTokensPerSecond: summary.outputTokensPerSecond,
      ...(summary.ttftMs && { ttftP99Ms: summary.ttftMs.p99.value }),
      ...(summary.maxGapMs && { maxGapP99Ms: summary.maxGapMs.p99.value }),
      ...(summary.interTokenMs && {
        gapP50Ms: summary.interTokenMs.p50.value,
        gapP99Ms: summary.interTokenMs.p99.value,
        longestGapMs: summary.interTokenMs.max,
      }),
    };
  });
}

/** All streams at once over HTTP, with prompts that begin with the same tokens. */
export async function measureShared(
  of: Extract<Job, { kind: "shared-prefix" }>,
  serverFor: (job: ServerJob) => ServerProcess,
): Promise<Measurement> {
  const job: ServerJob = {
    kind: "server",
    clients: of.streams,
    requests: of.streams,
    requestsPerSecond: undefined,
    sharedTokens: of.prefixTokens,
    inputTokens: of.promptTokens - of.prefixTokens,
    outputTokens: of.newTokens,
  };
  const { serverTokensPerSecond = Number.NaN } = await measureServer(serverFor(job), job);
  return { endToEndTokensPerSecond: serverTokensPerSecond };
}

async function untilHealthy(
  server: ServerProcess,
  hasEnded: () => boolean,
  errors: () => string,
): Promise<void> {
  const deadlineMs = performance.now() + START_TIMEOUT_MS;
  while (performance.now() < deadlineMs) {
    if (hasEnded()) throw new OctavoError("engine_failed", `${server.command} ended at start:\n${errors()}`);
    const isUp = await fetch(server.healthUrl).then(
      (response) => response.ok,
      () => false,
    );
    if (isUp) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new OctavoError(
    "deadline_exceeded",
    `${server.command} did not answer within ${START_TIMEOUT_MS / 1000} s`,
  );
}
