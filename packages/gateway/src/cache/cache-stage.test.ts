import assert from "node:assert/strict";
import test from "node:test";
import type { JsonFields } from "@octavo/protocol";
import type { Stage } from "../exchange/stage.js";
import { sampleAnswer, sampleContext, sampleExchange } from "../limits/testing/sample-exchange.js";
import { EmbeddedStore } from "../store/embedded-store.js";
import { purgeRollout } from "../rollouts/purge.js";
import { FakeTarget } from "../testing/fake-target.js";
import { contentOf, readStream } from "../testing/read-answer.js";
import { startTestGateway } from "../testing/test-gateway.js";
import { cacheStage } from "./cache-stage.js";
import { canonicalJson } from "./canonical-json.js";
import { SemanticIndex } from "./semantic-index.js";

test("the same request is answered from the cache, streamed or not, for its tenant alone", async () => {
  await using target = await FakeTarget.start((_, index) => ({ kind: "answer", text: `answer ${index}` }));
  await using gateway = await startTestGateway({
    targets: { t: { provider: "vllm", url: target.url, models: ["m"], probe: { path: "off" } } },
    routes: { r: { models: ["m"], targets: ["t"] } },
    callers: {
      keys: [
        { id: "a", sha256: "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b", tenant: "a" },
        { id: "b", sha256: "5e884898da28047151d0e56f8dc6292773603d0d6aabbdd62a11ef721d1542d8", tenant: "b" },
      ],
    },
    cache: {},
  });
  const ask = async (body: JsonFields, key = "secret", headers: Record<string, string> = {}) => {
    const response = await gateway.post(
      "/v1/chat/completions",
      { model: "m", messages: [{ role: "user", content: "hello" }], temperature: 0, ...body },
      { authorization: `Bearer ${key}`, ...headers },
    );
    const cache = response.headers.get("x-octavo-cache");
    const text =
      body["stream"] === true ? (await readStream(response)).text : contentOf(await response.json());
    return `${cache} ${String(text)}`;
  };
  assert.equal(await ask({}), "miss answer 0");
  assert.equal(await ask({}), "hit answer 0");
  assert.equal(await ask({ stream: true }), "hit answer 0");
  assert.equal(await ask({ user: "x" }), "hit answer 0");
  assert.equal(await ask({}, "password"), "miss answer 1");
  assert.equal(await ask({ max_tokens: 5 }), "miss answer 2");
  assert.equal(await ask({ temperature: 1 }), "bypass answer 3");
  assert.equal(await ask({}, "secret", { "cache-control": "no-cache" }), "bypass answer 4");
  assert.equal(await ask({}), "hit answer 4");
  assert.equal(await ask({}, "secret", { "cache-control": "no-store" }), "bypass answer 5");
  assert.equal(await ask({ stream: true, seed: 1 }), "miss answer 6");
  assert.equal(await ask({ seed: 1 }), "hit answer 6");
});

const stageOf = async (config: object, context = sampleContext()): Promise<Stage> =>
  cacheStage.create(cacheStage.schema.parse(config), context);

const asks = (content: string, before: JsonFields[] = []) =>
  sampleExchange({
    body: { temperature: 0, messages: [...before, { role: "user", content }] },
    caller: { tenant: "t" },
  });

test("answers that were cut off or failed are not kept", async () => {
  const stage = await stageOf({ max_answer: "1KiB" });
  const cut = sampleAnswer("x");
  const choices = [{ index: 0, message: { content: "x" }, finish_reason: "length" }];
  for (const answer of [
    undefined,
    { ...cut, json: { ...cut.json, choices } },
    { ...cut, status: 500 },
    sampleAnswer("y".repeat(2000)),
  ]) {
    const hooks = await stage.onRequest(asks("hi"));
    await hooks!.settle!(answer);
  }
  const failed = asks("hi");
  const hooks = await stage.onRequest(failed);
  failed.ledger.errorCode = "engine_failed";
  await hooks!.settle!(cut);
  assert.equal((await stage.onRequest(asks("hi")))!.answer, undefined);
});

