import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { errorCodeHeader } from "@octavo/protocol";
import { gatewaySchema } from "../config/schema.js";
import { type Behaviour, FakeTarget, fakeText } from "../testing/fake-target.js";
import { readStream } from "../testing/read-answer.js";
import { startTestGateway, type TestGateway } from "../testing/test-gateway.js";
import { TargetPool } from "./target-pool.js";

const body = { model: "m", messages: [{ role: "user", content: "hello" }] };

/** A gateway in front of a pool, and a way to add members to it. */
async function startPool(
  maxQueued: number,
  strategy = "power_of_two",
): Promise<
  AsyncDisposable & {
    readonly pool: TargetPool;
    readonly post: TestGateway["post"];
    add(name: string, target: FakeTarget, maxOutstanding?: number): void;
  }
> {
  const pool = new TargetPool({ name: "replicas", maxQueued });
  const routes = { m: { models: ["m"], strategy, targets: [{ pool: "replicas" }] } };
  const gateway = await startTestGateway({ targets: {}, routes }, pool);
  return {
    pool,
    post: (...asked) => gateway.post(...asked),
    add(name, { url }, maxOutstanding = 100) {
      const config = { provider: "octavo", url, models: ["m"], max_outstanding: maxOutstanding };
      const parsed = gatewaySchema.shape.targets.parse({ [name]: config })[name];
      assert.ok(parsed);
      pool.add(name, parsed);
    },
    async [Symbol.asyncDispose]() {
      await pool.close();
      await gateway[Symbol.asyncDispose]();
    },
  };
}

const until = async (holds: () => boolean): Promise<void> => {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 2));
};

const released = (): { readonly behaviour: Behaviour; readonly release: () => void } => {
  let release = (): void => undefined;
  const waits = new Promise<void>((resolve) => {
    release = resolve;
  });
  return { behaviour: { kind: "answer", after: waits }, release };
};

describe("a pool of targets", () => {
  it("holds a call while it has no member, and lists its model all the same", async () => {
    await using target = await FakeTarget.start();
    await using at = await startPool(-1);
    const answer = at.post("/v1/chat/completions", body);
    await until(() => at.pool.numQueued === 1);
    at.add("one", target);
    const response = await answer;
    assert.equal(response.status, 200);
    assert.equal(response.headers.get("x-octavo-target"), "one");
    assert.equal(at.pool.numQueued, 0);
  });

  it("lets as many wait as configured, then answers 503 with Retry-After; waiting calls start in order", async () => {
    const held = released();
    await using target = await FakeTarget.start(held.behaviour);
    await using at = await startPool(2);
    at.add("one", target, 1);
    const ask = (content: string): Promise<Response> =>
      at.post("/v1/chat/completions", { ...body, messages: [{ role: "user", content }] });
    const answers = [ask("first")];
    await until(() => at.pool.numRunning === 1);
    for (const content of ["second", "third"]) {
      answers.push(ask(content));
      await until(() => at.pool.numQueued === answers.length - 1);
    }
    const refused = await ask("fourth");
    assert.equal(refused.status, 503);
    assert.ok(Number(refused.headers.get("retry-after")) >= 1);
    assert.equal(refused.headers.get(errorCodeHeader), "overloaded");
    held.release();
    for (const answer of answers) assert.equal((await answer).status, 200);
    const asked = target.calls.map((call) => /"content":"(\w+)"/.exec(call.text)?.[1]);
    assert.deepEqual(asked, ["first", "second", "third"]);
  });

  it("forgets a waiting call whose client left", async () => {
    await using at = await startPool(-1);
    const abort = new AbortController();
    const answer = at.post("/v1/chat/completions", body, {}, abort.signal);
    await until(() => at.pool.numQueued === 1);
    abort.abort();
    await assert.rejects(answer);
    await until(() => at.pool.numQueued === 0);
  });

  it("x-octavo-replica-id and x-ray-serve-replica-id pin a call: no other member answers it", async () => {
    await using one = await FakeTarget.start({ kind: "answer", text: "one" });
    await using two = await FakeTarget.start({ kind: "answer", text: "two" });
    await using at = await startPool(-1);
    at.add("one", one);
    at.add("two", two);
    for (const header of ["x-octavo-replica-id", "x-ray-serve-replica-id"])
      for (const name of ["one", "two", "one"]) {
        const response = await at.post("/v1/chat/completions", body, { [header]: name });
        assert.equal(response.headers.get("x-octavo-target"), name);
      }
    const gone = await at.post("/v1/chat/completions", body, { "x-octavo-replica-id": "three" });
    assert.equal(gone.status, 503);
    assert.equal(gone.headers.get(errorCodeHeader), "no_target");
    one.behaviour = { kind: "status", status: 500 };
    const failed = await at.post("/v1/chat/completions", body, { "x-octavo-replica-id": "one" });
    assert.equal(failed.status, 502, "it is the pinned replica's failure that the client asked to see");
  });

  it("draining moves streams that have not begun and lets the others end; nothing fails", async () => {
    const held = released();
    await using old = await FakeTarget.start(({ body: asked }) =>
      asked["stream"] === true ? { kind: "hang" } : held.behaviour,
    );
    await using next = await FakeTarget.start();
    await using at = await startPool(-1);
    at.add("old", old);
    const whole = at.post("/v1/chat/completions", body);
    const streamed = at.post("/v1/chat/completions", { ...body, stream: true });
    await until(() => old.calls.length === 2);
    const removed = at.pool.remove("old", "drain");
    at.add("next", next);
    const stream = await readStream(await streamed);
    assert.equal(stream.text, fakeText);
    assert.equal(next.calls.length, 1);
    held.release();
    assert.equal((await whole).headers.get("x-octavo-target"), "old");
    await removed;
  });

  it("a member that died: each of its calls is answered by the others, however many they are", async () => {
    await using dead = await FakeTarget.start({ kind: "hang" });
    await using live = await FakeTarget.start();
    await using at = await startPool(-1);
    at.add("dead", dead);
    const answers = Array.from({ length: 40 }, () => at.post("/v1/chat/completions", body));
    await until(() => dead.calls.length === 40);
    const removed = at.pool.remove("dead", "cut");
    await until(() => at.pool.numQueued === 40);
    at.add("live", live);
    for (const answer of answers) assert.equal((await answer).status, 200);
    await removed;
  });
});
