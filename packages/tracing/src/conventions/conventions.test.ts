import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { bareSpan, fullSpan } from "../testing/example-spans.js";
import {
  type ConventionName,
  conventionNames,
  conventions,
  renderAttributes,
  spanName,
} from "./convention.js";

/**
 * Every name that a full span has, with its value. Sources: open-telemetry/semantic-conventions-genai
 * `model/gen-ai/spans.yaml` and `registry.yaml` (2026-09; `cache_write` of #440), vLLM `vllm/tracing` for
 * `gen_ai.latency.*`; Arize-ai/openinference `SemanticConventions.ts` 2.12; traceAI's `fi.span.kind` and its guides to
 * vLLM and Ray Serve for `llm.vllm.*` and `tenant_id`.
 */
const expected: Readonly<Record<ConventionName, Readonly<Record<string, unknown>>>> = {
  opentelemetry: {
    "gen_ai.operation.name": "chat",
    "gen_ai.provider.name": "octavo",
    "server.address": "localhost",
    "server.port": 8000,
    "gen_ai.request.model": "octavo-mini",
    "gen_ai.request.stream": true,
    "gen_ai.request.temperature": 0.5,
    "gen_ai.request.top_p": 0.9,
    "gen_ai.request.top_k": 40,
    "gen_ai.request.max_tokens": 64,
    "gen_ai.request.frequency_penalty": 0.1,
    "gen_ai.request.presence_penalty": 0.2,
    "gen_ai.request.seed": 7,
    "gen_ai.request.stop_sequences": ["END"],
    "gen_ai.request.choice.count": 2,
    "gen_ai.output.type": "json",
    "gen_ai.conversation.id": "conv-1",
    "gen_ai.response.id": "chatcmpl-1",
    "gen_ai.response.model": "octavo-mini",
    "gen_ai.response.finish_reasons": ["tool_calls"],
    "gen_ai.response.time_to_first_chunk": 0.12,
    "openai.response.service_tier": "default",
    "openai.response.system_fingerprint": "fp_1",
    "http.response.status_code": 200,
    "gen_ai.usage.input_tokens": 100,
    "gen_ai.usage.output_tokens": 20,
    "gen_ai.usage.cache_read.input_tokens": 64,
    "gen_ai.usage.cache_write.input_tokens": 36,
    "gen_ai.usage.reasoning.output_tokens": 5,
    "gen_ai.latency.time_in_queue": 0.01,
    "gen_ai.latency.time_to_first_token": 0.11,
    "gen_ai.latency.time_in_model_prefill": 0.1,
    "gen_ai.latency.time_in_model_decode": 1.3,
    "gen_ai.latency.e2e": 1.5,
    "gen_ai.system_instructions": '[{"type":"text","content":"Be brief."}]',
    "gen_ai.input.messages":
      '[{"role":"user","parts":[{"type":"text","content":"Weather in Paris?"}]},{"role":"tool","parts":[{"type":"tool_call_response","id":"call-0","response":"rain"}]}]',
    "gen_ai.output.messages":
      '[{"role":"assistant","parts":[{"type":"reasoning","content":"Hm."},{"type":"text","content":"Let me see."},{"type":"tool_call","id":"call-1","name":"weather","arguments":{"city":"Paris"}}],"finish_reason":"tool_calls"}]',
    "gen_ai.tool.definitions": '[{"type":"function","function":{"name":"weather"}}]',
    "user.id": "u-1",
    "session.id": "s-1",
    "octavo.tenant.id": "acme",
    "octavo.feature": "support",
    "octavo.tags": ["beta"],
    "octavo.metadata": '{"build":12}',
    "octavo.request.id": "r-1",
    "octavo.response.tool_names": ["weather"],
    "octavo.outcome": "ok",
    "octavo.stream.chunks": 21,
    "octavo.stream.time_to_first_token": 0.125,
    "octavo.stream.reader_wait": 0.003,
    "octavo.gap.count": 19,
    "octavo.gap.mean": 0.04,
    "octavo.gap.p50": 0.035,
    "octavo.gap.p99": 0.09,
    "octavo.gap.max": 0.095,
    "octavo.engine.request_id": "engine-1",
    "octavo.engine.version": "0.1.0",
    "octavo.engine.quantization": "awq",
    "octavo.replica.id": "replica-2",
    "octavo.queue_depth": 3,
    "octavo.cache_hit_ratio": 0.64,
    "octavo.preemptions": 1,
    "octavo.recomputed_tokens": 16,
    "octavo.blocks_evicted": 2,
    "octavo.evicted_prefix_tokens": 32,
    "octavo.draft_tokens": 12,
    "octavo.accepted_draft_tokens": 9,
    "octavo.kernel_time": 0.9,
    "octavo.reader_lag": 0.002,
    "octavo.first_token.cause": "queue",
    "octavo.slowest_gap.cause": "prefill_burst",
    "octavo.slowest_gap.duration": 0.091,
    "octavo.slowest_gap.usual": 0.034,
    "octavo.slowest_gap.culprit": "other",
    "octavo.batch_size.min": 1,
    "octavo.batch_size.mean": 3.5,
    "octavo.batch_size.max": 8,
    "octavo.prefill_in_batch.min": 0,
    "octavo.prefill_in_batch.mean": 200,
    "octavo.prefill_in_batch.max": 4096,
  },
  openinference: {
    "openinference.span.kind": "LLM",
    "llm.model_name": "octavo-mini",
    "llm.request.model_name": "octavo-mini",
    "llm.response.model_name": "octavo-mini",
    "llm.finish_reason": "tool_calls",
    "llm.provider": "octavo",
    "llm.system": "octavo",
    "llm.token_count.prompt": 100,
    "llm.token_count.completion": 20,
    "llm.token_count.total": 120,
    "llm.token_count.prompt_details.cache_read": 64,
    "llm.token_count.prompt_details.cache_write": 36,
    "llm.token_count.completion_details.reasoning": 5,
    "llm.invocation_parameters":
      '{"model":"octavo-mini","stream":true,"temperature":0.5,"top_p":0.9,"top_k":40,"max_tokens":64,"frequency_penalty":0.1,"presence_penalty":0.2,"seed":7,"stop":["END"],"n":2}',
    "session.id": "s-1",
    "user.id": "u-1",
    "tag.tags": ["beta"],
    metadata: '{"build":12}',
    "llm.prompt_template.template": "Say {x}",
    "llm.prompt_template.version": "2",
    "llm.prompt_template.variables": '{"x":"hi"}',
    "llm.input_messages.0.message.role": "system",
    "llm.input_messages.0.message.content": "Be brief.",
    "llm.input_messages.1.message.role": "user",
    "llm.input_messages.1.message.content": "Weather in Paris?",
    "llm.input_messages.2.message.role": "tool",
    "llm.input_messages.2.message.content": "rain",
    "llm.input_messages.2.message.tool_call_id": "call-0",
    "llm.output_messages.0.message.role": "assistant",
    "llm.output_messages.0.message.content": "Let me see.",
    "llm.output_messages.0.message.tool_calls.0.tool_call.id": "call-1",
    "llm.output_messages.0.message.tool_calls.0.tool_call.function.name": "weather",
    "llm.output_messages.0.message.tool_calls.0.tool_call.function.arguments": '{"city":"Paris"}',
    "llm.tools.0.tool.json_schema": '{"type":"function","function":{"name":"weather"}}',
    "input.value":
      '[{"role":"system","parts":[{"type":"text","content":"Be brief."}]},{"role":"user","parts":[{"type":"text","content":"Weather in Paris?"}]},{"role":"tool","parts":[{"type":"tool_call_response","id":"call-0","response":"rain"}]}]',
    "input.mime_type": "application/json",
    "output.value":
      '[{"role":"assistant","parts":[{"type":"reasoning","content":"Hm."},{"type":"text","content":"Let me see."},{"type":"tool_call","id":"call-1","name":"weather","arguments":"{\\"city\\":\\"Paris\\"}"}],"finishReason":"tool_calls"}]',
    "output.mime_type": "application/json",
  },
  traceai: {
    "fi.span.kind": "LLM",
    "llm.model_name": "octavo-mini",
    "llm.system": "octavo",
    "llm.token_count.prompt": 100,
    "llm.token_count.completion": 20,
    "llm.token_count.total": 120,
    "llm.vllm.engine_version": "0.1.0",
    "llm.vllm.quantization": "awq",
    "llm.vllm.batch_size": 3.5,
    "llm.vllm.prefill_in_batch": 4096,
    "llm.vllm.cache_hit_ratio": 0.64,
    "ray.serve.replica_id": "replica-2",
    "cluster.queue_depth": 3,
    tenant_id: "acme",
    feature: "support",
    "inference.backend": "octavo",
    gpu_seconds: 0.9,
    "session.id": "s-1",
    "user.id": "u-1",
  },
};