test("what a canary wrote is served until its rollout is rolled back, and not after", async () => {
  const store = new EmbeddedStore({ nowMs: Date.now });
  const stage = await stageOf({}, sampleContext({ store }));
  const write = async (arm: string, content: string): Promise<void> => {
    const exchange = asks(content);
    const hooks = await stage.onRequest(exchange);
    exchange.ledger.cohort = { rollout: "r", arm };
    await hooks!.settle!(sampleAnswer(arm));
  };
  await write("canary", "one");
  await write("primary", "two");
  const served = async (content: string) => (await stage.onRequest(asks(content)))!.answer !== undefined;
  assert.deepEqual([await served("one"), await served("two")], [true, true]);
  await purgeRollout(store, "r", 5);
  assert.deepEqual([await served("one"), await served("two")], [false, true]);
});

test("a request that means the same is answered alike, in the same context alone", async () => {
  const embeddings: Record<string, number[]> = {
    "How old is Bach?": [1, 0, 0.05],
    "What is Bach's age?": [1, 0.05, 0],
    "How old is Mozart?": [0, 1, 0],
  };
  let isDown = false;
  const context = sampleContext({
    call: ({ body, operation }) => {
      if (isDown) return Promise.reject(new TypeError("down"));
      assert.equal(operation, "embeddings");
      return Promise.resolve(
        sampleAnswer("", { json: { data: [{ embedding: embeddings[body["input"] as string] }] } }),
      );
    },
  });
  const stage = await stageOf({ semantic: { target: "e", model: "e", threshold: 0.98 } }, context);
  const first = asks("How old is Bach?");
  await (await stage.onRequest(first))!.settle!(sampleAnswer("65"));
  const similar = asks("What is Bach's age?");
  const { answer } = (await stage.onRequest(similar))!;
  assert.equal(contentOf(answer!.json), "65");
  assert.equal(similar.ledger.cache, "semantic-hit");
  const misses = [
    asks("How old is Mozart?"),
    asks("What is Bach's age?", [{ role: "system", content: "Answer in German." }]),
    sampleExchange({
      body: { temperature: 0, messages: [{ role: "user", content: "What is Bach's age?" }] },
      caller: { tenant: "u" },
    }),
  ];
  for (const miss of misses) assert.equal((await stage.onRequest(miss))!.answer, undefined);
  isDown = true;
  assert.equal((await stage.onRequest(asks("What is Bach's age?")))!.answer, undefined);
  assert.match(context.logged.at(-1)!, /^warn cache_failed .*"what":"embed"/);
});

test("the index of meanings keeps within its bounds", () => {
  const index = new SemanticIndex(3);
  for (let i = 0; i < 10; i++) index.add(`c${i % 2}`, [Math.cos(i), Math.sin(i)], `k${i}`);
  assert.equal(index.numTexts, 3);
  assert.equal(index.find("c1", [Math.cos(9), Math.sin(9)], 0.99), "k9");
  assert.equal(index.find("c1", [Math.cos(1), Math.sin(1)], 0.999), undefined);
  index.add("c1", [0, 0], "nowhere");
  assert.equal(index.find("c1", [NaN, 1], 0.5), undefined);
  assert.equal(index.find("c1", [1, 0, 0], 0.1), undefined, "another model's vectors are not compared");
  index.remove("c1", "k9");
  assert.equal(index.numTexts, 2);
});

test("equal values have equal texts, others have others", () => {
  assert.equal(
    canonicalJson({ b: 1, a: [{ d: null, c: "x" }], z: undefined }),
    '{"a":[{"c":"x","d":null}],"b":1}',
  );
  assert.notEqual(canonicalJson(["1"]), canonicalJson([1]));
});
