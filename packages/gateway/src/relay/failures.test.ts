import assert from "node:assert/strict";
import { createServer } from "node:net";
import { describe, it } from "node:test";
import { contentOf, errorOf, readStream } from "../testing/read-answer.js";
import { type Behaviour, chatEvents, FakeTarget, fakeText } from "../testing/fake-target.js";
import { sampleBody, startTestGateway, type TestGateway } from "../testing/test-gateway.js";

/** Every way in which a target fails, whether the client can still get an answer of another target, and what it gets if not. */
const matrix: readonly {
  readonly name: string;
  readonly behaviour: Behaviour;
  /** Error code of a call without and with streaming if there is no other target. */
  readonly whole: string | undefined;
  readonly stream: string;
  /** The client has part of the stream already: no other target of this kind can go on. */
  readonly isMidStream?: true;
}[] = [
  {
    name: "status 500",
    behaviour: { kind: "status", status: 500 },
    whole: "target_failed",
    stream: "target_failed",
  },
  {
    name: "status 503 without JSON",
    behaviour: { kind: "status", status: 503, body: "<html>" },
    whole: "target_failed",
    stream: "target_failed",
  },
  {
    name: "status 429",
    behaviour: { kind: "status", status: 429, retryAfter: "7" },
    whole: "target_rate_limited",
    stream: "target_rate_limited",
  },
  { name: "no headers", behaviour: { kind: "hang" }, whole: "target_timeout", stream: "target_timeout" },
  {
    name: "nothing after the role",
    behaviour: { kind: "stream-then", events: 1, ending: "hang" },
    whole: undefined,
    stream: "target_timeout",
  },
  {
    name: "cut after the role",
    behaviour: { kind: "stream-then", events: 1, ending: "cut" },
    whole: undefined,
    stream: "target_failed",
  },
  {
    name: "silence inside the stream",
    behaviour: { kind: "stream-then", events: 4, ending: "hang" },
    whole: undefined,
    stream: "stream_interrupted",
    isMidStream: true,
  },
  {
    name: "cut inside the stream",
    behaviour: { kind: "stream-then", events: 4, ending: "cut" },
    whole: undefined,
    stream: "stream_interrupted",
    isMidStream: true,
  },
  {
    name: "the stream ends without [DONE] or finish",
    behaviour: { kind: "stream-then", events: 4, ending: "end" },
    whole: undefined,
    stream: "stream_interrupted",
    isMidStream: true,
  },
  {
    name: "a first event that is not JSON",
    behaviour: { kind: "raw", type: "text/event-stream", chunks: ['data: {"choices": [\n\n'] },
    whole: "target_answer_invalid",
    stream: "target_answer_invalid",
  },
  {
    name: "a later event that is not JSON",
    behaviour: {
      kind: "raw",
      type: "text/event-stream",
      chunks: [...chatEvents({ model: "m" }, fakeText).slice(0, 4), "data: {oops\n\n"],
    },
    whole: undefined,
    stream: "stream_interrupted",
    isMidStream: true,
  },
  {
    name: "an empty stream",
    behaviour: { kind: "raw", type: "text/event-stream", chunks: [] },
    whole: "target_answer_invalid",
    stream: "target_answer_invalid",
  },
  {
    name: "a stream of [DONE] alone",
    behaviour: { kind: "raw", type: "text/event-stream", chunks: ["data: [DONE]\n\n"] },
    whole: "target_answer_invalid",
    stream: "target_answer_invalid",
  },
  {
    name: "the wrong content type",
    behaviour: { kind: "raw", type: "text/html", chunks: ["<html>hello</html>"] },
    whole: "target_answer_invalid",
    stream: "target_answer_invalid",
  },
  {
    name: "an event that is too large",
    behaviour: { kind: "raw", type: "text/event-stream", chunks: [`data: {"x":"${"y".repeat(300_000)}`] },
    whole: "target_answer_invalid",
    stream: "target_answer_invalid",
  },
  {
    name: "an error as the first event",
    behaviour: {
      kind: "raw",
      type: "text/event-stream",
      chunks: ['data: {"error":{"message":"out of memory","type":"InternalServerError","code":500}}\n\n'],
    },
    whole: "target_answer_invalid",
    stream: "target_failed",
  },
];

/** Short only for targets that say nothing: a busy machine must not look like one. */
const timeoutsFor = ({ behaviour }: FakeTarget): object => {
  const isSilent =
    typeof behaviour === "object" &&
    (behaviour.kind === "hang" || (behaviour.kind === "stream-then" && behaviour.ending === "hang"));
  return { first_byte: isSilent ? "400ms" : "30s", idle: isSilent ? "400ms" : "30s", total: "60s" };
};
const limits = { max_event: "64KiB" };

async function gatewayOver(first: FakeTarget, second?: FakeTarget): Promise<TestGateway> {
  const target = ({ url }: FakeTarget): object => ({ provider: "openai-compatible", url, models: ["m"] });
  return startTestGateway({
    limits,
    targets: { first: target(first), ...(second !== undefined && { second: target(second) }) },
    routes: {
      main: {
        models: ["m"],
        strategy: "round_robin",
        targets: ["first", ...(second === undefined ? [] : ["second"])],
        timeouts: timeoutsFor(first),
        retries: { attempts: second === undefined ? 1 : 8, budget: 4 },
      },
    },
  });
}

