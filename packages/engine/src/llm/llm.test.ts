import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { OctavoError } from "@octavo/protocol/errors";
import type { SequenceDelta } from "../api.js";
import {
  fixtureCheckpoint,
  fixtureGguf,
  readGgufFixtures,
  readModelFixtures,
} from "@octavo/artifacts/testing/model-fixtures";
import { relativeDifference } from "../testing/oracles/model-oracle-suite.js";
import type { LoadProgress } from "./load-options.js";
import { LLM } from "./llm.js";

const sizes = { maxModelLen: 128, maxNumSeqs: 8, maxNumBatchedTokens: 64, numThreads: 2 };
const greedy = { temperature: 0, maxTokens: 16, ignoreEos: true };

const fixture = readModelFixtures().find((candidate) => candidate.name === "llama3");
assert.ok(fixture !== undefined);

describe("LLM on a tiny checkpoint", () => {
  let llm: LLM;
  const progress: LoadProgress[] = [];

  before(async () => {
    llm = await LLM.load(fixtureCheckpoint("llama3"), {
      ...sizes,
      onProgress: (step) => progress.push(step),
    });
  });
  after(async () => {
    await llm[Symbol.asyncDispose]();
  });

  test("reports loading to its end and what it loaded", () => {
    const last = progress.at(-1);
    assert.equal(last?.phase, "loading weights");
    assert.ok(last.totalBytes > 0 && last.doneBytes === last.totalBytes);
    assert.equal(llm.config.architecture, "LlamaForCausalLM");
    assert.equal(llm.engine.maxModelLen, 128);
    assert.ok(llm.weightBytes > 0);
    assert.deepEqual(llm.generation, { temperature: 0.7, topP: 0.9, topK: 20 });
  });

  test("keeps to a constraint, or says what is wrong with it", async () => {
    const prompt = Int32Array.from(fixture.prompt);
    const constraint = { kind: "choice", choices: ["yes", "no"] } as const;
    const { text } = await llm.generate(prompt, { ...greedy, ignoreEos: false, constraint });
    assert.ok(text === "yes" || text === "no", text);
    const wrong = { kind: "regex", pattern: "(" } as const;
    await assert.rejects(async () => await llm.generate(prompt, { ...greedy, constraint: wrong }), {
      code: "invalid_request",
    });
  });

  test("greedy tokens from ids are transformers'", async () => {
    const result = await llm.generate(Int32Array.from(fixture.prompt), { ...greedy, maxTokens: 64 });
    assert.deepEqual(result.sequences[0]?.tokens, fixture.greedy);
    assert.deepEqual(result.usage, {
      promptTokens: 24,
      completionTokens: 64,
      cachedTokens: result.usage.cachedTokens,
    });
    assert.equal(result.sequences[0]?.finishReason, "length");
  });

  test("a stream's pieces are the awaited text", async () => {
    const pieces: string[] = [];
    for await (const { text } of llm.generate("the cat", greedy)) pieces.push(text);
    assert.equal(pieces.join(""), (await llm.generate("the cat", greedy)).text);
    assert.ok(pieces.length > 1);
  });

  test("many prompts run together and answer in order", async () => {
    const prompts = Array.from({ length: 40 }, (_, index) => `the ${index} dogs`);
    const together = await llm.generate(prompts, greedy);
    const alone = await llm.generate(prompts[17] ?? "", greedy);
    assert.equal(together.length, 40);
    assert.equal(together[17]?.text, alone.text);
  });

  test("one signal serves any number of prompts and constraints without a warning", async () => {
    const warnings: Error[] = [];
    const note = (warning: Error): void => void warnings.push(warning);
    process.on("warning", note);
    try {
      const { signal } = new AbortController();
      const options = { ...greedy, maxTokens: 2, signal };
      const prompts = Array.from({ length: 24 }, (_, index) => `the ${index} dogs`);
      const schema = { type: "object", properties: { dogs: { type: "integer" } } };
      await Promise.all([
        llm.generate(prompts, options),
        llm.generate(prompts, { ...options, constraint: { kind: "json_schema", schema } }),
        // long enough for the worker that encodes
        ...prompts.map((prompt) => llm.tokenizer.encodeAsync(prompt.repeat(1000), { signal })),
        ...prompts.map((prompt, index) =>
          llm.generate(prompt, { ...options, constraint: { kind: "choice", choices: [`a${index}`] } }),
        ),
      ]);
      assert.equal(getEventListeners(signal, "abort").length, 0);
      assert.deepEqual(warnings, []);
    } finally {
      process.off("warning", note);
    }
  });

  test("sampling follows generation_config, the seed and n", async () => {
    const once = await llm.generate("over and", { seed: 5, n: 3, maxTokens: 12 });
    const again = await llm.generate("over and", { seed: 5, n: 3, maxTokens: 12 });
    assert.deepEqual(
      once.sequences.map(({ text }) => text),
      again.sequences.map(({ text }) => text),
    );
    assert.equal(new Set(once.sequences.map(({ text }) => text)).size, 3);
  });

  test("embeddings equal the oracle's pooled hidden states", async () => {
    const prompt = Int32Array.from(fixture.prompt);
    for (const pooling of ["last", "mean"] as const) {
      const found = await llm.embed(prompt, { pooling, normalize: false });
      assert.ok(relativeDifference(found, fixture.pooled[pooling]) < 1e-4, pooling);
    }
    const [left, right] = await llm.embed(["the cat", "the dog"]);
    const norm = (vector: Float32Array | undefined): number => Math.hypot(...(vector ?? []));
    assert.ok(Math.abs(norm(left) - 1) < 1e-5 && Math.abs(norm(right) - 1) < 1e-5);
  });

  test("a chat is the rendered template, special tokens and all", async () => {
    const messages = [{ role: "user", content: "the cat <|end|>" }];
    const text = llm.renderChat({ messages });
    assert.equal(text, "<|begin|><|turn|>user\nthe cat <|end|><|end|><|turn|>assistant\n");
    const chat = await llm.chat(messages, greedy);
    assert.deepEqual(chat.promptTokens, llm.tokenizer.encode(text, { addSpecialTokens: false }));
    assert.equal(chat.promptTokens[0], llm.tokenizer.bosTokenId);
    assert.equal(chat.text, (await llm.generate(chat.promptTokens, greedy)).text);
    const open = llm.renderChat({ messages, addGenerationPrompt: false });
    assert.equal(open, "<|begin|><|turn|>user\nthe cat <|end|><|end|>");
  });

  test("a template that comes with a request is rendered within limits", async () => {
    const input = { messages: [{ role: "user", content: "hi" }] };
    const text = await llm.renderRequestTemplate("{{ bos_token }}{{ messages[0].content }}", input);
    assert.equal(text, "<|begin|>hi");
    const loop = "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}";
    await assert.rejects(llm.renderRequestTemplate(loop, input), isCode("template_error"));
  });

  test("several conversations run together", async () => {
    const conversations = ["the cat", "the dog", "over"].map((content) => [{ role: "user", content }]);
    const [, second] = await llm.chat(conversations, greedy);
    assert.equal(second?.text, (await llm.chat(conversations[1] ?? [], greedy)).text);
    const rendered = conversations.map((messages) => llm.renderChat({ messages }));
    const [, generated] = await llm.generate(rendered, { ...greedy, addSpecialTokens: false });
    assert.equal(generated?.text, second?.text);
  });

  test("logprobs come with the tokens, and for the prompt", async () => {
    const result = await llm.generate("the cat", { ...greedy, maxTokens: 4, logprobs: 2, promptLogprobs: 1 });
    const [sequence] = result.sequences;
    assert.equal(sequence?.logprobs?.length, 4);
    for (const [index, logprob] of sequence.logprobs.entries()) {
      assert.equal(logprob.token, sequence.tokens[index]);
      assert.equal(logprob.rank, 1);
      assert.equal(logprob.top[0]?.token, logprob.token);
    }
    assert.equal(result.promptLogprobs?.length, result.promptTokens.length);
    assert.equal(result.promptLogprobs[0], undefined);
    assert.equal(result.promptLogprobs[1]?.token, result.promptTokens[1]);
  });

  test("a second request finds the first one's prefix in the cache", async () => {
    const prompt = Int32Array.from({ length: 80 }, (_, index) => (index * 7) % 256);
    const first = await llm.generate(prompt, greedy);
    const second = await llm.generate(prompt, greedy);
    assert.equal(second.usage.cachedTokens, 64);
    assert.equal(second.text, first.text);
    const salted = await llm.generate(prompt, { ...greedy, cacheSalt: "tenant" });
    assert.deepEqual([salted.usage.cachedTokens, salted.text], [0, first.text]);
  });

  test("an aborted generation rejects and gives its blocks back", async () => {
    const controller = new AbortController();
    const generation = llm.generate("the end", { ...greedy, maxTokens: 100, signal: controller.signal });
    const seen: SequenceDelta[] = [];
    await assert.rejects(async () => {
      for await (const delta of generation) {
        seen.push(delta);
        controller.abort();
      }
    }, isCode("request_cancelled"));
    assert.ok(seen.length > 0 && seen.length < 100);
    await assert.rejects(generation.result(), isCode("request_cancelled"));
    await settled(llm);
    assert.equal(llm.engine.stats.kvCacheUsage, 0);
  });

  test("leaving a stream early frees its blocks", async () => {
    for await (const { text } of llm.generate("the end", { ...greedy, maxTokens: 100 }))
      if (text !== "") break;
    await settled(llm);
    assert.equal(llm.engine.stats.kvCacheUsage, 0);
  });

  test("what is no prompt, conversation or list of them is refused", async () => {
    for (const value of [42, null, {}] as unknown as string[]) {
      await assert.rejects(async () => await llm.generate(value), isCode("invalid_request"));
      await assert.rejects(async () => await llm.chat(value as unknown as []), isCode("invalid_request"));
      await assert.rejects(async () => await llm.embed(value), isCode("invalid_request"));
    }
  });

  test("bad input is refused before it reaches the engine", async () => {
    await assert.rejects(llm.generate("x", { temperature: Number.NaN }).result(), isCode("invalid_request"));
    await assert.rejects(llm.generate("x", { n: 0 }).result(), isCode("invalid_request"));
    await assert.rejects(llm.generate(new Int32Array()).result(), isCode("invalid_request"));
    await assert.rejects(llm.generate(Int32Array.of(272)).result(), isCode("invalid_request"));
    await assert.rejects(llm.generate(Int32Array.of(-1)).result(), isCode("invalid_request"));
    await assert.rejects(llm.generate("x".repeat(500)).result(), isCode("context_length_exceeded"));
    await assert.rejects(llm.generate(["fine", "x".repeat(500)]), isCode("context_length_exceeded"));
    await settled(llm);
  });
});

