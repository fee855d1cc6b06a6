import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { fileURLToPath } from "node:url";
import { type EndedOctavo, runOctavo, startOctavo } from "./testing/run-octavo.js";

const octavo = (...args: readonly string[]): Promise<EndedOctavo> =>
  runOctavo(args, { env: { HF_HUB_OFFLINE: "1", HF_HOME: join(tmpdir(), "octavo-no-hub") } });

test("help and version", async () => {
  const help = await octavo("serve", "--help");
  assert.equal(help.code, 0);
  for (const flag of [
    "--port",
    "--api-key",
    "--max-model-len",
    "--kv-cache-memory",
    "--enable-prefix-caching",
  ]) {
    assert.ok(help.out.includes(flag), flag);
  }
  assert.deepEqual(
    help.out.split("\n").filter((line) => line.length > 80),
    [],
    "no line is wider than a terminal",
  );
  assert.match((await octavo("--version")).out, /^\d+\.\d+\.\d+/);
});

test("what cannot be served ends with one line that names the cause and its code", async () => {
  const folder = await mkdtemp(join(tmpdir(), "octavo-cli-"));
  try {
    const truncated = join(folder, "model.gguf");
    await writeFile(truncated, "GGUF\u0003\0\0\0");
    for (const [args, expected] of [
      [["serve", folder], /\[artifact_(not_found|invalid)\]/],
      [["serve", truncated], /\[artifact_invalid\]/],
      [["serve", "nobody/nothing"], /\[(artifact_not_found|hub_unreachable)\]/],
      [
        ["serve", "nobody/nothing", "--max-body-size", "10"],
        /--max-body-size: .* from 1 KiB to 2 GiB.*\[invalid_option\]/,
      ],
      [["serve", "--chat-template", "missing.jinja"], /--chat-template.*\[invalid_option\]/],
      [["plan", folder], /\[artifact_(not_found|invalid)\]/],
      [["plan", truncated], /\[artifact_invalid\]/],
      [["plan", "nobody/nothing"], /HF_HUB_OFFLINE.*\[artifact_not_found\]/],
      [["plan", "nobody/nothing", "--api-price", "1/2"], /--rate.*\[invalid_option\]/],
      [
        ["plan", folder, "--hardware", "h100,l40s", "--rate", "2.5"],
        /2 kinds of hardware need as many rates.*\[invalid_option\]/,
      ],
      [["bench", "serve", "--base-url", "http://127.0.0.1:9"], /no server answers/],
      [["bench", "serve", "--dataset", "file"], /--dataset-path/],
    ] as const) {
      const ended = await octavo(...args);
      assert.equal(ended.code, 1, args.join(" "));
      assert.match(ended.err, expected, args.join(" "));
      assert.doesNotMatch(ended.err, /\n\s+at /, `${args.join(" ")} shows a stack`);
    }
  } finally {
    await rm(folder, { recursive: true });
  }
});

test("plans come from a config.json alone, as tables or JSON", async () => {
  const model = fileURLToPath(new URL("../../../models/octavo-mini", import.meta.url));
  const table = await octavo(
    "plan",
    model,
    "--hardware",
    "h100,m3-max",
    "--context",
    "2048",
    "--rate",
    "2.5,1",
  );
  assert.equal(table.code, 0, table.err);
  assert.match(table.out, /5\.771 M[^]*NVIDIA H100[^]*as stored[^]*Apple M3 Max[^]*Assumed/);
  const json = await octavo("plan", join(model, "config.json"), "--context", "2048", "--json");
  const plan = JSON.parse(json.out) as { parameters: number; machines: { formats: unknown[] }[] };
  assert.equal(plan.parameters, 5_771_264);
  assert.ok((plan.machines[0]?.formats.length ?? 0) > 5);
});

