import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { openAiTarget, type Target } from "@octavo/evals";
import { OctavoError } from "@octavo/protocol";

const cli = fileURLToPath(new URL("../../../packages/cli/dist/main.js", import.meta.url));
const startTimeoutMs = 60_000;

/** `octavo serve` of octavo-mini in processes of their own, stopped when it is disposed. */
export class OctavoProcesses implements AsyncDisposable {
  readonly #children: ChildProcess[] = [];

  /** Runs, and need not answer yet. */
  async start(name: string, flags: readonly string[]): Promise<Target> {
    const port = await freePort();
    const always = ["--threads", "1", "--kv-cache-memory", "64MiB", "--log-level", "error"];
    const args = [cli, "serve", "--port", String(port), "--replica-id", name, ...always, ...flags];
    this.#children.push(spawn(process.execPath, args, { stdio: "ignore" }));
    return openAiTarget({ name, baseUrl: `http://127.0.0.1:${port}/v1` });
  }

  /** Answers. */
  async serve(name: string, flags: readonly string[]): Promise<Target> {
    const target = await this.start(name, flags);
    const { signal } = new AbortController();
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
    await Promise.all(
      this.#children.map(async (child) => {
        if (child.exitCode !== null || child.signalCode !== null) return;
        const exited = once(child, "exit");
        child.kill("SIGKILL");
        await exited;
      }),
    );
  }
}

async function freePort(): Promise<number> {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  if (address === null || typeof address === "string")
    throw new OctavoError("internal_error", "the machine gave no port");
  return address.port;
}
