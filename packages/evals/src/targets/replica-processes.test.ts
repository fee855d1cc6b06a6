import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import test from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { functionTarget } from "./function-target.js";
import { ReplicaProcesses } from "./replica-processes.js";

/** A replica that says back what it is sent. */
const echo = [
  process.execPath,
  "-e",
  'require("node:net").createServer((socket) => socket.pipe(socket)).listen({port}, "127.0.0.1")',
];

const run = `
  import { ReplicaProcesses } from ${JSON.stringify(new URL("replica-processes.js", import.meta.url).href)};
  process.once("SIGTERM", () => console.log("heard"));
  const replicas = new ReplicaProcesses();
  await replicas.start(${JSON.stringify(echo)}, (url) => console.log(url), new AbortController().signal);
  setInterval(() => undefined, 1000);
`;

test("replicas end with a process that a signal ends, not with a signal that others listen to", async (t) => {
  const child = spawn(process.execPath, ["--input-type=module", "--eval", run]);
  t.after(() => child.kill("SIGKILL"));
  const exited = once(child, "exit");
  const [url] = (await once(child.stdout, "data")) as [Buffer];
  const port = Number(new URL(String(url).trim()).port);
  const socket = await connected(port);
  const closed = new Promise((resolve) => socket.on("error", () => undefined).on("close", resolve));

  child.kill("SIGTERM");
  assert.match(String(await once(child.stdout, "data")), /heard/);
  socket.write("still there?");
  assert.equal(String(await once(socket, "data")), "still there?");

  child.kill("SIGTERM");
  assert.deepEqual(await exited, [null, "SIGTERM"]);
  await closed;
});

test("a command that does not exist is named", async () => {
  await using replicas = new ReplicaProcesses();
  await assert.rejects(
    replicas.start(
      ["/nonexistent/replica"],
      (url) => functionTarget(url, () => ""),
      AbortSignal.timeout(10_000),
    ),
    { code: "invalid_option", message: /\/nonexistent\/replica cannot be started/ },
  );
});

/** Tries until the replica listens. */
async function connected(port: number): Promise<Socket> {
  for (;;) {
    const socket = connect(port, "127.0.0.1");
    try {
      await once(socket, "connect");
      return socket;
    } catch {
      await sleep(20);
    }
  }
}
