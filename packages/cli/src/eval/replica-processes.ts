import { type ChildProcess, spawn } from "node:child_process";
import { createServer } from "node:net";
import { once } from "node:events";
import type { Target } from "@octavo/evals";
import { OctavoError } from "@octavo/protocol";

const graceMs = 5000;

/** Replicas that a run started; they end with it, however it ends. */
export class ReplicaProcesses implements AsyncDisposable {
  readonly #children: ChildProcess[] = [];
  readonly #killAll = (): void => {
    for (const child of this.#children) child.kill("SIGKILL");
  };

  constructor() {
    process.on("exit", this.#killAll);
  }

  /**
   * Resolves when the process runs, though it need not answer yet. `{port}` in the command is a free port.
   * @throws OctavoError `invalid_option` when it cannot be started
   */
  async start(
    command: readonly string[],
    targetOf: (baseUrl: string) => Target,
    signal: AbortSignal,
  ): Promise<Target> {
    signal.throwIfAborted();
    const port = await freePort();
    const [program = "", ...args] = command.map((word) => word.replaceAll("{port}", String(port)));
    const child = spawn(program, args, { stdio: "ignore" });
    this.#children.push(child);
    try {
      await once(child, "spawn");
    } catch (cause) {
      throw new OctavoError("invalid_option", `the replica's command ${program} cannot be started`, {
        cause,
      });
    }
    return targetOf(`http://127.0.0.1:${port}/v1`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#children.map(endProcess));
    process.removeListener("exit", this.#killAll);
  }
}

async function endProcess(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, "exit");
  child.kill("SIGTERM");
  const timer = setTimeout(() => child.kill("SIGKILL"), graceMs);
  await exited;
  clearTimeout(timer);
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
