import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { createFakeEngine, collect, generationRequest } from "../testing/fakes/engine-fixture.js";
import { FakeAdapter } from "../testing/fakes/fake-backend.js";
import { fixtureAdapter, fixtureCheckpoint } from "@octavo/artifacts/testing/model-fixtures";
import type { GenerationResult } from "../llm/generation-result.js";
import { LLM } from "../llm/llm.js";
import { readAdapterFixtures } from "@octavo/artifacts/testing/model-fixtures";
import { ServedAdapter } from "./served-adapter.js";

const sizes = { maxModelLen: 128, maxNumSeqs: 8, maxNumBatchedTokens: 64, numThreads: 2 };
const greedy = { temperature: 0, maxTokens: 24, ignoreEos: true };
const fixtures = readAdapterFixtures().filter(({ checkpoint }) => checkpoint === "llama3");

function tokensOf({ sequences }: GenerationResult): readonly number[] {
  return sequences[0]?.tokens ?? [];
}

function fakeAdapter(name: string, seed: number): { adapter: ServedAdapter; handle: FakeAdapter } {
  const handle = new FakeAdapter(seed);
  return { adapter: new ServedAdapter({ name, path: name }, { handle, byteLength: 1, rank: 1 }), handle };
}

describe("adapters in the engine", () => {
  test("a retired adapter serves the requests it has, then is freed; new ones are refused", async () => {
    const { engine } = createFakeEngine({ maxLoras: 2 });
    const { adapter, handle } = fakeAdapter("a", 1);
    const alone = await collect(engine.generate(generationRequest([1, 2, 3], {}, { adapter })));
    const running = collect(engine.generate(generationRequest([1, 2, 3], {}, { adapter })));
    const waiting = collect(engine.generate(generationRequest([1, 2, 3], {}, { adapter })));
    assert.equal(adapter.numRequests, 2);
    adapter.retire();
    assert.equal(handle.isDisposed, false);
    assert.throws(() => engine.generate(generationRequest([1], {}, { adapter })), {
      code: "model_not_found",
    });
    for (const outcome of await Promise.all([running, waiting]))
      assert.deepEqual(outcome.sequences, alone.sequences);
    assert.equal(adapter.numRequests, 0);
    assert.equal(handle.isDisposed, true);
    await engine[Symbol.asyncDispose]();
  });

  test("a request that arrived before a replacement and is queued after it runs under the replacement", async () => {
    const { engine } = createFakeEngine({ maxLoras: 2 });
    const [first, second, third] = [1, 2, 3].map((seed) => fakeAdapter("a", seed));
    assert.ok(first !== undefined && second !== undefined && third !== undefined);
    const run = ({ adapter }: { adapter: ServedAdapter }) =>
      collect(engine.generate(generationRequest([1, 2, 3], {}, { adapter })));
    const [old, expected] = [await run(first), await run(third)];
    assert.notDeepEqual(old.sequences, expected.sequences);
    first.adapter.retire(second.adapter);
    second.adapter.retire(third.adapter);
    assert.deepEqual(
      [first, second, third].map(({ handle }) => handle.isDisposed),
      [true, true, false],
    );
    assert.deepEqual((await run(first)).sequences, expected.sequences);
    assert.equal(third.adapter.numRequests, 0);
    third.adapter.retire();
    assert.throws(() => engine.generate(generationRequest([1], {}, { adapter: first.adapter })), {
      code: "model_not_found",
    });
    await engine[Symbol.asyncDispose]();
  });

  test("aborted and failed requests let go of it too", async () => {
    const { engine } = createFakeEngine({ backend: { rowError: () => "non_finite_logits" } });
    const { adapter, handle } = fakeAdapter("a", 1);
    const controller = new AbortController();
    const aborted = collect(engine.generate(generationRequest([1, 2], {}, { adapter }), controller.signal));
    controller.abort();
    await aborted;
    await assert.rejects(collect(engine.generate(generationRequest([1, 2], {}, { adapter }))));
    const embedding = { kind: "embed", requestId: "e", pooling: "last", normalize: true } as const;
    await assert.rejects(engine.embed({ ...embedding, promptTokens: Int32Array.of(1), adapter }));
    assert.equal(adapter.numRequests, 0);
    adapter.retire();
    assert.equal(handle.isDisposed, true);
    await engine[Symbol.asyncDispose]();
  });

  test("the prefix cache is shared under one adapter and between no two", async () => {
    const { engine } = createFakeEngine();
    const prompt = Array.from({ length: 20 }, (_, i) => i);
    const cached = async (adapter?: ServedAdapter, cacheSalt?: string): Promise<number | undefined> => {
      const more = { adapter, ...(cacheSalt !== undefined && { cacheSalt }) };
      return (await collect(engine.generate(generationRequest(prompt, {}, more)))).usage?.cachedTokens;
    };
    const [first, second] = [fakeAdapter("same", 1).adapter, fakeAdapter("same", 2).adapter];
    assert.equal(await cached(), 0);
    assert.equal(await cached(first), 0);
    assert.equal(await cached(second), 0);
    assert.equal(await cached(first), 16);
    assert.equal(await cached(undefined, `a${first.id}:`), 0);
    assert.equal(await cached(first, "salt"), 0);
    assert.equal(await cached(first, "salt"), 16);
    assert.equal(await cached(), 16);
    await engine[Symbol.asyncDispose]();
  });

  test("an adapter from elsewhere is refused", async () => {
    const { engine } = createFakeEngine();
    const adapter = { id: 1, name: "x", path: "x", rank: 1, byteLength: 1, numRequests: 0 };
    assert.throws(() => engine.generate(generationRequest([1], {}, { adapter })), {
      code: "invalid_request",
    });
    await engine[Symbol.asyncDispose]();
  });
});