describe("LLM.load", () => {
  test("keeps packed weights for the next start, which answers the same", async () => {
    const folder = mkdtempSync(join(tmpdir(), "octavo-weights-"));
    try {
      const answers: string[] = [];
      for (const isSecond of [false, true]) {
        const steps: number[] = [];
        await using one = await LLM.load(fixtureGguf("llama3-q4_0"), {
          ...sizes,
          weightCache: folder,
          onProgress: ({ doneBytes }) => steps.push(doneBytes),
        });
        assert.equal(steps.length === 1, isSecond, "a second start has nothing to pack");
        answers.push((await one.generate("the cat", { temperature: 0, maxTokens: 8 })).text);
      }
      assert.equal(answers[0], answers[1]);
      await assert.rejects(LLM.load(fixtureGguf("llama3-q4_0"), { ...sizes, weightCache: "" }), {
        code: "invalid_option",
        param: "weight_cache",
      });
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  test("`dtype` converts the weights, and the cache follows", async () => {
    await using asStored = await LLM.load(fixtureCheckpoint("llama3-bf16"), sizes);
    await using widened = await LLM.load(fixtureCheckpoint("llama3-bf16"), { ...sizes, dtype: "f32" });
    assert.ok(widened.weightBytes > 1.5 * asStored.weightBytes);
    const expected = readModelFixtures().find((candidate) => candidate.name === "llama3-bf16");
    assert.ok(expected !== undefined);
    // The same rounded weights in f32 arithmetic: exactly the oracle's setting.
    const result = await widened.generate(Int32Array.from(expected.prompt), { ...greedy, maxTokens: 64 });
    assert.deepEqual(result.sequences[0]?.tokens, expected.greedy);
  });

  test("a GGUF file generates what llama.cpp did", async () => {
    const expected = readGgufFixtures().find((candidate) => candidate.name === "llama3-f32");
    assert.ok(expected !== undefined);
    await using llm = await LLM.load(expected.path, sizes);
    const result = await llm.generate(Int32Array.from(expected.prompt), { ...greedy, maxTokens: 64 });
    assert.deepEqual(result.sequences[0]?.tokens, expected.greedy);
    const messages = [{ role: "user", content: "the cat" }];
    assert.equal(llm.renderChat({ messages }), "<|begin|><|turn|>user\nthe cat<|end|><|turn|>assistant\n");
  });

  test("is disposed once, and takes no requests afterwards", async () => {
    const llm = await LLM.load(fixtureCheckpoint("qwen2"), sizes);
    const running = llm.generate("the cat", { ...greedy, maxTokens: 100 });
    const result = running.result();
    await llm.generate("a", { maxTokens: 1 });
    await Promise.all([llm[Symbol.asyncDispose](), llm[Symbol.asyncDispose]()]);
    assert.equal((await result).sequences[0]?.finishReason, "abort");
    await assert.rejects(llm.generate("more").result(), isCode("shutting_down"));
  });

  test("options that cannot work are refused", async () => {
    const path = fixtureCheckpoint("qwen2");
    await assert.rejects(LLM.load(path, { ...sizes, maxModelLen: 100_000 }), isCode("invalid_option"));
    await assert.rejects(LLM.load(path, { ...sizes, kvCacheMemoryBytes: 10 }), isCode("invalid_option"));
    await assert.rejects(LLM.load(path, { ...sizes, memoryUtilization: 1.5 }), isCode("invalid_option"));
    await assert.rejects(LLM.load(path, { ...sizes, blockSize: 0 }), isCode("invalid_option"));
    await assert.rejects(LLM.load(path, { ...sizes, numThreads: 0 }), isCode("invalid_option"));
    await assert.rejects(LLM.load(path, { ...sizes, maxNumSeqs: -1 }), isCode("invalid_option"));
    await assert.rejects(LLM.load(path, { ...sizes, maxNumBatchedTokens: 0 }), isCode("invalid_option"));
    await assert.rejects(LLM.load("./no/such/folder"), isCode("artifact_not_found"));
  });

  test("an aborted load frees what it had", async () => {
    const controller = new AbortController();
    const loading = LLM.load(fixtureCheckpoint("llama3"), {
      ...sizes,
      signal: controller.signal,
      onProgress: () => controller.abort(),
    });
    await assert.rejects(loading, isCode("request_cancelled"));
  });
});

function isCode(code: string): (error: unknown) => boolean {
  return (error) => {
    assert.ok(error instanceof OctavoError, String(error));
    assert.equal(error.code, code, error.message);
    return true;
  };
}

/** A left request's blocks are freed when the step in flight has been applied. */
async function settled(llm: LLM): Promise<void> {
  while (llm.engine.stats.running + llm.engine.stats.waiting > 0)
    await new Promise((resolve) => setTimeout(resolve, 1));
  await new Promise((resolve) => setTimeout(resolve, 5));
}
