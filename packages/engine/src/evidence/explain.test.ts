import assert from "node:assert/strict";
import { test } from "node:test";
import { Explainer } from "./explain.js";
import { RequestTimeline } from "./request-timeline.js";
import { type LoggedStep, StepLog } from "./step-log.js";

/** Counts the steps that are looked at share by share. */
class CountingLog extends StepLog {
  numRead = 0;

  override at(step: number): LoggedStep | undefined {
    this.numRead += 1;
    return super.at(step);
  }
}

test("explaining many slow gaps of a long answer reads the steps of those gaps alone", () => {
  const log = new CountingLog();
  const timeline = new RequestTimeline({ requestId: "long" }, 0);
  const numSteps = 5000;
  let nowMs = 0;
  for (let step = 0; step < numSteps; step += 1) {
    const durationMs = step % 100 === 99 ? 50 : 2;
    for (let order = 0; order < 8; order += 1) log.add(order, 0, 1, false, 1);
    log.measure(durationMs);
    log.end({ startMs: nowMs, durationMs, blocksUsed: 0, blocksEvicted: 0, preemptions: 0 });
    nowMs += durationMs;
    timeline.noteOutput(0, step, nowMs);
  }
  log.numRead = 0;
  const gaps = new Explainer(log, (order) => ({ requestId: String(order), tenant: "a" })).slowGaps(timeline);
  assert.equal(gaps.length, 16);
  for (const { cause, ms } of gaps) {
    assert.equal(cause, "slow_compute");
    assert.equal(ms, 50);
  }
  assert.equal(log.numRead, 16);
});
