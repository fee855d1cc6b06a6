import assert from "node:assert/strict";
import { test } from "node:test";
import { OctavoError } from "@octavo/protocol";
import type { ActiveRequest } from "./active-request.js";
import { AdmissionQueue } from "./admission-queue.js";

const request = (): ActiveRequest => ({}) as unknown as ActiveRequest;

function retryAfterSeconds(queue: AdmissionQueue): number | undefined {
  try {
    queue.check(0, undefined);
  } catch (thrown) {
    assert.ok(thrown instanceof OctavoError && thrown.code === "queue_full");
    return thrown.retryAfterSeconds;
  }
  return assert.fail("was let in");
}

test("says to come back when those who wait have had their turn, by the pace of this busy time alone", () => {
  const queue = new AdmissionQueue(20);
  for (let count = 0; count < 20; count += 1) queue.enter(request());
  assert.equal(retryAfterSeconds(queue), 1);
  for (let count = 0; count < 10; count += 1) queue.noteFinished(count * 500);
  assert.equal(retryAfterSeconds(queue), 10);
  for (let count = 0; count < 40; count += 1) queue.noteFinished(1e6 + count * 60_000);
  assert.equal(retryAfterSeconds(queue), 60);
  queue.noteWork();
  assert.equal(retryAfterSeconds(queue), 1);
});
