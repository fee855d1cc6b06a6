import assert from "node:assert/strict";
import { copyFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import { LLM } from "@octavo/engine";
import { collectGarbage } from "@octavo/protocol/testing/collect-garbage";
import { octavoMiniPath, type OctavoMini, startOctavoMini } from "./testing/octavo-mini.js";
import { parseExposition } from "./testing/parse-exposition.js";

const options = { maxModelLen: 512, enableSleepMode: true, numThreads: 1 } as const;
const prompt = "Tell me about the weather in Oslo";

const start = (): Promise<OctavoMini> => startOctavoMini(options, { apiKeys: ["op"] });

async function ask({ url }: OctavoMini, path: string): Promise<{ status: number; text: string }> {
  const response = await fetch(url + path, { method: "POST", headers: { authorization: "Bearer op" } });
  return { status: response.status, text: await response.text() };
}

async function ok(octavoMini: OctavoMini, path: string): Promise<void> {
  assert.deepEqual(await ask(octavoMini, path), { status: 200, text: "" }, path);
}

async function isSleeping({ url }: OctavoMini): Promise<boolean> {
  const response = await fetch(`${url}/is_sleeping`, { headers: { authorization: "Bearer op" } });
  return ((await response.json()) as { is_sleeping: boolean }).is_sleeping;
}

async function sleepState({ url }: OctavoMini): Promise<readonly string[]> {
  const families = parseExposition(await (await fetch(`${url}/metrics`)).text());
  const samples = families.get("vllm:engine_sleep_state")?.samples ?? [];
  return samples.filter(({ value }) => value === 1).map(({ labels }) => labels["sleep_state"] ?? "");
}

const complete = async ({ llm }: Pick<OctavoMini, "llm">, maxTokens = 12): Promise<string> =>
  (await llm.generate(prompt, { temperature: 0, maxTokens, ignoreEos: true }).result()).text;

describe("a server that may sleep", () => {
  it("frees its memory, holds requests meanwhile, and answers the same when it wakes", async () => {
    await using octavoMini = await start();
    const before = await complete(octavoMini);
    assert.deepEqual(await sleepState(octavoMini), ["awake"]);
    for (const [path, state] of [
      ["/sleep", ["weights_offloaded"]],
      ["/sleep?level=2", ["discard_all"]],
      ["/sleep?level=0", []],
    ] as const) {
      await ok(octavoMini, path);
      assert.equal(await isSleeping(octavoMini), true);
      assert.deepEqual(await sleepState(octavoMini), state);
      const { url } = octavoMini;
      assert.equal((await fetch(`${url}/health`)).status, 200, "who sleeps is well");
      const held = complete(octavoMini);
      const heldToo = fetch(`${url}/v1/completions`, {
        method: "POST",
        headers: { authorization: "Bearer op", "content-type": "application/json" },
        body: JSON.stringify({ prompt, max_tokens: 2, octavo: { queue_timeout_ms: 1 } }),
      });
      assert.equal((await heldToo).status, 504, "a deadline holds while the model sleeps");
      await ok(octavoMini, path.replace("level=2", "level=1"));
      await ok(octavoMini, "/wake_up");
      assert.equal(await held, before);
      assert.equal(await isSleeping(octavoMini), false);
      await ok(octavoMini, "/wake_up");
    }
  });

  it("wakes in parts, and only runs once both are there", async () => {
    await using octavoMini = await start();
    const before = await complete(octavoMini);
    await ok(octavoMini, "/sleep?level=1");
    await ok(octavoMini, "/wake_up?tags=weights");
    assert.equal(await isSleeping(octavoMini), true);
    const held = complete(octavoMini);
    await ok(octavoMini, "/sleep?level=1");
    await ok(octavoMini, "/wake_up?tags=kv_cache&tags=weights");
    assert.equal(await held, before);
  });

  it("ends, finishes or keeps running requests, as asked", async () => {
    await using octavoMini = await start();
    const { llm } = octavoMini;
    const whole = await complete(octavoMini, 200);
    const begin = async (): Promise<{ reason: Promise<string | undefined>; text: Promise<string> }> => {
      const running = llm.generate(prompt, { temperature: 0, maxTokens: 200, ignoreEos: true });
      const result = running.result();
      while (llm.engine.stats.running === 0) await new Promise((turn) => setImmediate(turn));
      return {
        reason: result.then((end) => end.sequences[0]?.finishReason),
        text: result.then((end) => end.text),
      };
    };
    const aborted = await begin();
    await ok(octavoMini, "/sleep");
    assert.equal(await aborted.reason, "abort");
    await ok(octavoMini, "/wake_up");
    const kept = await begin();
    await ok(octavoMini, "/sleep?mode=keep");
    assert.equal(llm.engine.stats.running, 0);
    await ok(octavoMini, "/wake_up");
    assert.equal(await kept.text, whole);
    assert.equal(await kept.reason, "length");
    const finished = await begin();
    const sleeping = ask(octavoMini, "/sleep?mode=wait");
    assert.equal(await finished.text, whole);
    assert.equal((await sleeping).status, 200);
    const held = complete(octavoMini, 200);
    await ok(octavoMini, "/wake_up");
    assert.equal(await held, whole);
  });

  it("refuses what it does not know, and tells who may not ask", async () => {
    await using octavoMini = await start();
    for (const [path, named] of [
      ["/sleep?level=3", "level: must be 0, 1, 2"],
      ["/sleep?level=deep", "level: must be 0, 1, 2"],
      ["/sleep?mode=gently", "mode: must be abort, wait, keep"],
      ["/wake_up?tags=weights&tags=arms", "tags: must be of weights, kv_cache"],
    ] as const) {
      const { status, text } = await ask(octavoMini, path);
      assert.equal(status, 400, path);
      assert.ok(text.includes(named), text);
    }
    assert.equal(await isSleeping(octavoMini), false);
    assert.equal((await fetch(`${octavoMini.url}/sleep`, { method: "POST" })).status, 401);
    await using plain = await startOctavoMini({ maxModelLen: 512, numThreads: 1 });
    const off = await ask(plain, "/sleep");
    assert.equal(off.status, 404);
    assert.match(off.text, /--enable-sleep-mode/);
    assert.equal(await isSleeping(plain), false);
  });

  it("closes at once while it sleeps, whoever waits", async () => {
    const octavoMini = await start();
    await ok(octavoMini, "/sleep");
    const held = complete(octavoMini);
    await octavoMini[Symbol.asyncDispose]();
    assert.equal(await held, "");
  });
});

describe("a model that sleeps", () => {
  it("takes the same bits from the weight cache", async () => {
    const folder = mkdtempSync(join(tmpdir(), "octavo-sleep-"));
    await using llm = await LLM.load(octavoMiniPath, { ...options, weightCache: folder });
    const before = await complete({ llm });
    await llm.sleepMode?.sleep();
    await llm.sleepMode?.wakeUp();
    assert.equal(await complete({ llm }), before);
    rmSync(folder, { recursive: true });
  });

  it("takes its draft model along", async () => {
    const speculativeConfig = { method: "draft_model", model: octavoMiniPath, num_speculative_tokens: 3 };
    await using llm = await LLM.load(octavoMiniPath, { ...options, speculativeConfig } as never);
    const before = await complete({ llm }, 60);
    const kept = complete({ llm }, 60);
    await llm.sleepMode?.sleep({ mode: "keep" });
    await llm.sleepMode?.wakeUp();
    assert.equal(await kept, before);
    assert.equal(await complete({ llm }, 60), before);
  });

  it("finds changed files: refused at level 1, served at level 2, unless they are of another model", async () => {
    const folder = mkdtempSync(join(tmpdir(), "octavo-sleep-"));
    for (const name of readdirSync(octavoMiniPath).filter((file) => /\.(json|jinja|safetensors)$/.test(file)))
      copyFileSync(join(octavoMiniPath, name), join(folder, name));
    await using llm = await LLM.load(folder, options);
    const before = await complete({ llm });
    const digest = await llm.artifactDigest();
    const weights = join(folder, "model.safetensors");
    const bytes = readFileSync(weights);
    await llm.sleepMode?.sleep({ level: 1 });
    const changed = Buffer.from(bytes);
    // The last tensors' values, all of them finite still.
    changed.fill(0, bytes.length - 4096);
    writeFileSync(weights, changed);
    await assert.rejects(llm.sleepMode!.wakeUp(), /changed while its model slept; sleep at level 2/);
    assert.equal(llm.sleepMode?.level, 1);
    await llm.sleepMode?.sleep({ level: 2 });
    await llm.sleepMode?.wakeUp();
    assert.notEqual(await llm.artifactDigest(), digest);
    await llm.sleepMode?.sleep({ level: 2 });
    const config = join(folder, "config.json");
    const json = JSON.parse(readFileSync(config, "utf8")) as Record<string, unknown>;
    writeFileSync(config, JSON.stringify({ ...json, rope_theta: 12_345 }));
    await assert.rejects(llm.sleepMode.wakeUp(), /is another model now/);
    writeFileSync(config, JSON.stringify(json));
    writeFileSync(weights, bytes);
    await llm.sleepMode?.wakeUp();
    assert.equal(await complete({ llm }), before);
    rmSync(folder, { recursive: true });
  });

  it("leaks nothing in fifty nights", async () => {
    await using llm = await LLM.load(octavoMiniPath, { ...options, kvCacheMemoryBytes: 32 << 20 });
    const before = await complete({ llm }, 4);
    const night = async (): Promise<void> => {
      await llm.sleepMode?.sleep();
      await llm.sleepMode?.wakeUp();
      assert.equal(await complete({ llm }, 4), before);
    };
    for (let warm = 0; warm < 5; warm += 1) await night();
    let turns = 0;
    await collectGarbage(() => (turns += 1) > 5);
    const startBytes = process.memoryUsage.rss();
    for (let count = 0; count < 50; count += 1) await night();
    await collectGarbage(() => process.memoryUsage.rss() - startBytes < 32 << 20);
    // One night's weights alone are 11 MiB, so fifty would be 550.
    const grownBytes = process.memoryUsage.rss() - startBytes;
    assert.ok(grownBytes < 64 << 20, `${grownBytes} bytes more`);
    await llm.sleepMode?.sleep();
    const asleepBytes = process.memoryUsage.rss();
    await llm.sleepMode?.wakeUp();
    await complete({ llm }, 4);
    assert.ok(process.memoryUsage.rss() - asleepBytes > llm.weightBytes / 2, "the weights were away");
  });
});
