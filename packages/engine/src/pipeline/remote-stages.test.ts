import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { artifactDigest } from "@octavo/artifacts/checkpoint/artifact-digest";
import { openCheckpoint } from "@octavo/artifacts/checkpoint/open-checkpoint";
import { createCpuBackend } from "@octavo/kernels";
import { LLM } from "../llm/llm.js";
import type { LoadOptions } from "../llm/load-options.js";
import { type EarlierStages, openStages } from "./open-stages.js";
import { serveStages } from "./serve-stages.js";
import { remoteStages } from "./stage-addresses.js";

const octavoMini = fileURLToPath(new URL("../../../../models/octavo-mini", import.meta.url));

const folder = mkdtempSync(join(tmpdir(), "octavo-remote-stages-"));
const keyFile = join(folder, "key");
const otherKeyFile = join(folder, "other-key");
writeFileSync(keyFile, "a secret of the two of us\n");
writeFileSync(otherKeyFile, "the secret of somebody else");
const children: ChildProcess[] = [];
const addresses: string[] = [];

/** A stage in a process that shares nothing with this one but the key's file. */
async function startStage(host: string): Promise<string> {
  const module = new URL("serve-stages.js", import.meta.url).href;
  const script = `import { serveStages } from ${JSON.stringify(module)};
const { address } = await serveStages({ host: ${JSON.stringify(host)}, port: 0, keyFile: ${JSON.stringify(keyFile)} });
console.log(address);`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", script], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  children.push(child);
  const [line] = (await once(child.stdout, "data")) as [Buffer];
  return line.toString().trim();
}

before(async () => {
  // a second host, where the system has one
  const second = process.platform === "linux" ? "127.0.0.2" : "127.0.0.1";
  addresses.push(...(await Promise.all(["127.0.0.1", second].map(startStage))));
});
after(() => {
  for (const child of children) child.kill();
  rmSync(folder, { recursive: true });
});

async function answersOf(path: string, options: LoadOptions): Promise<readonly string[]> {
  await using model = await LLM.load(path, { numThreads: 1, maxModelLen: 128, ...options });
  const prompts = ["The sea is", "one two three four five six seven"];
  const results = await model.generate(prompts, { maxTokens: 12, temperature: 0, ignoreEos: true });
  return results.map(({ text }) => text);
}

const load = (path: string, pipelineStageAddresses: readonly string[], more: LoadOptions = {}) =>
  answersOf(path, {
    pipelineParallelSize: pipelineStageAddresses.length + 1,
    pipelineStageAddresses,
    pipelineKeyFile: keyFile,
    ...more,
  });

/** The earlier stages alone. */
async function open(path: string, given: readonly string[], digest: string): Promise<EarlierStages> {
  const pipelineParallelSize = given.length + 1;
  const remote = remoteStages({
    pipelineParallelSize,
    pipelineStageAddresses: given,
    pipelineKeyFile: keyFile,
  });
  assert.ok(remote);
  using backend = createCpuBackend({ numThreads: 1 });
  const { instructionSet, features } = backend.info;
  const sizes = { numRanks: 1, numThreads: 1, maxTokens: 64, maxModelLen: 64, inPlace: false };
  const kernels = { kernels: "features", kernelFeatures: [instructionSet, ...features].join(" ") };
  const part = { path, name: "octavo-mini", ...sizes, ...kernels };
  return openStages(part, pipelineParallelSize, { ...remote, artifactDigest: digest });
}

describe("stages on other hosts", () => {
  test("give the text of one process, again and again, each with the weights of its layers alone", async () => {
    const expected = await answersOf(octavoMini, {});
    assert.deepEqual(await load(octavoMini, addresses), expected);
    assert.deepEqual(await load(octavoMini, addresses.toReversed()), expected);
    await using whole = await LLM.load(octavoMini, { numThreads: 1, maxModelLen: 128 });
    using stages = await open(octavoMini, addresses, await artifactDigest(await openCheckpoint(octavoMini)));
    const bytes = await stages.loaded;
    assert.ok(bytes > 0 && bytes < whole.weightBytes, `${bytes} of ${whole.weightBytes}`);
  });

  test("a server or a stage with another key, or none, is refused by the other end", async () => {
    const path = octavoMini;
    await assert.rejects(load(path, addresses.slice(0, 1), { pipelineKeyFile: otherKeyFile }), {
      code: "engine_failed",
      message: /stage 0 of 2 at 127\.0\.0\.1:\d+: it has another key/,
    });
    const refused: string[] = [];
    const stage = await serveStages({
      host: "127.0.0.1",
      port: 0,
      keyFile,
      onRefused: (address) => refused.push(address),
    });
    const port = Number(stage.address.split(":")[1]);
    const bytes = Buffer.from(JSON.stringify({ head: { kind: "load" } }).padEnd(200));
    for (const sent of [bytes, Buffer.alloc(64), Buffer.alloc(3)]) {
      const socket = connect(port, "127.0.0.1");
      socket.on("error", () => undefined);
      socket.end(sent);
      const heard: Buffer[] = [];
      socket.on("data", (chunk: Buffer) => heard.push(chunk));
      await once(socket, "close");
      assert.ok(Buffer.concat(heard).length <= 32, "it says no more than its nonce");
    }
    stage.close();
    assert.deepEqual(new Set(refused), new Set(["127.0.0.1"]));
    assert.equal(refused.length, 3);
  });

  test("another artifact at the same path on the stage's host is refused", async () => {
    const path = join(folder, "model");
    cpSync(octavoMini, path, { recursive: true });
    const digest = await artifactDigest(await openCheckpoint(path));
    const weights = join(path, readdirSync(path).find((name) => name.endsWith(".safetensors")) ?? "");
    const bytes = readFileSync(weights);
    bytes.writeUInt8(bytes.readUInt8(bytes.length - 1) ^ 1, bytes.length - 1);
    writeFileSync(weights, bytes);
    using stages = await open(path, addresses.slice(0, 1), digest);
    await assert.rejects(stages.loaded, {
      code: "invalid_option",
      message: /^stage 0 of 2 at .*: The model at .* is another one than the server's/,
    });
  });

  test("options that do not hold together are refused before anything is loaded", async () => {
    const path = octavoMini;
    const param = "pipeline_stage_addresses";
    for (const options of [
      { pipelineStageAddresses: ["127.0.0.1:1"] },
      { pipelineStageAddresses: ["127.0.0.1:1", "127.0.0.1:2"], pipelineParallelSize: 2 },
      { pipelineStageAddresses: ["127.0.0.1"], pipelineParallelSize: 2, pipelineKeyFile: keyFile },
      { pipelineStageAddresses: ["127.0.0.1:99999"], pipelineParallelSize: 2, pipelineKeyFile: keyFile },
      { pipelineStageAddresses: ["127.0.0.1:1"], pipelineParallelSize: 2 },
      { pipelineKeyFile: keyFile, pipelineParallelSize: 2 },
    ])
      await assert.rejects(answersOf(path, options), { code: "invalid_option", param });
    writeFileSync(join(folder, "short"), "secret\n");
    for (const file of ["short", "missing"])
      await assert.rejects(load(path, ["127.0.0.1:1"], { pipelineKeyFile: join(folder, file) }), {
        code: "invalid_option",
        param: "pipeline_key_file",
      });
    await assert.rejects(load(path, ["127.0.0.1:1"]), { code: "engine_failed", message: /ECONNREFUSED/ });
  });
});
