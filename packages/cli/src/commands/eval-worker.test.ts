import assert from "node:assert/strict";
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { after, before } from "node:test";
import {
  type ScriptedServer,
  sendModels,
  startScriptedServer,
  streamAnswer,
} from "../testing/scripted-server.js";
import { type EndedOctavo, octavoMain, runOctavo } from "../testing/run-octavo.js";

const skip =
  spawnSync("redis-server", ["--version"]).status === 0 ? false : "there is no redis-server on this machine";

let folder = "";
const started: ChildProcess[] = [];
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "octavo-worker-"));
});
after(async () => {
  for (const child of started) child.kill("SIGKILL");
  await rm(folder, { recursive: true, force: true });
});

async function freePort(): Promise<number> {
  const socket = createServer().listen(0, "127.0.0.1");
  await once(socket, "listening");
  const { port } = socket.address() as AddressInfo;
  socket.close();
  await once(socket, "close");
  return port;
}

/** A process that has said that it is ready. */
async function startUntil(says: RegExp, command: string, ...args: readonly string[]): Promise<ChildProcess> {
  const child = spawn(command, args, { cwd: folder, stdio: ["ignore", "pipe", "pipe"] });
  started.push(child);
  await new Promise<void>((resolve, reject) => {
    let said = "";
    const hear = (chunk: Buffer): void => {
      said += chunk.toString();
      if (says.test(said)) resolve();
    };
    child.stdout.on("data", hear);
    child.stderr.on("data", hear);
    child.once("exit", () => reject(new TypeError(`${command} ended: ${said}`)));
  });
  return child;
}

const octavo = (...args: readonly string[]): Promise<EndedOctavo> =>
  runOctavo(["eval", ...args], { cwd: folder });

/** A model that says what it is asked to say. */
const startEcho = (): Promise<ScriptedServer> =>
  startScriptedServer(({ url }, { messages }, response) => {
    if (url?.endsWith("/models")) sendModels(response, "echo");
    else streamAnswer(response, "echo", messages?.at(-1)?.content.replace("Say ", "") ?? "");
  });

test("a run scores on the worker of a queue, which ends when it is told to", { skip }, async () => {
  const port = await freePort();
  await startUntil(
    /Ready to accept connections/,
    "redis-server",
    "--port",
    `${port}`,
    "--save",
    "",
    "--bind",
    "127.0.0.1",
  );
  const redis = `redis://127.0.0.1:${port}`;
  const worker = await startUntil(
    /taking jobs/,
    process.execPath,
    octavoMain,
    "eval",
    "worker",
    "--redis",
    redis,
    "--threads",
    "1",
  );
  const echo = await startEcho();
  const cases = Array.from({ length: 40 }, (_, index) =>
    JSON.stringify({ input: `Say ${index}`, expected: `${index % 20}` }),
  );
  await writeFile(join(folder, "cases.jsonl"), cases.join("\n"));
  const flags = ["--target", echo.url, "--dataset", "cases.jsonl", "--evaluator", "exact_match"];
  const ended = await octavo("run", ...flags, "--redis", redis);
  echo.close();
  assert.equal(ended.code, 0, ended.err);
  assert.match(ended.out, /exact_match +candidate +50\.0 %/);
  worker.kill("SIGTERM");
  const [code] = (await once(worker, "exit")) as [number | null];
  assert.equal(code, 0);
});

test("places to score that exclude each other, or do not answer, are told", async () => {
  const flags = [
    "--target",
    "http://127.0.0.1:9",
    "--dataset",
    "none.jsonl",
    "--evaluator",
    "exact_match",
    "--model",
    "m",
  ];
  await writeFile(join(folder, "none.jsonl"), '{"input":"x"}\n');
  const both = await octavo("run", ...flags, "--redis", "redis://127.0.0.1:9", "--ray", "http://127.0.0.1:9");
  assert.equal(both.code, 4, both.err);
  assert.match(both.err, /--redis and --ray all say where to score/);
  const alone = await octavo("run", ...flags, "--ray", "http://127.0.0.1:9");
  assert.match(alone.err, /--ray and --shared-folder belong together/);
  const down = await octavo("worker", "--redis", "redis://127.0.0.1:9");
  assert.notEqual(down.code, 0);
  assert.match(down.err, /Redis at redis:\/\/127\.0\.0\.1:9 does not answer/);
});
