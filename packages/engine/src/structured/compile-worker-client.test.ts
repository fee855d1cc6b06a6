import assert from "node:assert/strict";
import { test } from "node:test";
import { CompileWorker } from "./compile-worker-client.js";

const bytes = Uint8Array.from({ length: 256 }, (_, byte) => byte);
const starts = Int32Array.from({ length: 257 }, (_, start) => start);
/** Takes a while. */
const long = JSON.stringify({
  kind: "choice",
  choices: Array.from({ length: 3000 }, (_, index) => `${index}`),
});
const simple = (text: string): string => JSON.stringify({ kind: "literal", text });

test("what nobody waits for any more is not compiled, and what is under way keeps nobody from leaving", async () => {
  using worker = new CompileWorker({ source: { bytes, starts }, specialTokens: [] }, 60_000, () => {});
  const never = new AbortController().signal;
  const order: string[] = [];
  const noted = (name: string, compiling: Promise<unknown>): Promise<void> =>
    compiling.then(
      () => void order.push(`${name} done`),
      (error: unknown) => void order.push(`${name} ${(error as { code: string }).code}`),
    );
  await worker.compile(simple("x"), never);
  const leaving = new AbortController();
  const all = [
    noted("long", worker.compile(long, never)),
    noted("left", worker.compile(simple("left"), leaving.signal)),
    noted("gone", worker.compile(simple("gone"), AbortSignal.abort())),
    noted("stayed", worker.compile(simple("stayed"), never)),
  ];
  leaving.abort();
  await Promise.all(all);
  assert.deepEqual(order.slice(0, 2).toSorted(), ["gone request_cancelled", "left request_cancelled"]);
  assert.deepEqual(order.slice(2), ["long done", "stayed done"]);
});