describe("a target that fails", () => {
  for (const { name, behaviour, whole, stream, isMidStream } of matrix) {
    const ofWhole = async (): Promise<void> => {
      await using bad = await FakeTarget.start(behaviour);
      await using good = await FakeTarget.start();
      await using alone = await gatewayOver(bad);
      const failed = await alone.post("/v1/chat/completions", sampleBody);
      assert.equal(failed.headers.get("x-octavo-error-code"), whole);
      assert.ok(failed.status >= 429, `status ${failed.status}`);
      assert.equal(failed.headers.get("x-octavo-target"), "first");
      assert.notEqual(failed.headers.get("x-octavo-cost"), null);
      assert.equal(typeof errorOf(await failed.json())["message"], "string");
      await using both = await gatewayOver(bad, good);
      const saved = await both.post("/v1/chat/completions", sampleBody);
      assert.equal(saved.status, 200);
      assert.deepEqual(
        [saved.headers.get("x-octavo-target"), saved.headers.get("x-octavo-fallback")],
        ["second", "fallback"],
      );
      assert.equal(contentOf(await saved.json()), fakeText);
    };
    if (whole !== undefined) it(`${name}: a call without stream`, ofWhole);

    it(`${name}: a stream`, async () => {
      await using bad = await FakeTarget.start(behaviour);
      await using good = await FakeTarget.start();
      await using alone = await gatewayOver(bad);
      const failed = await alone.post("/v1/chat/completions", { ...sampleBody, stream: true });
      if (isMidStream === true) {
        assert.equal(failed.status, 200);
        const read = await readStream(failed);
        assert.equal(read.error, stream);
        assert.equal(read.isDone, false, "a stream that failed has no [DONE]");
        assert.ok(read.text.length > 0 && fakeText.startsWith(read.text));
      } else {
        assert.equal(failed.headers.get("x-octavo-error-code"), stream);
        assert.ok(failed.status >= 429);
        await failed.text();
      }
      await using both = await gatewayOver(bad, good);
      const second = await both.post("/v1/chat/completions", { ...sampleBody, stream: true });
      const read = await readStream(second);
      // what the client has of one target's words, another target that is no Octavo cannot continue
      if (isMidStream === true) assert.equal(read.error, "stream_interrupted");
      else {
        assert.equal(second.headers.get("x-octavo-fallback"), "fallback");
        assert.deepEqual(read, { text: fakeText, isDone: true, error: undefined });
      }
    });
  }

  it("refuses connections", async () => {
    const closed = createServer();
    await new Promise<void>((resolve) => closed.listen(0, "127.0.0.1", resolve));
    const address = closed.address();
    await new Promise<void>((resolve) => closed.close(() => resolve()));
    assert.ok(typeof address === "object" && address !== null);
    await using good = await FakeTarget.start();
    await using gateway = await startTestGateway({
      targets: {
        gone: { provider: "openai-compatible", url: `http://127.0.0.1:${address.port}`, models: ["m"] },
        good: { provider: "openai-compatible", url: good.url, models: ["m"] },
      },
      routes: {
        one: { models: ["m"], strategy: "round_robin", targets: ["gone", "good"] },
      },
    });
    const saved = await gateway.post("/v1/chat/completions", sampleBody);
    assert.deepEqual([saved.status, saved.headers.get("x-octavo-target")], [200, "good"]);
  });

  it("trickles slowly: its stream goes on", async () => {
    const chunks = [...chatEvents({ model: "m" }, "slow but sure"), "data: [DONE]\n\n"].flatMap((event) => [
      event.slice(0, 30),
      event.slice(30),
    ]);
    await using slow = await FakeTarget.start({ kind: "raw", type: "text/event-stream", chunks, gapMs: 20 });
    await using gateway = await gatewayOver(slow);
    const response = await gateway.post("/v1/chat/completions", { ...sampleBody, stream: true });
    assert.deepEqual(await readStream(response), { text: "slow but sure", isDone: true, error: undefined });
  });

  it("mid-stream at an Octavo server: a target of another kind does not go on, as it would write another answer", async () => {
    await using dying = await FakeTarget.start({ kind: "stream-then", events: 4, ending: "cut" });
    await using other = await FakeTarget.start();
    await using gateway = await startTestGateway({
      targets: {
        one: { provider: "octavo", url: dying.url, models: ["m"] },
        two: { provider: "openai-compatible", url: other.url, models: ["m"] },
        three: { provider: "octavo", url: other.url, models: { m: { name: "another model" } } },
      },
      routes: { r: { models: ["m"], strategy: "round_robin", targets: ["one", "two", "three"] } },
    });
    const response = await gateway.post("/v1/chat/completions", { ...sampleBody, stream: true });
    const { error, isDone } = await readStream(response);
    assert.deepEqual([error, isDone], ["stream_interrupted", false]);
    assert.equal(other.calls.length, 0);
  });

  it("refuses the request itself: its status and message are the client's, and nobody else is asked", async () => {
    await using strict = await FakeTarget.start({
      kind: "status",
      status: 422,
      body: JSON.stringify({ error: { message: "temperature is too high", param: "temperature" } }),
    });
    await using other = await FakeTarget.start();
    await using gateway = await gatewayOver(strict, other);
    const response = await gateway.post("/v1/chat/completions", sampleBody);
    assert.equal(response.status, 422);
    const error = errorOf(await response.json());
    assert.deepEqual([error["message"], error["param"]], ["temperature is too high", "temperature"]);
    assert.equal(other.calls.length, 0);
  });
});
