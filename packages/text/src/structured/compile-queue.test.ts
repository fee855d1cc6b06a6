import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { CompileQueue } from "./compile-queue.js";

const bytes = Uint8Array.from({ length: 256 }, (_, byte) => byte);
const starts = Int32Array.from({ length: 257 }, (_, start) => start);
const never = new AbortController().signal;
/** Takes a while. */
const long = JSON.stringify({
  kind: "choice",
  choices: Array.from({ length: 3000 }, (_, index) => `${index}`),
});
/** Takes more steps than are allowed. */
const hostile = JSON.stringify({
  kind: "json_schema",
  schema: {
    type: "object",
    properties: Object.fromEntries(
      Array.from({ length: 900 }, (_, index) => [
        `p${index}`,
        { type: "string", pattern: `^(a|b)*a(a|b){${index % 30}}.*c.{${index % 40}}$` },
      ]),
    ),
  },
});
const simple = (text: string): string => JSON.stringify({ kind: "literal", text });

function open(numThreads: number, timeoutMs = 60_000): CompileQueue {
  return new CompileQueue(
    { source: { bytes, starts }, specialTokens: [], maxWork: 300_000 },
    { timeoutMs, numThreads },
    () => {},
  );
}

function noted(order: string[], name: string, compiling: Promise<unknown>): Promise<void> {
  return compiling.then(
    () => void order.push(`${name} done`),
    (error: unknown) => void order.push(`${name} ${(error as { code: string }).code}`),
  );
}

describe("the queue of grammars", () => {
  it("does not compile what nobody waits for any more", async () => {
    using queue = open(1);
    const order: string[] = [];
    await queue.compile(simple("x"), "a", never);
    const leaving = new AbortController();
    const all = [
      noted(order, "long", queue.compile(long, "a", never)),
      noted(order, "left", queue.compile(simple("left"), "a", leaving.signal)),
      noted(order, "gone", queue.compile(simple("gone"), "a", AbortSignal.abort())),
      noted(order, "stayed", queue.compile(simple("stayed"), "a", never)),
    ];
    leaving.abort();
    await Promise.all(all);
    assert.deepEqual(order.slice(0, 2).toSorted(), ["gone request_cancelled", "left request_cancelled"]);
    assert.deepEqual(order.slice(2), ["long done", "stayed done"]);
  });

  it("ends what is under way when nobody waits for it, and goes on", async () => {
    using queue = open(1);
    const order: string[] = [];
    await queue.compile(simple("x"), "a", never);
    const leaving = new AbortController();
    const all = [
      noted(order, "hostile", queue.compile(hostile, "a", leaving.signal)),
      noted(order, "next", queue.compile(simple("next"), "b", never)),
    ];
    leaving.abort();
    await Promise.all(all);
    assert.deepEqual(order, ["hostile request_cancelled", "next done"]);
  });

  it("does not blame a grammar for a thread that does not answer, nor the next one", async () => {
    using queue = open(1, 1);
    const order: string[] = [];
    await noted(order, "slow", queue.compile(hostile, "a", never));
    assert.deepEqual(order, ["slow overloaded"]);
  });

  it("refuses a grammar by its steps, whatever else the machine does", async () => {
    using queue = open(2);
    const order: string[] = [];
    const trivial = Array.from({ length: 27 }, (_, index) => `tenant ${index}`);
    await Promise.all([
      noted(order, "hostile", queue.compile(hostile, "a", never)),
      noted(order, "also hostile", queue.compile(hostile, "b", never)),
      ...trivial.map((tenant) => noted(order, tenant, queue.compile(simple(tenant), tenant, never))),
    ]);
    const refused = ["also hostile invalid_request", "hostile invalid_request"];
    assert.deepEqual(order.toSorted(), [...refused, ...trivial.map((tenant) => `${tenant} done`)].toSorted());
  });

  it("gives tenants turns, and the shortest of a tenant's grammars the next", async () => {
    using queue = open(1);
    const order: string[] = [];
    await queue.compile(simple("x"), "other", never);
    const add = (name: string, tenant: string, text: string): Promise<void> =>
      noted(order, name, queue.compile(simple(text), tenant, never));
    await Promise.all([
      noted(order, "many 1", queue.compile(long, "many", never)),
      add("many 3", "many", "three"),
      add("many 2", "many", "two"),
      add("few 1", "few", "longer than all that the other tenant sends"),
      add("few 2", "few", "even longer than all that the other tenant sends"),
    ]);
    assert.deepEqual(order, ["many 1 done", "few 1 done", "many 2 done", "few 2 done", "many 3 done"]);
  });

  it("gives a tenant one thread at a time, and another to the next", async () => {
    using queue = open(2);
    await queue.compile(simple("x"), "few", never);
    const order: string[] = [];
    await Promise.all([
      noted(order, "many 1", queue.compile(long, "many", never)),
      noted(order, "many 2", queue.compile(simple("y"), "many", never)),
      noted(order, "few", queue.compile(simple("z"), "few", never)),
    ]);
    // On two threads its short second one would have been done first.
    assert.ok(order.indexOf("many 1 done") < order.indexOf("many 2 done"));
    assert.ok(order.includes("few done"));
  });

  it("tells those who wait when it is closed", async () => {
    const queue = open(2);
    await queue.compile(simple("x"), "a", never);
    const order: string[] = [];
    const all = [
      noted(order, "running", queue.compile(long, "a", never)),
      noted(order, "waiting", queue.compile(simple("y"), "a", never)),
    ];
    queue[Symbol.dispose]();
    await Promise.all(all);
    assert.deepEqual(order.toSorted(), ["running shutting_down", "waiting shutting_down"]);
    await assert.rejects(queue.compile(simple("z"), "a", never), { code: "shutting_down" });
  });
});
