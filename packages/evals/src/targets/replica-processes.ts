import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { OctavoError } from "@octavo/protocol";
import { freePort } from "@octavo/protocol/free-ports";
import { endWithProcess } from "./end-with-process.js";
import type { Target } from "./target.js";

const graceMs = 5000;

/** Replicas that a run started; they end with it, or with its process. */
export class ReplicaProcesses implements AsyncDisposable {
  readonly #children: ChildProcess[] = [];

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
    endWithProcess(child);
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
