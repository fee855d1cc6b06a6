import assert from "node:assert/strict";
import { test } from "node:test";
import { OctavoError } from "@octavo/protocol/errors";
import type { Account } from "../scheduler/account.js";
import { AdmissionQueue, type QueueBounds, type WaitingRequest } from "./admission-queue.js";

const bounds: QueueBounds = {
  maxRequests: 20,
  maxTokens: 0,
  maxRequestsPerTenant: 0,
  maxTokensPerTenant: 0,
  isShared: false,
};

const request = (account: Account = { tenant: "a" }, numPromptTokens = 10): WaitingRequest => ({
  account,
  numPromptTokens,
  timeline: { queuedMs: 0 },
});

function refusal(queue: AdmissionQueue<WaitingRequest>, newcomer = request(), nowMs = 0): OctavoError {
  try {
    queue.check(newcomer, 0, undefined, nowMs);
  } catch (thrown) {
    assert.ok(thrown instanceof OctavoError && thrown.code === "queue_full");
    return thrown;
  }
  return assert.fail("was let in");
}

function filled(
  count: number,
  more: Partial<QueueBounds> = {},
  account?: Account,
): AdmissionQueue<WaitingRequest> {
  const queue = new AdmissionQueue<WaitingRequest>({ ...bounds, ...more });
  for (let index = 0; index < count; index += 1) queue.enter(request(account));
  return queue;
}

test("estimates the retry time from the queue and the completion rate of the current busy period", () => {
  const queue = filled(20);
  assert.equal(refusal(queue).retryAfterSeconds, 1);
  for (let count = 0; count < 10; count += 1) queue.noteFinished(request(), count * 500);
  assert.equal(refusal(queue, request(), 4500).retryAfterSeconds, 10);
  assert.equal(refusal(queue, request(), 20_000).retryAfterSeconds, 40, "nothing has finished for a while");
  for (let count = 0; count < 40; count += 1) queue.noteFinished(request(), 1e6 + count * 60_000);
  assert.equal(refusal(queue, request(), 4e6).retryAfterSeconds, 60);
  queue.noteWork();
  assert.equal(refusal(queue).retryAfterSeconds, 1);
});

test("a tenant at its bound is refused while others are let in, with its own pace", () => {
  const queue = filled(4, { maxRequestsPerTenant: 4 });
  for (let count = 0; count < 5; count += 1) {
    queue.noteFinished(request(), count * 3000);
    for (let fast = 0; fast < 10; fast += 1)
      queue.noteFinished(request({ tenant: "b" }), count * 3000 + fast);
  }
  const refused = refusal(queue, request(), 12_000);
  assert.match(refused.message, /4 requests of this tenant are waiting, which is its limit/);
  assert.equal(refused.retryAfterSeconds, 12);
  assert.equal(queue.check(request({ tenant: "b" }), 0, undefined), undefined);
  assert.equal(queue.check(request({ tenant: "a", maxQueuedRequests: 5 }), 0, undefined), undefined);
  assert.equal(queue.check(request(), 1, undefined), undefined, "there is a place in the next step");
});

test("prompt tokens are bounded too, but one prompt always fits", () => {
  const tokens = filled(0, { maxTokens: 100 });
  assert.equal(tokens.check(request({ tenant: "a" }, 1000), 0, undefined), undefined);
  tokens.enter(request({ tenant: "a" }, 95));
  assert.match(refusal(tokens, request({ tenant: "b" }, 6)).message, /the limit/);
  assert.equal(tokens.check(request({ tenant: "b" }, 5), 0, undefined), undefined);
  const own = filled(0, { maxTokensPerTenant: 100 });
  own.enter(request({ tenant: "a" }, 95));
  assert.match(
    refusal(own, request({ tenant: "a" }, 6)).message,
    /95 prompt tokens, with this one 101, more than/,
  );
  assert.equal(own.check(request({ tenant: "b" }, 6), 0, undefined), undefined);
});

test("a full queue accepts a more urgent lane: the newest of the least urgent one is displaced", () => {
  const queue = filled(18, {}, { tenant: "a", lane: 1 });
  const [early, late] = [request({ tenant: "b", lane: 2 }), request({ tenant: "b", lane: 2 })];
  queue.enter(early);
  queue.enter(late);
  assert.equal(queue.check(request({ tenant: "c", lane: 0 }), 0, undefined), late);
  assert.equal(queue.check(request({ tenant: "c", lane: 1 }), 0, undefined), late);
  refusal(queue, request({ tenant: "c", lane: 2 }));
  const { code, retryAfterSeconds } = queue.displacement(late);
  assert.equal(code, "queue_full");
  assert.ok(retryAfterSeconds !== undefined && retryAfterSeconds >= 1);
});

test("where tenants share the queue, the tenant with most of it is displaced by one with less, and by no other", () => {
  const shared = filled(15, { isShared: true });
  const newest = request();
  shared.enter(newest);
  for (let count = 0; count < 4; count += 1) shared.enter(request({ tenant: "b" }));
  assert.equal(shared.check(request({ tenant: "b" }), 0, undefined), newest);
  assert.equal(shared.check(request({ tenant: "new" }), 0, undefined), newest);
  refusal(shared, request());
  const unshared = filled(20);
  refusal(unshared, request({ tenant: "b" }));
});

test("a prompt that would not fit after displacing one request is refused", () => {
  const queue = filled(10, { isShared: true, maxTokens: 100 });
  refusal(queue, request({ tenant: "b" }, 50));
  assert.notEqual(queue.check(request({ tenant: "b" }, 10), 0, undefined), undefined);
});

test("tenants that come and go are not remembered for ever", () => {
  const queue = filled(0, { isShared: true });
  for (let index = 0; index < 5000; index += 1) {
    const left = request({ tenant: `tenant-${index}` });
    queue.enter(left);
    queue.leave(left);
    queue.leave(left);
    queue.noteFinished(left, index);
  }
  assert.equal(queue.size, 0);
  assert.ok(queue.numTenants <= 1025, `${queue.numTenants} tenants`);
});