describe("adapters of a loaded model", () => {
  test("several at once in one batch give what peft gives each alone", async () => {
    await using llm = await LLM.load(fixtureCheckpoint("llama3"), {
      ...sizes,
      enableLora: true,
      loraModules: fixtures.map(({ name, path }) => ({ name, path })),
    });
    const plain = await llm.generate(Int32Array.from(fixtures[0]!.prompt), greedy);
    const names = [undefined, ...fixtures.map(({ name }) => name), ...fixtures.map(({ name }) => name)];
    const results = await Promise.all(
      names.map((adapter) =>
        llm.generate(Int32Array.from(fixtures[0]!.prompt), { ...greedy, adapter }).result(),
      ),
    );
    for (const [index, result] of results.entries()) {
      const expected = fixtures.find(({ name }) => name === names[index])?.greedy ?? tokensOf(plain);
      assert.deepEqual(tokensOf(result), expected, names[index] ?? "the model itself");
    }
    const [own, adapted] = [await llm.embed("text"), await llm.embed("text", { adapter: fixtures[0]!.name })];
    assert.notDeepEqual(own, adapted);
    await assert.rejects(llm.embed("text", { adapter: "unknown" }), {
      code: "model_not_found",
      message: /loaded are: llama3-all, llama3-rslora/,
    });
  });

  test("loading, replacing and unloading while requests run", async () => {
    await using llm = await LLM.load(fixtureCheckpoint("llama3"), {
      ...sizes,
      enableLora: true,
      maxCpuLoras: 2,
    });
    const [first, second] = [fixtures[0]!, fixtures[1]!];
    const { adapters } = llm;
    assert.ok(adapters !== undefined);
    const prompt = Int32Array.from(first.prompt);
    const run = (adapter: string) => llm.generate(prompt, { ...greedy, adapter }).result();
    const loaded = await adapters.load({ name: "x", path: first.path });
    assert.deepEqual([loaded.rank, loaded.byteLength > 0], [6, true]);
    await assert.rejects(adapters.load({ name: "x", path: second.path }), { message: /loaded already/ });
    const before = run("x");
    while (loaded.numRequests === 0) await new Promise((resolve) => setImmediate(resolve));
    await adapters.load({ name: "x", path: second.path }, { inPlace: true });
    assert.deepEqual(tokensOf(await before), first.greedy);
    assert.deepEqual(tokensOf(await run("x")), second.greedy);
    await adapters.load({ name: "y", path: first.path });
    adapters.unload("x");
    await Promise.all([
      adapters.load({ name: "y", path: first.path }, { inPlace: true }),
      adapters.load({ name: "beside", path: first.path }),
    ]);
    adapters.unload("beside");
    assert.throws(() => adapters.unload("x"), { code: "model_not_found" });
    await assert.rejects(run("x"), { code: "model_not_found" });
    const twice = await Promise.allSettled([1, 2].map(() => adapters.load({ name: "w", path: second.path })));
    assert.deepEqual(twice.map(({ status }) => status).toSorted(), ["fulfilled", "rejected"]);
    assert.deepEqual(
      adapters.list().map(({ name }) => name),
      ["y", "w"],
    );
    await assert.rejects(
      adapters.load({ name: "y", path: fixtureAdapter("phi3-fused") }, { inPlace: true }),
      {
        code: "artifact_invalid",
        message: /gate_up_proj, which the model lacks/,
      },
    );
    assert.deepEqual(tokensOf(await run("y")), first.greedy);
  });

  test("one more than fit takes the place of the unused one that was used least recently", async () => {
    const [first, second] = [fixtures[0]!, fixtures[1]!];
    await using llm = await LLM.load(fixtureCheckpoint("llama3"), {
      ...sizes,
      enableLora: true,
      maxCpuLoras: 3,
      loraModules: [{ name: "kept", path: first.path }],
    });
    const adapters = llm.adapters!;
    const names = (): readonly string[] => adapters.list().map(({ name }) => name);
    const run = (adapter: string) =>
      llm.generate(Int32Array.from(first.prompt), { ...greedy, adapter }).result();
    await adapters.load({ name: "a", path: first.path });
    await adapters.load({ name: "b", path: second.path });
    await run("a");
    await assert.rejects(adapters.load({ name: "c", path: "./nowhere" }), { code: "artifact_not_found" });
    assert.deepEqual(names(), ["kept", "a", "b"]);
    await adapters.load({ name: "c", path: first.path });
    assert.deepEqual(names(), ["kept", "a", "c"]);
    const running = [run("a"), run("c")];
    while (adapters.list().some(({ name, numRequests }) => name !== "kept" && numRequests === 0))
      await new Promise((resolve) => setImmediate(resolve));
    await assert.rejects(adapters.load({ name: "d", path: first.path }), {
      code: "invalid_request",
      message: /3 adapters are loaded/,
    });
    await Promise.all(running);
    assert.deepEqual(names(), ["kept", "a", "c"]);
  });

  test("an adapter of another model is refused before it can do harm", async () => {
    const load = () => LLM.load(fixtureCheckpoint("llama3"), { ...sizes, enableLora: true });
    await using llm = await load();
    await using other = await load();
    const adapter = await other.adapters!.load({ name: "x", path: fixtures[0]!.path });
    assert.throws(() => llm.engine.generate(generationRequest([1, 2], {}, { adapter })), {
      code: "invalid_request",
      message: /another model/,
    });
    const { sequences } = await llm.generate(Int32Array.of(1, 2), greedy).result();
    assert.equal(sequences[0]?.tokens.length, 24);
  });

  test("options that cannot work", async () => {
    const load = (options: object) => LLM.load(fixtureCheckpoint("llama3"), { ...sizes, ...options });
    const module = { name: "a", path: fixtures[0]!.path };
    await assert.rejects(load({ loraModules: [module] }), { code: "invalid_option", param: "lora_modules" });
    await assert.rejects(load({ enableLora: true, loraModules: [module, module] }), {
      param: "lora_modules",
    });
    await assert.rejects(load({ enableLora: true, maxLoras: 0 }), { param: "max_loras" });
    await assert.rejects(load({ enableLora: true, maxLoraRank: 5, loraModules: [module] }), {
      code: "artifact_unsupported",
      message: /rank 6/,
    });
    await assert.rejects(load({ enableLora: true, loraModules: [{ name: "a", path: "./nowhere" }] }), {
      code: "artifact_not_found",
    });
  });
});
