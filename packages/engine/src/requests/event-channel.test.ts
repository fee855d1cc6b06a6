import assert from "node:assert/strict";
import { test } from "node:test";
import { OctavoError } from "@octavo/protocol/errors";
import type { GenerationEvent } from "../api.js";
import { plainServingRecord } from "../testing/fakes/serving-record.js";
import { EventChannel, type PendingDelta } from "./event-channel.js";

function delta(index: number, token: number, finishReason?: "stop"): PendingDelta {
  return {
    index,
    text: `${token}`,
    tokens: [token],
    logprobs: undefined,
    finishReason,
    stopReason: undefined,
  };
}

const done = {
  kind: "done",
  usage: { promptTokens: 1, completionTokens: 1, cachedTokens: 0 },
  record: plainServingRecord,
} satisfies GenerationEvent;

async function read(channel: EventChannel): Promise<GenerationEvent[]> {
  const events: GenerationEvent[] = [];
  for await (const event of channel) events.push(event);
  return events;
}

test("merges what a slow reader has not taken, per sequence", async () => {
  const channel = new EventChannel(() => assert.fail("nobody left"));
  for (let token = 0; token < 1000; token += 1) channel.pushDeltas([delta(0, token), delta(1, token + 5000)]);
  channel.pushDeltas([delta(0, 1, "stop")]);
  channel.close(done);
  const events = await read(channel);
  assert.equal(events.length, 2);
  assert(events[0]?.kind === "delta");
  assert.deepEqual(
    events[0].deltas.map(({ index, tokens }) => [index, tokens.length]),
    [
      [0, 1001],
      [1, 1000],
    ],
  );
  assert.equal(events[0].deltas[0]?.finishReason, "stop");
  assert.equal(events[0].deltas[1]?.text.slice(0, 8), "50005001");
  assert.equal(events[1], done);
});

test("serves readers that wait, in their order", async () => {
  const channel = new EventChannel(() => {});
  const reads = [channel.next(), channel.next(), channel.next()];
  channel.pushPrompt({ kind: "prompt", promptLogprobs: [undefined] });
  channel.pushDeltas([delta(0, 1)]);
  channel.close(done);
  const kinds = (await Promise.all(reads)).map((result) => result.value?.kind);
  assert.deepEqual(kinds, ["prompt", "delta", "done"]);
  assert.deepEqual(await channel.next(), { done: true, value: undefined });
});

test("an error comes once, after the events before it", async () => {
  const channel = new EventChannel(() => {});
  channel.pushDeltas([delta(0, 1)]);
  channel.fail(new OctavoError("engine_failed", "gone"));
  assert.equal((await channel.next()).value?.kind, "delta");
  await assert.rejects(channel.next(), { code: "engine_failed" });
  assert.equal((await channel.next()).done, true);
});

test("a reader that leaves is reported once, releases pending reads and drops later events", async () => {
  let timesLeft = 0;
  const channel = new EventChannel(() => {
    timesLeft += 1;
  });
  const waiting = channel.next();
  await channel.return();
  await channel.return();
  channel.pushDeltas([delta(0, 1)]);
  channel.close(done);
  assert.equal((await waiting).done, true);
  assert.equal((await channel.next()).done, true);
  assert.equal(timesLeft, 1);
});
