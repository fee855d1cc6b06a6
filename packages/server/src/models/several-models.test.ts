import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { LLM } from "@octavo/engine";
import { pino } from "pino";
import type { ServerConfig } from "../config.js";
import { createServer } from "../create-server.js";
import { FakeLanguageModel } from "../testing/fake-language-model.js";
import { octavoMiniPath } from "../testing/octavo-mini.js";
import { parseExposition } from "../testing/parse-exposition.js";

const options = { maxModelLen: 512, numThreads: 1, enableSleepMode: true } as const;
const logger = pino({ level: "silent" });

interface Card {
  readonly id: string;
  readonly state?: string;
}

interface Several extends AsyncDisposable {
  readonly models: readonly LLM[];
  readonly url: string;
  post(path: string, body: object): Promise<{ status: number; body: Record<string, unknown> }>;
  states(): Promise<Record<string, string | undefined>>;
  metrics(): Promise<ReturnType<typeof parseExposition>>;
}

/** octavo-mini three times, which differ in their seeds of requests without one alone. */
async function start(models: readonly LLM[], config: Partial<ServerConfig>): Promise<Several> {
  const [first, ...rest] = models;
  const server = createServer({
    model: first!,
    others: rest.map((model, index) => ({ model, names: [["b", "c"][index]!, `also-${index}`] as const })),
    config: { port: 0, servedModelNames: ["a"], ...config },
    logger,
  });
  const { url } = await server.listen();
  return {
    models,
    url,
    async post(path, body) {
      const response = await fetch(url + path, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body),
      });
      return { status: response.status, body: (await response.json()) as Record<string, unknown> };
    },
    async states() {
      const { data } = (await (await fetch(`${url}/v1/models`)).json()) as { data: readonly Card[] };
      return Object.fromEntries(data.map(({ id, state }) => [id, state]));
    },
    metrics: async () => parseExposition(await (await fetch(`${url}/metrics`)).text()),
    [Symbol.asyncDispose]: () => server.close(),
  };
}

const ask = (model: string, more = {}): object => ({
  model,
  prompt: "Hello",
  max_tokens: 4,
  temperature: 0,
  ...more,
});