test("compares a model with itself, as a table and a page", async () => {
  const model = fileURLToPath(new URL("../../../models/octavo-mini", import.meta.url));
  const folder = await mkdtemp(join(tmpdir(), "octavo-cli-"));
  try {
    const data = join(folder, "data.jsonl");
    const page = join(folder, "page.html");
    await writeFile(data, '{"prompt": "one, two", "completion": ", three"}\n');
    const ended = await octavo("compare", model, model, "--data", data, "--html", page);
    assert.equal(ended.code, 0, ended.err);
    assert.match(ended.out, /^IDENTICAL: /);
    assert.match(await readFile(page, "utf8"), /^<!doctype html>/);
    const lost = await octavo("compare", model, model, "--data", data, "--html", join(page, "below"));
    assert.equal(lost.code, 1);
    assert.equal(lost.out, "", "nothing was computed");
    assert.match(
      lost.err,
      /^octavo: --html: nothing can be written to .* its path is a file \[invalid_option\]\n$/,
    );
    await writeFile(data, '{"prompt": "one, two"}\n');
    const refused = await octavo("compare", model, model, "--data", data);
    assert.match(refused.err, /data\.jsonl:1 .*"completion".*\[invalid_option\]/);
  } finally {
    await rm(folder, { recursive: true });
  }
});

test("flags that make no sense are refused before anything is loaded", async () => {
  for (const args of [
    ["serve", "--port", "70000"],
    ["serve", "--max-num-seqs", "0"],
    ["serve", "--kv-cache-memory", "lots"],
    ["serve", "--kv-cache-dtype", "f8"],
    ["serve", "--gpu-memory-utilization", "1.5"],
    ["serve", "--drain-timeout", "1e9"],
    ["serve", "--no-such-flag"],
    ["serve", "--enable-fault-injection", "--fault-corrupt-weights", "0.1"],
    ["serve", "--enable-fault-injection", "--fault-corrupt-weights", "1:much"],
    ["bench", "serve", "--request-rate", "-1"],
    ["compare", "model", "--data", "file"],
    ["compare", "model", "model"],
    ["plan"],
    ["plan", "model", "--hardware", "abacus"],
    ["plan", "model", "--api-price", "1/2/3"],
    ["bench", "serve", "--goodput", "speed:3"],
    ["no-such-command"],
  ]) {
    const ended = await octavo(...args);
    assert.equal(ended.code, 1, args.join(" "));
    assert.match(ended.err, /^octavo: .* \[invalid_option\]\n$/, args.join(" "));
  }
});

test("a reader that goes away ends a command without a stack", async () => {
  const model = fileURLToPath(new URL("../../../models/octavo-mini", import.meta.url));
  const { child, ended } = startOctavo(["plan", model, "--json"]);
  child.stdout.destroy();
  const { code, err } = await ended;
  assert.equal(code, 0, err);
  assert.equal(err, "");
});

test("a run that is interrupted ends with what shells call it, and says how to go on", async () => {
  const model = fileURLToPath(new URL("../../../models/octavo-mini", import.meta.url));
  const folder = await mkdtemp(join(tmpdir(), "octavo-cli-"));
  try {
    const texts = fileURLToPath(new URL("../../studio/fixtures/calibration.jsonl", import.meta.url));
    const flags = ["--method", "gptq", "--calibration", texts, "--out", join(folder, "out")];
    const { child, ended } = startOctavo(["quantize", model, ...flags]);
    child.stderr.once("data", () => child.kill("SIGINT"));
    const { code, err } = await ended;
    assert.equal(code, 130, err);
    assert.match(err, /stopping when this part is done[^]*goes on from here\. \[request_cancelled\]/);
  } finally {
    await rm(folder, { recursive: true });
  }
});

test("a signal that comes with the banner, and output that nobody reads, end it in order", async () => {
  const model = fileURLToPath(new URL("../../artifacts/fixtures/models/checkpoints/llama3", import.meta.url));
  const { child, ended } = startOctavo(["serve", model, "--port", "0", "--threads", "1"]);
  for await (const text of child.stderr.iterator({ destroyOnReturn: false }))
    if (String(text).includes("Octavo serves")) break;
  child.stdout.destroy();
  child.stderr.destroy();
  child.kill("SIGTERM");
  assert.equal((await ended).code, 0);
});
