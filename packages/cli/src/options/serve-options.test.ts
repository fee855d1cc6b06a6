import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { defaultServerConfig } from "@octavo/server/settings";
import { applySpec, defineCommand, OctavoCommand } from "../command.js";
import { loadOptionsOf, serverConfigOf, type ServeOptions, serveRows } from "./serve-options.js";

/** What `octavo serve` makes of flags. */
async function parse(...flags: readonly string[]): Promise<ServeOptions> {
  let parsed: ServeOptions | undefined;
  const command = new OctavoCommand("serve").exitOverride().configureOutput({ writeErr: () => undefined });
  const run = async (options: ServeOptions): Promise<void> => {
    parsed = options;
    return Promise.resolve();
  };
  applySpec(command, defineCommand({ options: serveRows, run }));
  await command.parseAsync(flags, { from: "user" });
  assert.ok(parsed);
  return parsed;
}

function parseLine(line: string): Promise<ServeOptions> {
  return parse(...line.split(" "));
}

function setEnvironment(t: TestContext, name: string, value: string): void {
  const before = process.env[name];
  process.env[name] = value;
  t.after(() => {
    if (before === undefined) delete process.env[name];
    else process.env[name] = before;
  });
}

test("without flags, every option has the default of its row", async () => {
  const options = await parse();
  const cacheConfig = { cache_dtype: "auto", enable_prefix_caching: "true" };
  assert.deepEqual(serverConfigOf(options, ["octavo-mini"]), {
    ...defaultServerConfig,
    servedModelNames: ["octavo-mini"],
    cacheConfig,
  });
  const load = loadOptionsOf(options);
  assert.equal(load.maxNumSeqs, 256);
  assert.equal(load.chatTemplate, undefined);
});

test("flags reach the option they name, in its unit", async () => {
  const config = serverConfigOf(
    await parseLine(
      "--request-timeout 1.5 --drain-timeout 0 --api-key a --api-key b --disable-access-log --no-detectors " +
        "--served-model-name x y --port 0 --trace-attributes team=search replicas=4 " +
        "--otlp-traces-endpoint http://here --tenant-from user",
    ),
    [],
  );
  assert.equal(config.requestTimeoutMs, 1500);
  assert.equal(config.drainTimeoutMs, 0);
  assert.deepEqual(config.apiKeys, ["a", "b"]);
  assert.equal(config.accessLog, false);
  assert.equal(config.enableDetectors, false);
  assert.deepEqual(config.servedModelNames, ["x", "y"]);
  assert.deepEqual(config.traceAttributes, { team: "search", replicas: 4 });
  assert.equal(config.otlpEndpoint, "http://here");
  assert.equal(config.tenants?.tenantFrom, "user");
  const load = loadOptionsOf(
    await parseLine(
      "--kv-cache-memory 1GiB --threads 3 --no-enable-prefix-caching --chat-template {{x}} --max-num-seqs 1K",
    ),
  );
  assert.equal(load.kvCacheMemoryBytes, 2 ** 30);
  assert.equal(load.numThreads, 3);
  assert.equal(load.enablePrefixCaching, false);
  assert.equal(load.chatTemplate, "{{x}}");
  assert.equal(load.maxNumSeqs, 1024);
});

test("keys come from the environment where no flag gives them", async (t) => {
  setEnvironment(t, "OCTAVO_API_KEY", "one, two,");
  setEnvironment(t, "VLLM_ALLOW_RUNTIME_LORA_UPDATING", "True");
  setEnvironment(t, "VLLM_IMAGE_FETCH_TIMEOUT", "7");
  const options = await parse("--allowed-media-domains", "a.example", "b.example:81");
  assert.deepEqual(options.allowedMediaDomains, ["a.example", "b.example:81"]);
  assert.equal(options.mediaFetchTimeoutMs, 7000);
  assert.deepEqual(options.apiKeys, ["one", "two"]);
  assert.equal(options.allowRuntimeLoraUpdating, true);
  assert.deepEqual((await parse("--api-key", "flag")).apiKeys, ["flag"]);
});

test("a flag is not taken for the value of the one before it", async () => {
  for (const flags of [
    ["--api-key", "--port", "9"],
    ["--api-key", "--port=9"],
    ["--served-model-name", "--port", "9"],
  ])
    await assert.rejects(parse(...flags), /argument missing/, flags.join(" "));
  assert.deepEqual((await parse("--api-key=--port")).apiKeys, ["--port"]);
});

test("no fault is allowed that was not enabled", async () => {
  const faults = ["--fault-start-delay", "3", "--fault-corrupt-weights", "1:1"];
  assert.deepEqual(loadOptionsOf(await parse("--enable-fault-injection", ...faults)).corruptWeights, {
    seed: 1,
    scale: 1,
  });
  for (const param of ["fault-start-delay", "fault-corrupt-weights"]) {
    const options = await parse(`--${param}`, "1:1".slice(0, param === "fault-start-delay" ? 1 : 3));
    assert.throws(() => loadOptionsOf(options), { code: "invalid_option", param });
  }
});

test("vLLM's older speculation flags say the same as its JSON", async () => {
  const configOf = async (...flags: readonly string[]): Promise<unknown> =>
    loadOptionsOf(await parse(...flags)).speculativeConfig;
  assert.equal(await configOf(), undefined);
  assert.deepEqual(await configOf("--speculative-model", "org/small", "--num-speculative-tokens", "4"), {
    method: "draft_model",
    model: "org/small",
    numSpeculativeTokens: 4,
  });
  assert.deepEqual(await configOf("--speculative-model", "[ngram]", "--ngram-prompt-lookup-max", "4"), {
    method: "ngram",
    numSpeculativeTokens: undefined,
    promptLookupMin: undefined,
    promptLookupMax: 4,
  });
  assert.deepEqual(await configOf("--spec-method", "mtp", "--spec-tokens", "2"), {
    method: "mtp",
    numSpeculativeTokens: 2,
  });
  assert.deepEqual(await configOf("--spec-method", "eagle3", "--spec-model", "org/head"), {
    method: "eagle3",
    model: "org/head",
    numSpeculativeTokens: undefined,
  });
  const json = ["--speculative-config", '{"method": "suffix"}'];
  assert.deepEqual(await configOf(...json), { method: "suffix" });
  for (const flags of [
    [...json, "--num-speculative-tokens", "3"],
    [...json, "--speculative-model", "a"],
    ["--num-speculative-tokens", "3"],
    ["--spec-method", "eagle3"],
    ["--spec-method", "mtp", "--spec-model", "a"],
    ["--ngram-prompt-lookup-min", "3"],
    ["--speculative-model", "org/small", "--ngram-prompt-lookup-max", "3"],
  ])
    await assert.rejects(configOf(...flags), { code: "invalid_option", param: "speculative_config" });
});

test("--dtype takes vLLM's names", async () => {
  for (const [given, meant] of [
    ["bfloat16", "bf16"],
    ["half", "f16"],
    ["float16", "f16"],
    ["float32", "f32"],
    ["auto", "auto"],
    ["f32", "f32"],
  ] as const)
    assert.equal(loadOptionsOf(await parse("--dtype", given)).dtype, meant);
  await assert.rejects(parse("--dtype", "float8"), /one of auto, f32/);
});