describe("a server of several models", () => {
  let models: readonly LLM[] = [];
  before(async () => {
    const first = await LLM.load(octavoMiniPath, options);
    const rest = [1, 2].map(() => LLM.load(octavoMiniPath, { ...options, backend: first.backend }));
    models = [first, ...(await Promise.all(rest))];
  });
  after(async () => {
    for (const model of models.toReversed()) await model[Symbol.asyncDispose]();
  });

  it("answers each under its names, from one process", async () => {
    await using server = await start(models, {});
    const answers = await Promise.all(
      ["a", "b", "c", "also-1"].map((name) => server.post("/v1/completions", ask(name))),
    );
    assert.deepEqual(
      answers.map(({ body }) => body["model"]),
      ["a", "b", "c", "c"],
    );
    const texts = answers.map(({ body }) => (body["choices"] as { text: string }[])[0]?.text);
    assert.equal(new Set(texts).size, 1, "the same weights say the same");
    assert.deepEqual(await server.states(), {
      a: "loaded",
      b: "loaded",
      "also-0": "loaded",
      c: "loaded",
      "also-1": "loaded",
    });
    const { model: unnamed } = (await server.post("/v1/completions", { prompt: "Hello", max_tokens: 1 }))
      .body;
    assert.equal(unnamed, "a", "the first takes requests that name none");
    const unknown = await server.post("/v1/completions", ask("d"));
    assert.equal(unknown.status, 404);
    assert.match(JSON.stringify(unknown.body), /serves .*"a\\", \\"b\\".*also-1/);
    const card = await (await fetch(`${server.url}/v1/models/c`)).json();
    assert.equal((card as Card).id, "c");
    const tokens = await server.post("/tokenize", { model: "b", prompt: "Hello" });
    assert.equal(tokens.status, 200);
    const info = await (await fetch(`${server.url}/server_info?model=b`)).text();
    assert.match(info, /"b"/);
    assert.equal((await fetch(`${server.url}/server_info?model=d`)).status, 404);
  });

  it("labels the metrics of each, and exposes a family once", async () => {
    await using server = await start(models, {});
    for (const name of ["a", "b", "b"]) await server.post("/v1/completions", ask(name));
    const text = await (await fetch(`${server.url}/metrics`)).text();
    assert.equal(text.match(/# TYPE vllm:generation_tokens_total /g)?.length, 1);
    const families = parseExposition(text);
    const byModel = (name: string): Record<string, number> =>
      Object.fromEntries(
        families.get(name)!.samples.map(({ labels, value }) => [labels["model_name"], value]),
      );
    assert.deepEqual(byModel("vllm:generation_tokens_total"), { a: 4, b: 8, c: 0 });
    const metered = families.get("octavo:metered_requests_total")!.samples;
    assert.deepEqual(Object.fromEntries(metered.map(({ labels, value }) => [labels["model"], value])), {
      a: 1,
      b: 2,
    });
  });

  it("keeps as many in memory as it may, the least recently used leaving first", async () => {
    await using server = await start(models, { maxLoadedModels: 2 });
    // All three were loaded by the test; what is over the bound leaves with the next load.
    await models[2]!.sleepMode?.sleep();
    await server.post("/v1/completions", ask("a"));
    await server.post("/v1/completions", ask("b"));
    await server.post("/v1/completions", ask("a"));
    const third = await server.post("/v1/completions", ask("c"));
    assert.equal(third.status, 200);
    const states = await server.states();
    assert.deepEqual([states["a"], states["b"], states["c"]], ["loaded", "unloaded", "loaded"]);
    const state = (await server.metrics()).get("vllm:engine_sleep_state")!.samples;
    const asleep = state.filter(
      ({ labels, value }) => labels["sleep_state"] === "weights_offloaded" && value === 1,
    );
    assert.deepEqual(
      asleep.map(({ labels }) => labels["model_name"]),
      ["b"],
    );
    for (const model of models) await model.sleepMode?.wakeUp();
  });

  it("answers everybody under more models than fit, whoever asks for which", async () => {
    const bytes = models[0]!.sleepMode!.byteLength;
    await using server = await start(models, { maxModelsMemoryBytes: Math.ceil(bytes * 1.5) });
    await models[1]!.sleepMode?.sleep();
    await models[2]!.sleepMode?.sleep();
    const names = Array.from({ length: 36 }, (_, index) => ["a", "b", "c"][(index * 7) % 3]!);
    const answers = await Promise.all(names.map((name) => server.post("/v1/completions", ask(name))));
    assert.deepEqual(
      answers.map(({ status, body }) => [status, body["model"]]),
      names.map((name) => [200, name]),
    );
    assert.equal(
      Object.values(await server.states()).filter((state) => state === "loaded").length <= 2,
      true,
    );
    const awake = models.filter(({ sleepMode }) => sleepMode?.level === undefined);
    assert.equal(awake.length, 1);
    for (const model of models) await model.sleepMode?.wakeUp();
  });

  it("says so where a model cannot be loaded in time, since another is in use", async () => {
    await using server = await start(models, { maxLoadedModels: 1, modelLoadTimeoutMs: 100 });
    await models[1]!.sleepMode?.sleep();
    await models[2]!.sleepMode?.sleep();
    const controller = new AbortController();
    const busy = fetch(`${server.url}/v1/completions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(ask("a", { max_tokens: 480, ignore_eos: true, stream: true, n: 8 })),
      signal: controller.signal,
    });
    const reader = (await busy).body!.getReader();
    await reader.read();
    const { status, body } = await server.post("/v1/completions", ask("b"));
    assert.equal(status, 503);
    assert.match(JSON.stringify(body), /could not be loaded within 0.1 s: others are in use/);
    controller.abort();
    await reader.read().catch(() => undefined);
    const again = async (): Promise<number> => (await server.post("/v1/completions", ask("b"))).status;
    let last = await again();
    for (let tries = 0; last !== 200 && tries < 100; tries += 1) last = await again();
    assert.equal(last, 200, "once it is idle, it makes room");
    for (const model of models) await model.sleepMode?.wakeUp();
  });

  it("finds stored responses and evidence whichever model gave them, and drains all", async () => {
    await using server = await start(models, {});
    const made = await server.post("/v1/responses", { model: "b", input: "Hello", max_output_tokens: 4 });
    const id = made.body["id"] as string;
    const stored = await fetch(`${server.url}/v1/responses/${id}`);
    assert.equal(((await stored.json()) as { model: string }).model, "b");
    const answer = await fetch(`${server.url}/v1/completions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(ask("c")),
    });
    await answer.text();
    const evidence = await fetch(`${server.url}/v1/requests/${answer.headers.get("x-octavo-request-id")}`);
    assert.equal(evidence.status, 200);
  });

  it("wakes a model for work that nobody waits for any more", async () => {
    await using server = await start(models, { maxLoadedModels: 3 });
    await models[1]!.sleepMode?.sleep();
    const held = models[1]!.generate("Hello", { maxTokens: 2, temperature: 0 }).result();
    assert.equal((await held).sequences[0]?.tokens.length, 2);
    assert.equal((await server.states())["b"], "loaded");
  });
});

describe("models without a sleep mode", () => {
  it("are served side by side, and two of one name are refused", async () => {
    const [one, two] = [new FakeLanguageModel({ name: "one" }), new FakeLanguageModel({ name: "two" })];
    await using server = createServer({
      model: one,
      others: [{ model: two, names: ["two"] }],
      config: { port: 0 },
      logger,
    });
    const { url } = await server.listen();
    const { data } = (await (await fetch(`${url}/v1/models`)).json()) as { data: readonly Card[] };
    assert.deepEqual(
      data.map(({ id, state }) => [id, state]),
      [
        ["one", undefined],
        ["two", undefined],
      ],
    );
    assert.throws(
      () =>
        createServer({ model: one, others: [{ model: two, names: ["one"] }], config: { port: 0 }, logger }),
      { code: "invalid_option", message: /"one" is the name of two models/ },
    );
    const bounded = { port: 0, maxLoadedModels: 1 };
    assert.throws(
      () => createServer({ model: one, others: [{ model: two, names: ["two"] }], config: bounded, logger }),
      {
        code: "invalid_option",
        message: /models that cannot sleep stay in memory/,
      },
    );
  });
});
