import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { defineCommand, readAgain } from "../command.js";
import { type ServeOptions, serveRows, serveSources } from "./serve-options.js";

const serve = defineCommand({ options: serveRows, sources: serveSources, run: () => Promise.resolve() });

/** What `octavo serve` makes of flags beside a file. */
async function parse(t: TestContext, yaml: string, ...flags: readonly string[]): Promise<ServeOptions> {
  const folder = mkdtempSync(join(tmpdir(), "octavo-config-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = join(folder, "serve.yaml");
  writeFileSync(file, yaml);
  return readAgain(serve, ["--config", file, ...flags]);
}

function setEnvironment(t: TestContext, name: string, value: string): void {
  process.env[name] = value;
  t.after(() => {
    delete process.env[name];
  });
}

/** The example of vLLM's documentation, and what its parser does with each kind of value. */
const vllms = `
model: meta-llama/Llama-3.1-8B-Instruct
host: "127.0.0.1"
port: 6379
uvicorn-log-level: "info"
served-model-name: [a, b]
enable_prefix_caching: false
enable-lora: true
data-parallel-size: 1
enforce-eager: true
speculative-config:
  method: ngram
  num_speculative_tokens: 5
`;

test("a file of flags is vLLM's", async (t) => {
  const options = await parse(t, vllms);
  assert.deepEqual(options.models, ["meta-llama/Llama-3.1-8B-Instruct"]);
  assert.equal(options.port, 6379);
  assert.equal(options.logLevel, "info");
  assert.deepEqual(options.servedModelNames, ["a", "b"]);
  assert.equal(options.enablePrefixCaching, false);
  assert.equal(options.enableLora, true);
  assert.deepEqual(options.speculativeConfig, { method: "ngram", numSpeculativeTokens: 5 });
  assert.equal(options.maxNumSeqs, 256, "the rest are defaults");
});

test("flags go before variables, variables before the file, the file before defaults", async (t) => {
  setEnvironment(t, "OCTAVO_MAX_NUM_SEQS", "7");
  setEnvironment(t, "OCTAVO_PORT", "1234");
  setEnvironment(t, "OCTAVO_SERVED_MODEL_NAME", "x, y");
  setEnvironment(t, "OCTAVO_DISABLE_ACCESS_LOG", "true");
  const yaml = "max-num-seqs: 5\nport: 80\nblock-size: 32\nserved-model-name: [a]\nenable-lora: true";
  const options = await parse(t, yaml, "--port", "99", "--no-enable-lora");
  assert.equal(options.port, 99);
  assert.equal(options.enableLora, false);
  assert.equal(options.maxNumSeqs, 7);
  assert.equal(options.blockSize, 32);
  assert.deepEqual(options.servedModelNames, ["x", "y"], "a list takes the place of another");
  assert.equal(options.accessLog, false);
});

test("what a file cannot say is refused with its place", async (t) => {
  for (const [yaml, message] of [
    [
      "max-modl-len: 5",
      /serve\.yaml:1:15: max-modl-len: octavo serve has no option "max-modl-len"; did you mean max-model-len\?/,
    ],
    ["port: 80\nport: 81", /serve\.yaml:2:1/],
    ["port: none", /serve\.yaml: .*--port.*expected an integer/],
    ["port: [1, 2]", /serve\.yaml:1:7: port: expected an integer .*, not a list/],
    ["config: other.yaml", /cannot name another/],
    ["- port", /expected flags and their values/],
    ["port:", /port: has no value/],
    ["data-parallel-size: 2", /serve\.yaml: --data-parallel-size 2 is vLLM's/],
    ["{", /serve\.yaml:1:/],
  ] as const)
    await assert.rejects(parse(t, yaml), { code: "invalid_option", message }, yaml);
  await assert.rejects(
    readAgain(serve, ["--config", "/nowhere.yaml"]),
    /cannot be read: there is no such file/,
  );
});

test("a variable that cannot be is refused by name; one that Kubernetes set is not read", async (t) => {
  setEnvironment(t, "OCTAVO_PORT", "tcp://10.0.0.1:8000");
  assert.equal((await readAgain(serve, [])).port, 8000);
  setEnvironment(t, "OCTAVO_MAX_NUM_SEQS", "many");
  await assert.rejects(readAgain(serve, []), { code: "invalid_option", message: /^OCTAVO_MAX_NUM_SEQS: / });
});
