import assert from "node:assert/strict";
import { test } from "node:test";
import type { EngineStats } from "@octavo/engine";
import { FakeEngine } from "../testing/fake-engine.js";
import { FakeLanguageModel } from "../testing/fake-language-model.js";
import { parseExposition } from "../testing/parse-exposition.js";
import { registerEngineMetrics } from "./engine-metrics.js";
import { Registry } from "@octavo/tracing/prometheus";

class SpeculatingEngine extends FakeEngine {
  override get stats(): EngineStats {
    return { ...super.stats, numSpeculativeTokens: 4 };
  }
}

test("speculation is counted under vLLM's names, accepted tokens also by their position", () => {
  const { tokenizer, engine: plain } = new FakeLanguageModel();
  const engine = new SpeculatingEngine(tokenizer, 100, plain.behaviour);
  const registry = Registry.create();
  const observer = registerEngineMetrics(registry, engine, {
    enableLegacyMetricNames: false,
    enableFaultInjection: false,
    cacheConfig: {},
  });
  const samples = () => {
    const families = parseExposition(registry.expose());
    const valuesOf = (name: string) =>
      families.get(`vllm:spec_decode_${name}_total`)?.samples.map(({ value }) => value);
    return {
      drafts: valuesOf("num_drafts"),
      draftTokens: valuesOf("num_draft_tokens"),
      acceptedTokens: valuesOf("num_accepted_tokens"),
      perPosition: valuesOf("num_accepted_tokens_per_pos"),
      positions: families
        .get("vllm:spec_decode_num_accepted_tokens_per_pos_total")
        ?.samples.map(({ labels }) => labels["position"]),
    };
  };
  assert.deepEqual(samples().perPosition, [0, 0, 0, 0]);
  observer.onDraft?.(4, 3);
  observer.onDraft?.(2, 0);
  assert.deepEqual(samples().perPosition, [1, 1, 1, 0]);
  observer.onDraft?.(4, 4);
  assert.deepEqual(samples(), {
    drafts: [3],
    draftTokens: [10],
    acceptedTokens: [7],
    perPosition: [2, 2, 2, 1],
    positions: ["0", "1", "2", "3"],
  });
  assert.deepEqual(samples().perPosition, [2, 2, 2, 1], "a scrape changes nothing");
});

test("what ranks exchange is counted by rank", () => {
  const registry = Registry.create();
  const observer = registerEngineMetrics(registry, new FakeLanguageModel().engine, {
    enableLegacyMetricNames: false,
    enableFaultInjection: false,
    cacheConfig: {},
  });
  const step = { step: 0, startMs: 0, durationMs: 1, computeMs: 1, prefillMs: 0, numSequences: 1 };
  const counts = { prefillTokens: 0, decodeTokens: 1, blocksUsed: 1, blocksEvicted: 0, preemptions: 0 };
  observer.onStep?.({ ...step, ...counts });
  for (let count = 0; count < 2; count++)
    observer.onStep?.({
      ...step,
      ...counts,
      exchanges: [
        { bytes: 10, milliseconds: 500 },
        { bytes: 20, milliseconds: 250 },
      ],
    });
  const families = parseExposition(registry.expose());
  const samplesOf = (name: string) =>
    families.get(name)?.samples.map(({ labels, value }) => [labels["rank"], value]);
  assert.deepEqual(samplesOf("octavo:rank_exchanged_bytes_total"), [
    ["0", 20],
    ["1", 40],
  ]);
  assert.deepEqual(samplesOf("octavo:rank_exchange_seconds_total"), [
    ["0", 1],
    ["1", 0.5],
  ]);
});
