import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { describe, it } from "node:test";
import { unlessAborted, whenAborted } from "./abort.js";

describe("whenAborted", () => {
  it("calls once, at the time of the abort, and not after it was taken off", () => {
    const stop = new AbortController();
    const calls: string[] = [];
    whenAborted(stop.signal, () => calls.push("kept"));
    whenAborted(stop.signal, () => calls.push("taken off"))();
    assert.deepEqual(calls, []);
    stop.abort();
    stop.signal.dispatchEvent(new Event("abort"));
    assert.deepEqual(calls, ["kept"]);
  });

  it("calls at once where the signal is aborted, and never without a signal", () => {
    let calls = 0;
    whenAborted(AbortSignal.abort(), () => (calls += 1))();
    whenAborted(undefined, () => (calls += 1))();
    assert.equal(calls, 1);
  });

  it("lets a thousand listeners share a signal without a warning, and leaves none behind", async () => {
    const warnings: Error[] = [];
    const note = (warning: Error): void => void warnings.push(warning);
    process.on("warning", note);
    try {
      const { signal } = new AbortController();
      const forget = Array.from({ length: 1000 }, () => whenAborted(signal, () => undefined));
      assert.equal(getEventListeners(signal, "abort").length, 1000);
      for (const each of forget) each();
      assert.equal(getEventListeners(signal, "abort").length, 0);
      await new Promise((resolve) => setImmediate(resolve));
      assert.deepEqual(warnings, []);
    } finally {
      process.off("warning", note);
    }
  });
});

describe("unlessAborted", () => {
  const toError = (reason: unknown): Error => new Error(`left: ${String(reason)}`);

  it("resolves and rejects as the work does, and takes its listener off", async () => {
    const { signal } = new AbortController();
    assert.equal(await unlessAborted(Promise.resolve(1), signal, toError), 1);
    await assert.rejects(unlessAborted(Promise.reject(new Error("lost")), signal, toError), /lost/);
    assert.equal(await unlessAborted(Promise.resolve(2), undefined, toError), 2);
    assert.equal(getEventListeners(signal, "abort").length, 0);
  });

  it("rejects while the work goes on", async () => {
    const stop = new AbortController();
    const waiting = unlessAborted(new Promise(() => undefined), stop.signal, toError);
    stop.abort("enough");
    await assert.rejects(waiting, /left: enough/);
    await assert.rejects(
      unlessAborted(Promise.resolve(1), AbortSignal.abort("before"), toError),
      /left: before/,
    );
  });
});
