import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { LLM } from "@octavo/engine";
import { pino } from "pino";
import { createServer } from "../create-server.js";
import { parseExposition } from "../testing/parse-exposition.js";

/**
 * What endpoint pickers (the reference one, llm-d's) read of a model server: Gateway API Inference Extension,
 * docs/proposals/003-model-server-protocol/README.md, by vLLM's column, which is the pickers' default.
 */
const gauges = {
  TotalQueuedRequests: "vllm:num_requests_waiting",
  TotalRunningRequests: "vllm:num_requests_running",
  KVCacheUtilization: "vllm:kv_cache_usage_perc",
} as const;
/** Optional; labels of a gauge. */
const cacheInfo = {
  name: "vllm:cache_config_info",
  BlockSize: "block_size",
  NumGPUBlocks: "num_gpu_blocks",
} as const;
const lora = {
  name: "vllm:lora_requests_info",
  labels: ["max_lora", "running_lora_adapters", "waiting_lora_adapters"],
} as const;

const fixtures = new URL("../../../artifacts/fixtures/", import.meta.url);
const pathOf = (name: string): string => fileURLToPath(new URL(name, fixtures));

describe("the model server protocol of the Gateway API Inference Extension", () => {
  it("queue, running requests, KV cache and adapters are told under the names, types and labels that pickers read", async () => {
    const llm = await LLM.load(pathOf("models/checkpoints/llama3"), {
      maxModelLen: 256,
      maxNumSeqs: 1,
      numThreads: 1,
      enableLora: true,
      loraModules: ["one", "two"].map((name) => ({
        name,
        path: pathOf("adapters/llama3-all"),
        baseModelName: "llama-3",
      })),
    });
    const config = { port: 0, servedModelNames: ["tiny"] } as const;
    const server = createServer({ model: llm, config, logger: pino({ level: "silent" }) });
    const { url } = await server.listen();
    const scrape = async () => parseExposition(await (await fetch(`${url}/metrics`)).text());
    const leave = new AbortController();
    const ask = (body: object): Promise<Response> =>
      fetch(`${url}/v1/completions`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ max_tokens: 240, ignore_eos: true, stream: true, ...body }),
        signal: leave.signal,
      });
    try {
      // one request runs and one waits, each with an adapter of its own; a run that was over too soon is repeated
      let found = await scrape();
      const valueOf = (name: string): number | undefined => found.get(name)?.samples[0]?.value;
      while (valueOf(gauges.TotalQueuedRequests) !== 1) {
        await ask({ model: "one", prompt: [1, 2, 3] });
        const second = ask({ model: "two", prompt: [1, 2, 3] });
        do found = await scrape();
        while (valueOf(gauges.TotalQueuedRequests) === 0 && valueOf(gauges.TotalRunningRequests) === 1);
        second.catch(() => undefined);
      }
      leave.abort();
      for (const name of Object.values(gauges)) {
        assert.equal(found.get(name)?.type, "gauge", name);
        assert.equal(found.get(name)?.samples.length, 1, name);
      }
      assert.equal(valueOf(gauges.TotalRunningRequests), 1);
      const usage = valueOf(gauges.KVCacheUtilization) ?? Number.NaN;
      assert.ok(usage > 0 && usage <= 1, `a share, as vLLM's: ${usage}`);

      const info = found.get(cacheInfo.name);
      assert.equal(info?.type, "gauge");
      const { labels = {} } = info?.samples[0] ?? {};
      for (const name of [cacheInfo.BlockSize, cacheInfo.NumGPUBlocks])
        assert.match(labels[name] ?? "", /^[1-9]\d*$/, name);

      const adapters = found.get(lora.name);
      assert.equal(adapters?.type, "gauge");
      const [sample, ...others] = adapters?.samples ?? [];
      assert.ok(sample);
      assert.equal(others.length, 0);
      const own = Object.keys(sample.labels).filter((name) => !["model_name", "engine"].includes(name));
      assert.deepEqual(own.toSorted(), lora.labels);
      assert.equal(sample.labels["running_lora_adapters"], "one");
      assert.equal(sample.labels["waiting_lora_adapters"], "two");
      assert.match(sample.labels["max_lora"] ?? "", /^[1-9]\d*$/);
      assert.ok(
        Math.abs(sample.value - Date.now() / 1000) < 3600,
        "seconds since 1970, so that the latest one is known",
      );
    } finally {
      leave.abort();
      await server.close();
      await llm[Symbol.asyncDispose]();
    }
  });
});
