// Whatever is wrong with a command line, the command ends with one line that names what was typed and a code, before any work.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { octavoMain, runOctavo } from "./testing/run-octavo.js";

const folder = await mkdtemp(join(tmpdir(), "octavo wrong "));
await writeFile(join(folder, "not.yaml"), "prot: 1\n");
await writeFile(join(folder, "eval.yaml"), "datasets: x\n");
await writeFile(join(folder, "cases.jsonl"), '{"input": "Hello", "expected": "x"}\n');
await mkdir(join(folder, "folder"));

/** A server that wants a key. */
const locked = createServer((_, response) =>
  response.writeHead(401, { "content-type": "application/json" }).end('{"error": {"message": "no key"}}'),
).listen(0, "127.0.0.1");
await once(locked, "listening");
const url = `http://127.0.0.1:${(locked.address() as AddressInfo).port}`;
test.after(async () => {
  locked.close();
  await rm(folder, { recursive: true });
});

const rows: readonly (readonly [args: readonly string[], code: number, line: RegExp])[] = [
  [["serv"], 1, /^octavo: unknown command 'serv'; did you mean serve\? \[invalid_option\]$/],
  [["nothing"], 1, /unknown command 'nothing'; octavo --help lists the commands/],
  [["launcher"], 1, /unknown command 'launcher'; octavo --help lists the commands/],
  [["nothing", "--help"], 1, /unknown command 'nothing'/],
  [["help", "nothing"], 1, /unknown command 'nothing'/],
  [["help", "eval", "rum"], 1, /unknown command 'rum'; did you mean run\?/],
  [["eval", "nothing"], 1, /unknown command 'nothing'; octavo eval --help lists the commands/],
  [["serve", "octavo-mni"], 1, /"octavo-mni" is no existing path.*; did you mean octavo-mini\?/],
  [
    ["serve", "octavo-mini", "--quantization", "awq", "--port", "0"],
    1,
    /is to be read as quantised with awq/,
  ],
  [
    ["costs", "a.log"],
    1,
    /octavo costs: unexpected argument 'a\.log'; octavo costs --help says what it takes/,
  ],
  [["gateway", "gateway.yaml"], 1, /check is the only action, and --config names the configuration/],
  [["cluster", "check", "x"], 1, /octavo cluster: unexpected argument 'x'/],
  [["rm"], 1, /missing required argument 'model': Hugging Face id of a model in the cache/],
  [["optimize", "--config", "eval.yaml"], 1, /eval\.yaml:1:1: version: expected 1/],
  [["eval", "gate"], 4, /eval\.yaml:1:1: version: expected 1/],
  [
    ["eval", "run", "--target", url, "--dataset", "cases.jsonl", "--evaluator", "contians"],
    4,
    /evaluators\[0\]: there is no evaluator "contians"; did you mean contains\?/,
  ],
  [["serve", "--prot", "1"], 1, /unknown option '--prot'; did you mean --port\?/],
  [["serve", "--port", "x"], 1, /^octavo: --port: expected an integer from 0 to 65535, not "x" \[/],
  [["serve", "--api-key", "--port", "1"], 1, /'--api-key <key>' argument missing/],
  [["serve", "--config", "none.yaml"], 1, /--config: none\.yaml cannot be read: there is no such file/],
  [["serve", "--config", "folder"], 1, /--config: folder cannot be read: it is a folder/],
  [["serve", "--metering-log", "folder"], 1, /--metering-log: folder is a folder; name a file/],
  [["serve", "--otlp-endpoint", "x", "--port", "0"], 1, /^octavo: --otlp-endpoint: expected an http/],
  [["run"], 1, /octavo run: missing required argument 'target'/],
  [["run", "octavo-mini", "hi", "--model", "x"], 1, /--model names a model of a server/],
  [["run", url, "hi"], 1, /answers 401: give the server's key with --api-key/],
  [["pull", "octavo-mini"], 1, /octavo-mini comes with the package/],
  [["compare", "octavo-mini"], 1, /octavo compare: required option '--data <file>' not specified/],
  [
    ["compare", "octavo-mini", "octavo-mini", "--data", "cases.jsonl", "--html", "folder"],
    1,
    /--html: folder is a folder/,
  ],
  [["quantize", "octavo-mini", "--method", "q4", "--out", "x"], 1, /^octavo: --method must be one of/],
  [["simulate", "--costs", "not.yaml"], 1, /not\.yaml: .*not valid JSON \[/],
  [["gateway", "check"], 1, /gateway\.yaml: there is no such file/],
  [["bench", "serve", "--base-url", url], 1, /answers 401: give the server's key with --api-key/],
  [["eval", "run", "--no-such"], 4, /unknown option '--no-such'; octavo eval run --help lists the flags/],
  [["eval", "view", "not.yaml"], 5, /not\.yaml cannot be read as JSON/],
];

for (const [args, code, line] of rows)
  test(`octavo ${args.join(" ").replace(url, "URL")}`, async () => {
    const before = await readdir(folder);
    const ended = await runOctavo(args, { cwd: folder, env: { HF_HUB_OFFLINE: "1" } });
    assert.match(ended.err.trimEnd(), line);
    assert.deepEqual(
      [ended.code, ended.out, ended.err.trimEnd().split("\n").length],
      [code, "", 1],
      ended.err,
    );
    assert.deepEqual(await readdir(folder), before, "nothing is left behind");
  });

test("a target that never answers: why, and no success", async () => {
  const args = ["eval", "run", "--target", url, "--dataset", "cases.jsonl", "--evaluator", "contains"];
  const ended = await runOctavo(args, { cwd: folder });
  assert.equal(ended.code, 6, ended.err);
  assert.match(ended.out, /1 of 1 answers of candidate never came: .*; the first: .*no key/);
});

test("output that is lost is a failure", { skip: !existsSync("/dev/full") }, () => {
  const script = `exec "${process.execPath}" "${octavoMain}" eval list > /dev/full`;
  const ended = spawnSync("sh", ["-c", script], { encoding: "utf8" });
  assert.equal(ended.status, 1);
  assert.match(ended.stderr, /^octavo: standard output cannot be written: the disk is full \[disk_full\]/);
});
