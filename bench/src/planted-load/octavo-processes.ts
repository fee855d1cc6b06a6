import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { openAiTarget, ReplicaProcesses, type Target } from "@octavo/evals";
import { OctavoError } from "@octavo/protocol";

const cli = fileURLToPath(new URL("../../../packages/cli/dist/main.js", import.meta.url));
const startTimeoutMs = 60_000;
const { signal } = new AbortController();

/** `octavo serve` of octavo-mini in processes of their own, stopped when it is disposed. */
export class OctavoProcesses implements AsyncDisposable {
  readonly #replicas = new ReplicaProcesses();

  /** Runs, and need not answer yet. */
  start(name: string, flags: readonly string[]): Promise<Target> {
    // flags go before what a file has
    const own = flags.includes("--config") ? [] : ["--threads", "1", "--kv-cache-memory", "64MiB"];
    const always = ["--log-level", "error", ...own];
    const command = [process.execPath, cli, "serve", "--port", "{port}", "--replica-id", name];
    return this.#replicas.start(
      [...command, ...always, ...flags],
      (baseUrl) => openAiTarget({ name, baseUrl }),
      signal,
    );
  }

  /** Answers. */
  async serve(name: string, flags: readonly string[]): Promise<Target> {
    const target = await this.start(name, flags);
    const probe = {
      id: "probe",
      messages: [{ role: "user", content: "Hello" }] as const,
      tools: [],
      context: undefined,
      expected: {},
      parameters: { maxTokens: 1 },
      tenant: undefined,
      cluster: undefined,
      tags: [],
      metadata: {},
    };
    const untilMs = performance.now() + startTimeoutMs;
    for (;;) {
      const { failure } = await target.answer(probe, { signal });
      if (failure === undefined) return target;
      if (performance.now() > untilMs)
        throw new OctavoError("target_unreachable", `${name} did not start: ${failure.message}`);
      await sleep(50);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#replicas[Symbol.asyncDispose]();
  }
}
