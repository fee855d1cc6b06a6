import assert from "node:assert/strict";
import test from "node:test";
import type { ServingRecordInfo } from "@octavo/protocol";
import { sampleOf } from "../../evaluators/testing/sample.js";
import { functionTarget } from "../../targets/function-target.js";
import type { Neighbour, Target } from "../../targets/target.js";
import type { TestBed } from "../test-bed.js";
import { checkNamed } from "../table.js";
import { fillerCase } from "../collecting/filler.js";
import type { ScheduledCase, SentCase } from "../collecting/open-loop.js";
import { planReplay } from "./replay-plan.js";

const { signal } = new AbortController();

function sentCase(scheduled: ScheduledCase, requestId: string): SentCase {
  const { answer } = sampleOf({ case: { id: scheduled.evalCase.id } });
  return { scheduled, answer: { ...answer, serving: { request_id: requestId } as ServingRecordInfo } };
}

const stream = { evalCase: sampleOf({ case: { id: "slow" } }).case, atMs: 0 };
const [first, second] = [0, 1].map((index) => ({ evalCase: fillerCase(index, 50, 2, 1), atMs: 40 + index }));
const sent = [
  sentCase(stream, "s"),
  sentCase({ ...stream }, "t"),
  sentCase(first!, "f"),
  sentCase(second!, "g"),
];
const scheduled = [first!, second!];

function neighbour(requestId: string, kernelMs: number, more: Partial<Neighbour> = {}): Neighbour {
  return {
    requestId,
    kernelMs,
    arrivalOffsetMs: 5,
    promptTokens: 50,
    cachedTokens: 0,
    outputTokens: 2,
    ...more,
  };
}

function knowing(neighbours: readonly Neighbour[] | undefined, asked: string[] = []): Target {
  return {
    ...functionTarget("server", () => "x"),
    neighbours: (id) => {
      asked.push(id);
      return Promise.resolve(neighbours);
    },
  };
}

test("a server that does not tell has everything run again", async () => {
  for (const target of [functionTarget("mute", () => "x"), knowing(undefined)])
    assert.deepEqual(await planReplay(target, sent, sent[0]!, scheduled, signal), {
      beside: scheduled,
      withoutOne: undefined,
    });
});

test("neighbours of the slow stream are rerun, unknown ones as requests of their size, and other streams are not duplicated", async () => {
  const asked: string[] = [];
  const stranger = neighbour("elsewhere", 40, {
    arrivalOffsetMs: -20,
    promptTokens: 900,
    cachedTokens: 880,
    outputTokens: 7,
  });
  const known = [neighbour("t", 500), neighbour("g", 100), stranger];
  const { beside, withoutOne } = await planReplay(knowing(known, asked), sent, sent[0]!, scheduled, signal);
  assert.deepEqual(asked, ["s"]);
  assert.equal(beside[0], second, "the first filler was not there at the time");
  assert.equal(beside.length, 2);
  const [, standIn] = beside;
  assert.equal(standIn?.atMs, 0);
  assert.equal(standIn.evalCase.parameters.maxTokens, 7);
  assert.equal(standIn.evalCase.messages[0]?.content?.split(" ").length, 2 + 20);
  // of what was beside it the second filler had most
  assert.deepEqual(withoutOne, [standIn]);
});

test("no neighbour is singled out where none took most of the compute time", async () => {
  const even = await planReplay(
    knowing([neighbour("f", 10), neighbour("g", 10)]),
    sent,
    sent[0]!,
    scheduled,
    signal,
  );
  assert.equal(even.withoutOne, undefined);
  const lone = await planReplay(knowing([neighbour("f", 10)]), sent, sent[0]!, scheduled, signal);
  assert.deepEqual([lone.beside, lone.withoutOne], [[first], undefined]);
  const nobody = await planReplay(knowing([]), sent, sent[0]!, scheduled, signal);
  assert.deepEqual(nobody.beside, []);
});

test("the jitter check proves which neighbour was to blame on a server that knows its neighbours", async () => {
  let elephant = "";
  let time = 0;
  // each turn's streams stall for as long as all prompts beside them take: of one of them, long
  const beside = new Map<string, number>();
  const target: Target = {
    ...functionTarget("server", async ({ id, tags, messages }, { extraBody, scheduledEpochMs }) => {
      const salt = String(extraBody?.["cache_salt"]);
      const isPrompt = tags.includes("filler");
      const words = messages[0]?.content?.split(" ").length ?? 0;
      if (isPrompt) {
        const isLong = id.endsWith("-0");
        if (isLong) elephant = `${salt}/${id}`;
        beside.set(salt, (beside.get(salt) ?? 0) + (isLong ? 500 : words));
      }
      await new Promise((resolve) => setTimeout(resolve, 12));
      const stallMs = 10 + (beside.get(salt) ?? 0);
      time += 1;
      return {
        text: "answer",
        serving: {
          request_id: `${salt}/${id}`,
          slow_gaps: [] as const,
          batch_size: { mean: 1 },
          shared_prefill_tokens: { max: 0 },
        } as unknown as ServingRecordInfo,
        timing: {
          scheduledEpochMs: scheduledEpochMs ?? time,
          sentEpochMs: scheduledEpochMs ?? time,
          durationMs: 1,
          pieceMs: [10, 20, 30 + stallMs, 40 + stallMs],
        },
      };
    }),
    neighbours: (id) => {
      const salt = id.split("/")[0]!;
      return Promise.resolve(
        elephant.startsWith(`${salt}/`)
          ? [
              neighbour(elephant, 500),
              neighbour(elephant.replace(/-0$/, "-1"), 20),
              neighbour(elephant.replace(/-0$/, "-2"), 20),
            ]
          : [],
      );
    },
  };
  const bed: TestBed = {
    candidate: target,
    baseline: undefined,
    replicas: [],
    startReplica: undefined,
    cases: [stream.evalCase],
    evaluators: [],
    seed: 1,
    signal,
  };
  const settings = {
    streams: 1,
    rounds: 2,
    tokens: 4,
    replays: 3,
    burst_prompts: 3,
    burst_prompt_tokens: 10,
  };
  const { observations, result } = await checkNamed("jitter").run(bed, settings);
  const count = (name: string) => observations.filter(({ condition }) => condition === name).length;
  assert.deepEqual(["replay-beside", "replay-alone", "replay-without-one"].map(count), [3, 3, 3]);
  const longest = (name: string) =>
    observations.flatMap(({ condition, gapsMs }) => (condition === name ? [Math.max(...gapsMs)] : []));
  assert.ok(longest("replay-without-one").every((ms) => ms < 100));
  assert.ok(longest("replay-beside").every((ms) => ms > 500));
  assert.ok(
    result.notes.some((note) => note.startsWith("Without the one neighbour") && note.includes("that one is")),
    result.notes.join("\n"),
  );
});
