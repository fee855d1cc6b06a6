import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { after, before } from "node:test";
import { fileURLToPath } from "node:url";
import { LLM } from "@octavo/engine";
import type { Certificate } from "@octavo/evals";
import { createServer, type OctavoServer } from "@octavo/server";
import { type EndedOctavo, runOctavo } from "../testing/run-octavo.js";

const model = fileURLToPath(new URL("../../../../models/octavo-mini", import.meta.url));

let folder = "";
let dataset = "";
let llm: LLM;
let server: OctavoServer;
let url = "";

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "octavo-certify-"));
  dataset = join(folder, "cases.jsonl");
  const questions = [
    "What is the capital of France?",
    "Count from one to ten.",
    "Say hello to Ada in one sentence.",
  ];
  await writeFile(
    dataset,
    questions.map((input, index) => `${JSON.stringify({ id: `q${index}`, input })}\n`).join(""),
  );
  llm = await LLM.load(model, { maxModelLen: 512, enableFaultInjection: true, maxNumBatchedTokens: 32 });
  const config = { port: 0, enableFaultInjection: true, logLevel: "silent" } as const;
  server = createServer({ model: llm, config });
  ({ url } = await server.listen());
});
after(async () => {
  await server.close();
  await llm[Symbol.asyncDispose]();
  await rm(folder, { recursive: true });
});

const certify = (...args: readonly string[]): Promise<EndedOctavo> => runOctavo(["eval", "certify", ...args]);

test("octavo-mini gives the same bits alone, cached, in batches, preempted and recomputed", async () => {
  const json = join(folder, "certificate.json");
  const ended = await certify("--target", url, "--dataset", dataset, "--max-tokens", "24", "--json", json);
  assert.equal(ended.code, 0, ended.err + ended.out);
  assert.match(ended.out, /^CERTIFIED: [^]*condition +runs +tokens[^]*evicted/);
  const certificate = JSON.parse(await readFile(json, "utf8")) as Certificate;
  assert.equal(certificate.verdict, "pass");
  assert.deepEqual(
    certificate.conditions.map(({ name, runs, failedRuns }) => [name, runs, failedRuns]),
    [
      ["cached", 3, 0],
      ["whole", 3, 0],
      ["batch", 6, 0],
      ["preempted", 3, 0],
      ["evicted", 3, 0],
    ],
  );
  assert.ok(certificate.conditions.every(({ tokens }) => tokens > 10));
});

test("what is missing is a matter of configuration", async () => {
  const without = await certify("--target", url);
  assert.match(without.err, /--dataset: .*\[invalid_option\]/);
  assert.equal(without.code, 4);
});
