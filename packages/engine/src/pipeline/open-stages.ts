import { type ChildProcess, fork } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { OctavoError } from "@octavo/protocol/errors";
import type { StageLoad } from "./messages.js";
import type { RemoteStages } from "./stage-addresses.js";
import { type StageAddress, StageClient } from "./stage-client.js";

/** The stages before the last, each in a process of its own. */
export interface EarlierStages extends Disposable {
  readonly clients: readonly StageClient[];
  /** Of their processes, for tests that end one. */
  readonly processIds: readonly number[];
  /** Resolves to the bytes of their weights once all are loaded. */
  readonly loaded: Promise<number>;
}

/**
 * Starts them, or connects to those that run on other hosts, and has them load their parts of the model. Rejects with `engine_failed`
 * where one does not start or does not have the key.
 */
export async function openStages(
  load: Omit<StageLoad, "stage">,
  count: number,
  remote?: RemoteStages,
): Promise<EarlierStages> {
  const folder = mkdtempSync(join(tmpdir(), "octavo-stages-"));
  const children: ChildProcess[] = [];
  const clients: StageClient[] = [];
  const dispose = (): void => {
    for (const client of clients) client[Symbol.dispose]();
    for (const child of children) child.kill();
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    for (const [index, address] of remote?.addresses.entries() ?? [])
      clients.push(await StageClient.connect(address, remoteName(index, count, address), remote?.key));
    for (let index = clients.length; index < count - 1; index++) {
      const address =
        process.platform === "win32"
          ? `\\\\.\\pipe\\${folder.replaceAll(/\W/g, "-")}-${index}`
          : join(folder, `${index}`);
      children.push(await startStage(address, index));
      clients.push(await StageClient.connect(address, `stage ${index} of ${count}`));
    }
  } catch (error) {
    dispose();
    throw error;
  }
  const digest = remote && { artifactDigest: remote.artifactDigest };
  const loaded = Promise.all(
    clients.map((client, index) =>
      client.ask({ kind: "load", load: { ...load, stage: { index, count }, ...digest } }, "loaded"),
    ),
  ).then((answers) => answers.reduce((sum, { reply }) => sum + reply.weightBytes, 0));
  // Awaited by whoever loads the last stage.
  loaded.catch(() => undefined);
  return { clients, processIds: children.flatMap(({ pid = 0 }) => pid), loaded, [Symbol.dispose]: dispose };
}

function remoteName(index: number, count: number, address: StageAddress): string {
  return `stage ${index} of ${count}${typeof address === "string" ? "" : ` at ${address.host}:${address.port}`}`;
}

function startStage(address: string, index: number): Promise<ChildProcess> {
  const child = fork(fileURLToPath(new URL("stage-process.js", import.meta.url)), [address], {
    stdio: ["ignore", "ignore", "inherit", "ipc"],
    execArgv: [],
  });
  return new Promise((resolve, reject) => {
    const fail = (reason: string): void =>
      reject(new OctavoError("engine_failed", `Stage ${index} of the model did not start: ${reason}.`));
    child.once("message", () => resolve(child));
    child.once("error", ({ message }) => fail(message));
    child.once("exit", (code, signal) => fail(`its process ended with ${signal ?? `code ${code}`}`));
  });
}
