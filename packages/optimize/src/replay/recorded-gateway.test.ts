import assert from "node:assert/strict";
import { test } from "node:test";
import { Random } from "@octavo/statistics";
import { recordedGateway } from "./recorded-gateway.js";
import type { TargetCall } from "./recorded-targets.js";

const call = (index: number, atMs: number, fields: object = {}) => ({
  time: new Date(1_760_000_000_000 + atMs).toISOString(),
  request_id: `r${index}`,
  operation: "chat",
  status: 200,
  model: "m",
  route: "chat",
  target: "east",
  duration_ms: 100,
  first_byte_ms: 40,
  ...fields,
});
const tried = (outcome: string, endedMs: number, status?: number) => ({
  target: undefined,
  error: outcome,
  first_byte_ms: undefined,
  duration_ms: endedMs,
  attempts: [{ target: "east", reason: "first", outcome, status, started_ms: 0, ended_ms: endedMs }],
});
const read = (lines: readonly object[], found = ["r0"], mostRequests = 100) =>
  recordedGateway(lines, { cause: "target_failed", routes: ["chat"], found: new Set(found), mostRequests });
const asked = (over: Partial<TargetCall>): TargetCall => ({
  callId: "other",
  atMs: 1_760_000_000_000,
  isStream: false,
  turn: 0,
  besides: 0,
  isAsRecorded: false,
  random: new Random(1),
  ...over,
});

test("a recorded call is answered as it was; another like those beside as many others", () => {
  // east refuses whatever comes while it has three calls
  const lines = Array.from({ length: 40 }, (_, burst) => [
    ...[0, 1, 2].map((at) => call(10 * burst + at, 1000 * burst + at)),
    call(10 * burst + 3, 1000 * burst + 10, tried("target_rate_limited", 5, 429)),
  ]).flat();
  const east = read(lines).targets.get("east")!;
  const kinds = (besides: number) =>
    new Set(
      Array.from(
        { length: 50 },
        (_, seed) => east.answerTo(asked({ besides, random: new Random(seed) }))?.kind,
      ),
    );
  assert.deepEqual([...kinds(0)], ["answer"]);
  assert.deepEqual([...kinds(3)], ["status"]);
  assert.deepEqual(east.answerTo(asked({ callId: "r13", isAsRecorded: true })), {
    kind: "status",
    status: 429,
    durationMs: 5,
  });
});

test("of what was given up, the target's later answers are what it may have been, or none at all", () => {
  const gaveUp = tried("target_timeout", 500);
  const fast = [call(0, 0, gaveUp), ...[1, 2, 3].map((at) => call(at, 1000 * at))];
  const own = asked({ callId: "r0", isAsRecorded: true });
  assert.deepEqual(read(fast).targets.get("east")!.answerTo(own), { kind: "silent" });
  const slow = [...fast, call(9, 9000, { first_byte_ms: 700, duration_ms: 900 })];
  assert.deepEqual(read(slow).targets.get("east")!.answerTo(own), {
    kind: "answer",
    firstByteMs: 700,
    durationMs: 900,
  });
  assert.equal(read(slow).targets.get("west"), undefined);
});

test("all calls of the cluster's routes are measured, of the stretch with most of its findings", () => {
  const lines = Array.from({ length: 50 }, (_, index) =>
    call(index, 100 * index, index % 2 === 0 ? {} : { route: "side", model: "n" }),
  );
  const { requests, numRecorded } = read([{ event: "reloaded" }, ...lines], ["r30", "r32"], 10);
  assert.deepEqual([numRecorded, requests.length], [50, 10]);
  assert.ok(requests.some(({ callId }) => callId === "r32"));
  assert.deepEqual(
    requests.map(({ isOfCluster, model }) => [isOfCluster, model]),
    requests.map((_, at) =>
      (at + Number(requests[0]!.model === "n")) % 2 === 0 ? [true, "m"] : [false, "n"],
    ),
  );
  assert.equal(requests[0]!.atMs, 0);
  assert.throws(() => read(lines, ["elsewhere"]), /none of the recorded chat calls is of this cluster/);
});

test("calls that the cache answered or a budget refused are not sent to targets, those refused for the load are", () => {
  const unasked = { target: undefined, attempts: [] };
  const lines = [
    call(0, 0),
    call(1, 100, { ...unasked, cache: "hit" }),
    call(2, 200, { ...unasked, status: 402, error: "budget_exceeded" }),
    call(3, 300, { ...unasked, status: 429, error: "rate_limit_exceeded" }),
  ];
  assert.deepEqual(
    read(lines).requests.map(({ callId }) => callId),
    ["r0", "r3"],
  );
});

test("the measure is what became of most of the cluster's calls", () => {
  const measureOf = (cause: string, fields: object) =>
    recordedGateway([call(0, 0, fields)], { cause, routes: [], found: new Set(["r0"]), mostRequests: 1 })
      .measures.target.name;
  assert.equal(measureOf("target_failed", tried("target_failed", 5, 500)), "failed");
  assert.equal(measureOf("target_failed", {}), "failed by a target");
  assert.equal(measureOf("target_timeout", {}), "first byte");
});
