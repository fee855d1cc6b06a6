import assert from "node:assert/strict";
import test, { describe } from "node:test";
import type { Target } from "../../targets/target.js";
import { checkNamed } from "../table.js";
import { bedOf, rightFor, type Sent, watched } from "../testing/test-bed.js";
import { cacheUsageOf } from "./cache-usage.js";
import { fillerCase } from "../collecting/filler.js";

describe("collecting for a burst", () => {
  test("cases run quietly, again, and while fillers are under way; memory is laid over them", async () => {
    const sent: Sent[] = [];
    const plain = watched("candidate", sent, rightFor);
    let usage = 0.2;
    const candidate: Target = {
      name: "candidate",
      answer: async (evalCase, options) => {
        if (evalCase.id.startsWith("filler")) {
          usage = 0.95;
          await new Promise((resolve) => setTimeout(resolve, 50));
        }
        return plain.answer(evalCase, options);
      },
      metrics: () => Promise.resolve(`# TYPE x gauge\nvllm:kv_cache_usage_perc{engine="0"} ${usage}\n`),
    };
    const { observations } = await checkNamed("eviction-burst").run(bedOf(candidate), {
      burst_in_flight: 3,
      burst_prompt_tokens: 50,
      burst_lead_ms: 30,
      metrics_interval_ms: 10,
    });
    const counts = new Map<string, number>();
    for (const { condition } of observations) counts.set(condition, (counts.get(condition) ?? 0) + 1);
    assert.deepEqual([counts.get("quiet"), counts.get("quiet-again"), counts.get("burst")], [6, 6, 6]);
    assert(counts.get("filler")! >= 3);
    assert.equal(observations.find(({ condition }) => condition === "filler")?.kvCacheUsage, 0.95);
  });

  test("fillers share no prefix and are about as long as asked", () => {
    const [one, other] = [fillerCase(1, 500, 10, 3), fillerCase(2, 500, 10, 3)];
    assert.notEqual(one.messages[0]?.content?.slice(0, 1), other.messages[0]?.content?.slice(0, 1));
    assert.equal(one.messages[0]?.content?.split(" ").length, 502);
    assert.deepEqual(fillerCase(1, 500, 10, 3), one);
  });

  test("the gauge is read under both of its names, and nonsense is not", () => {
    assert.equal(
      cacheUsageOf('vllm:kv_cache_usage_perc{engine="0"} 0.5\nvllm:kv_cache_usage_perc{engine="1"} 0.75\n'),
      0.75,
    );
    assert.equal(cacheUsageOf("vllm:gpu_cache_usage_perc 1.0\n"), 1);
    assert.equal(
      cacheUsageOf("vllm:kv_cache_usage_perc NaN\nvllm:kv_cache_usage_perc_total 0.5\n"),
      undefined,
    );
    assert.equal(cacheUsageOf(""), undefined);
  });
});