describe("conventions", () => {
  for (const name of conventionNames) {
    it(`${name} has exactly the names of its table`, () => {
      assert.deepEqual(sorted(conventions[name](fullSpan)), sorted(expected[name]));
    });

    it(`${name} has nothing of a span that knows nothing, and no content`, () => {
      for (const [key, value] of Object.entries(conventions[name](bareSpan))) {
        assert.ok(value !== undefined && value !== null && value !== "", key);
        assert.doesNotMatch(key, /messages|input\.value|output\.value|prompts/);
      }
    });
  }

  it("names the kinds of operations", () => {
    const embedding = { ...fullSpan, operation: "embeddings" as const, content: undefined };
    assert.equal(conventions.openinference(embedding)["openinference.span.kind"], "EMBEDDING");
    assert.equal(conventions.openinference(embedding)["embedding.model_name"], "octavo-mini");
    assert.equal(conventions.openinference(embedding)["llm.model_name"], undefined);
    assert.equal(conventions.traceai(embedding)["fi.span.kind"], "EMBEDDING");
    const rerank = { ...fullSpan, operation: "rerank" as const };
    assert.equal(conventions.openinference(rerank)["reranker.model_name"], "octavo-mini");
  });

  it("says what failed by its type", () => {
    const failed = {
      ...bareSpan,
      outcome: { kind: "error" as const, errorType: "queue_full", message: "the queue is full" },
    };
    assert.equal(conventions.opentelemetry(failed)["error.type"], "queue_full");
  });

  it("adds the caller's own attributes, which win", () => {
    const span = {
      ...fullSpan,
      context: { attributes: { "llm.system": "anyscale", "cluster.replica_count": 4 } },
    };
    const attributes = renderAttributes(span, ["openinference", "traceai"]);
    assert.equal(attributes["llm.system"], "anyscale");
    assert.equal(attributes["cluster.replica_count"], 4);
    assert.equal(attributes["fi.span.kind"], "LLM");
    assert.equal(attributes["openinference.span.kind"], "LLM");
  });

  it("names spans by operation and model", () => {
    assert.equal(spanName(fullSpan), "chat octavo-mini");
    assert.equal(spanName(bareSpan), "chat");
  });
});

function sorted(attributes: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    Object.entries(attributes).toSorted(([left], [right]) => (left < right ? -1 : 1)),
  );
}
