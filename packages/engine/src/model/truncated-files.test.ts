import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, test } from "node:test";
import { fileURLToPath } from "node:url";

const embedded = fileURLToPath(new URL("../../../../models/octavo-mini", import.meta.url));

/** Generates, truncates the files of a folder that end so, and generates again. */
const program = `
  import { readdirSync, truncateSync } from "node:fs";
  import { join } from "node:path";
  const { LLM } = await import(${JSON.stringify(import.meta.resolve("../index.js"))});
  const { model, folder, ending, signal, ...options } = JSON.parse(process.argv[1]);
  for (let starts = 0; starts < 2; starts += 1) {
    const llm = await LLM.load(model, { maxModelLen: 256, numThreads: 2, ...options });
    await llm.packed;
    await llm.generate("Hello", { maxTokens: 2 }).result();
    if (starts === 0) { await llm[Symbol.asyncDispose](); continue; }
    if (signal !== undefined) process.kill(process.pid, signal);
    for (const name of readdirSync(folder).filter((name) => name.endsWith(ending)))
      truncateSync(join(folder, name), 4096);
    await llm.generate("Hello again", { maxTokens: 2 }).result();
  }
`;

describe("a mapped file that is truncated while serving", () => {
  let folder = "";
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "octavo-truncated-"));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  const serve = (options: Readonly<Record<string, unknown>>) =>
    spawnSync(
      process.execPath,
      ["--input-type=module", "-e", program, JSON.stringify({ folder, ...options })],
      { encoding: "utf8" },
    );

  test("ends the process with a line that names it: the weight cache", () => {
    const { status, stderr } = serve({ model: embedded, weightCache: folder, ending: ".octavo-weights" });
    assert.equal(status, 74, stderr);
    assert.match(stderr, /^octavo: \S+\.octavo-weights was truncated, or its disk failed/m);
  });

  test("ends the process with a line that names it: a model read in place", () => {
    const model = join(folder, "model");
    cpSync(embedded, model, { recursive: true });
    const options = { weightsInPlace: true, weightCache: "off", ending: ".safetensors" };
    const { status, stderr } = serve({ model, folder: model, ...options });
    // Without kernels that read in place, the weights were packed and nothing is lost.
    assert.ok(status === 74 || status === 0, stderr);
    if (status === 74) assert.match(stderr, /^octavo: \S+\.safetensors was truncated/m);
  });

  test("is distinguished from any other SIGBUS", () => {
    const { status, signal } = serve({
      model: embedded,
      weightCache: "off",
      ending: ".none",
      signal: "SIGBUS",
    });
    assert.deepEqual({ status, signal }, { status: null, signal: "SIGBUS" });
  });
});
