import assert from "node:assert/strict";
import { test } from "node:test";
import { parseTraceContext, childContext } from "@octavo/tracing";
import { RequestTrace } from "./request-trace.js";

function trace(): { trace: RequestTrace; byEngineId: Map<string, RequestTrace> } {
  const byEngineId = new Map<string, RequestTrace>();
  const context = childContext(parseTraceContext(undefined, undefined), 1);
  return { trace: new RequestTrace(context, undefined, byEngineId), byEngineId };
}

test("what the engine refuses is waited for no longer", () => {
  const { trace: own, byEngineId } = trace();
  own.adopt("a");
  own.adopt("b");
  assert.equal(own.isRunning, true);
  own.disown("a");
  own.disown("a");
  assert.equal(own.isRunning, true);
  own.disown("b");
  assert.equal(own.isRunning, false);
  assert.equal(byEngineId.size, 0);
});

test("a request of the engine that begins after its exchange is over is not kept", () => {
  const { trace: own, byEngineId } = trace();
  own.adopt("early");
  own.release();
  own.adopt("late");
  assert.equal(byEngineId.size, 0);
});
