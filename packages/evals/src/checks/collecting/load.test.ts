import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, it } from "node:test";
import { OctavoError } from "@octavo/protocol";
import type { EvalCase } from "../../cases/eval-case.js";
import type { Evaluator } from "../../evaluators/evaluator.js";
import { sampleOf } from "../../evaluators/testing/sample.js";
import { functionTarget } from "../../targets/function-target.js";
import type { Target } from "../../targets/target.js";
import type { TestBed } from "../test-bed.js";
import { checkNamed } from "../table.js";
import { LeastQueueRouter } from "./least-queue-router.js";
import { sendOpenLoop } from "./open-loop.js";

const caseOf = (index: number, content = `question ${index}`): EvalCase =>
  sampleOf({ case: { id: `case-${index}`, messages: [{ role: "user", content }] } }).case;

const cases = Array.from({ length: 6 }, (_, index) => caseOf(index));

/** Answers after a while, with as many pieces as tokens are asked for. */
function server(name: string, serviceMs = 2): Target {
  return functionTarget(name, async (evalCase, { extraBody, scheduledEpochMs }) => {
    await sleep(serviceMs);
    const tokens = Number(extraBody?.["max_tokens"] ?? 2);
    const now = Date.now();
    return {
      text: `answer to ${evalCase.id}`,
      usage: { promptTokens: 5, completionTokens: tokens, cachedTokens: 0 },
      timing: {
        scheduledEpochMs: scheduledEpochMs ?? now,
        sentEpochMs: now - serviceMs,
        durationMs: serviceMs,
        pieceMs: Array.from({ length: tokens }, (_, index) => index + 1),
      },
    };
  });
}

const isAnswer: Evaluator = {
  name: "is_answer",
  description: "starts with the word",
  inputs: ["output"],
  output: "pass_fail",
  needsJudge: false,
  evaluate: ({ answer }) => ({
    status: "scored",
    value: Number(answer.text.startsWith("answer")),
    passed: answer.text.startsWith("answer"),
  }),
};

function bedOf(given: Partial<TestBed> = {}): TestBed {
  return {
    candidate: server("candidate"),
    baseline: undefined,
    replicas: [],
    startReplica: undefined,
    cases,
    evaluators: [isAnswer],
    seed: 1,
    signal: new AbortController().signal,
    ...given,
  };
}

describe("open loop", () => {
  it("sends when a request is due, not when another was answered, and times it from then", async () => {
    let underWay = 0;
    let most = 0;
    const slow = functionTarget("slow", async () => {
      most = Math.max(most, ++underWay);
      await sleep(40);
      underWay -= 1;
      return "done";
    });
    const schedule = cases.map((evalCase, index) => ({ evalCase, atMs: 3 * index }));
    const sent = await sendOpenLoop(slow, schedule, { signal: new AbortController().signal });
    assert.equal(most, cases.length);
    const [first] = sent;
    for (const [index, { answer, scheduled }] of sent.entries()) {
      assert.equal(scheduled, schedule[index]);
      assert.equal(answer.timing.scheduledEpochMs - first!.answer.timing.scheduledEpochMs, 3 * index);
    }
  });

  it("counts the wait for a place against the server", async () => {
    const schedule = cases.map((evalCase) => ({ evalCase, atMs: 0 }));
    const sent = await sendOpenLoop(server("busy", 10), schedule, {
      signal: new AbortController().signal,
      maxInFlight: 1,
    });
    const scheduled = new Set(sent.map(({ answer }) => answer.timing.scheduledEpochMs));
    assert.equal(scheduled.size, 1);
    const timings = sent.map(({ answer }) => answer.timing);
    assert.ok(
      timings.every(
        ({ sentEpochMs }, index) => index === 0 || sentEpochMs >= timings[index - 1]!.sentEpochMs,
      ),
    );
  });

  it("ends with the signal's reason, whatever is under way", async () => {
    const controller = new AbortController();
    const reason = new OctavoError("request_cancelled", "enough");
    const waiting = functionTarget("waiting", async (_, { signal }) => {
      await sleep(60_000, undefined, { signal });
      return "";
    });
    const schedule = [
      { evalCase: cases[0]!, atMs: 0 },
      { evalCase: cases[1]!, atMs: 60_000 },
    ];
    const running = sendOpenLoop(waiting, schedule, { signal: controller.signal });
    setTimeout(() => controller.abort(reason), 5);
    await assert.rejects(running);
  });
});

describe("least-queue router", () => {
  it("sends requests to the replica with the fewest, and records the queue depth", async () => {
    const router = new LeastQueueRouter("both", [server("a", 5)]);
    const { signal } = new AbortController();
    const first = router.answer(cases[0]!, { signal });
    router.add(server("b", 5));
    const [one, other, third] = await Promise.all([
      first,
      router.answer(cases[1]!, { signal }),
      router.answer(cases[2]!, { signal }),
    ]);
    assert.deepEqual([one.target, other.target, third.target], ["a", "b", "a"]);
    assert.deepEqual(
      [one, other, third].map(({ headers }) => [
        headers["x-octavo-queue-depth"],
        headers["x-octavo-replica-count"],
      ]),
      [
        ["0", "1"],
        ["1", "2"],
        ["2", "2"],
      ],
    );
    await assert.rejects(new LeastQueueRouter("none", []).answer(cases[0]!, { signal }), /no replica/);
  });
});

describe("collecting under load", () => {
  it("sends the small tenant's requests twice and the large one's beside one of them", async () => {
    const { observations, result } = await checkNamed("fairness").run(bedOf(), {
      requests: 40,
      rounds: 2,
      small_requests_per_minute: 12_000,
      large_requests_per_minute: 24_000,
    });
    const of = (condition: string, tenant: string) =>
      observations.filter((seen) => seen.condition === condition && seen.tenant === tenant);
    assert.equal(of("solo", "small").length, 40);
    assert.equal(of("solo", "large").length, 0);
    assert.ok(of("shared", "large").length > 10);
    assert.deepEqual(
      of("shared", "small").map(({ caseId }) => caseId),
      of("solo", "small").map(({ caseId }) => caseId),
    );
    assert.equal(of("solo", "small")[0]!.scores["is_answer"], 1);
    assert.ok(["pass", "inconclusive"].includes(result.verdict));
  });

  it("spreads a cluster's tenants over its replicas", async () => {
    const replicas = [server("r1"), server("r2")];
    const { observations } = await checkNamed("tenant-fairness").run(bedOf({ replicas }), {
      requests: 36,
      rounds: 1,
      small_requests_per_minute: 12_000,
      large_requests_per_minute: 12_000,
      large_prompt_tokens: 3,
    });
    assert.deepEqual(new Set(observations.map(({ replica }) => replica)), new Set(["r1", "r2"]));
    assert.ok(observations.every(({ queueDepth }) => queueDepth !== undefined));
  });

  it("keeps a burst up until the new replica answers, and one pass more", async () => {
    const settings = { idle_requests_per_second: 500, burst_requests_per_second: 500, upscale_delay_ms: 20 };
    let refusals = 0;
    const startReplica = async (): Promise<Target> => {
      const real = server("late");
      return {
        name: "late",
        answer: async (evalCase, options) => {
          const answer = await real.answer(evalCase, options);
          const isUp = ++refusals > 2;
          const failure = { code: "connection", httpStatus: undefined, message: "refused" };
          return isUp ? answer : { ...answer, failure };
        },
      };
    };
    const { observations } = await checkNamed("autoscaling-lag").run(bedOf({ startReplica }), settings);
    const count = (name: string) => observations.filter(({ condition }) => condition === name).length;
    assert.equal(count("idle"), cases.length);
    assert.ok(count("scaling") >= 1);
    assert.ok(count("scaled") >= cases.length - 1);
    assert.ok(observations.some(({ condition, replica }) => condition === "scaled" && replica === "late"));
    assert.ok(
      observations.every(({ condition, replicaCount }) => replicaCount === (condition === "scaled" ? 2 : 1)),
    );
  });

  it("says when the new replica never answers", async () => {
    const dead: Target = {
      name: "dead",
      answer: async (evalCase, options) => ({
        ...(await server("dead").answer(evalCase, options)),
        failure: { code: "connection", httpStatus: undefined, message: "refused" },
      }),
    };
    const running = checkNamed("autoscaling-lag").run(bedOf({ startReplica: async () => dead }), {
      idle_requests_per_second: 500,
      burst_requests_per_second: 500,
      replica_timeout_ms: 30,
    });
    await assert.rejects(
      running,
      (thrown: unknown) => thrown instanceof OctavoError && thrown.code === "target_unreachable",
    );
  });

  it("replays recorded arrivals with their tenants, lengths and order", async () => {
    const folder = await mkdtemp(join(tmpdir(), "octavo-recording-"));
    try {
      const recording = join(folder, "spans.jsonl");
      const rows = Array.from({ length: 20 }, (_, index) => ({
        start_ms: 1_700_000_000_000 + 10 * ((7 * index) % 20),
        duration_ms: 5,
        operation: "chat",
        side: "server",
        tenant: `t${index % 2}`,
        input_tokens: index % 2 === 0 ? 2 : 100,
        output_tokens: 3,
      }));
      await writeFile(recording, rows.map((row) => JSON.stringify(row)).join("\n"));
      const counting = functionTarget("counting", async (evalCase, { extraBody, scheduledEpochMs }) => ({
        text: "answer",
        usage: {
          promptTokens: 1 + (evalCase.messages[0]?.content?.length ?? 0) / 4,
          completionTokens: Number(extraBody?.["max_tokens"]),
          cachedTokens: 0,
        },
        timing: { scheduledEpochMs: scheduledEpochMs ?? 0, sentEpochMs: 0, durationMs: 1, pieceMs: [] },
      }));
      const bed = bedOf({ candidate: counting, cases: [caseOf(1), caseOf(2, "long ".repeat(80))] });
      const { observations } = await checkNamed("traffic-drift").run(bed, { recording, speedup: 2 });
      const replayed = observations.filter(({ condition }) => condition === "evaluation");
      const recorded = observations.filter(({ condition }) => condition === "production");
      assert.equal(replayed.length, 20);
      assert.deepEqual(
        replayed.map(({ tenant }) => tenant),
        recorded.map(({ tenant }) => tenant),
      );
      const offsets = (seen: typeof observations) =>
        seen.map(({ scheduledEpochMs }) => scheduledEpochMs - seen[0]!.scheduledEpochMs);
      assert.deepEqual(offsets(replayed).map(Math.round), offsets(recorded).map(Math.round));
      assert.ok(replayed.every(({ completionTokens }) => completionTokens === 3));
      assert.equal(replayed.find(({ tenant }) => tenant === "t1")?.caseId, "case-2");
      const { result } = await checkNamed("traffic-drift").run(bed, {});
      assert.equal(result.verdict, "inconclusive");
      assert.ok(result.notes.some((note) => note.includes("the setting recording")));
      await writeFile(recording, "{}\n");
      await assert.rejects(checkNamed("traffic-drift").run(bed, { recording }), /no spans/);
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  it("watches streams alone and beside long prompts, and runs the worst turn again", async () => {
    const { observations } = await checkNamed("jitter").run(bedOf(), {
      streams: 2,
      rounds: 2,
      tokens: 8,
      replays: 3,
      burst_prompts: 2,
      burst_prompt_tokens: 10,
    });
    const count = (name: string) => observations.filter(({ condition }) => condition === name).length;
    assert.deepEqual(["baseline", "burst", "replay-beside", "replay-alone"].map(count), [4, 4, 6, 6]);
    assert.ok(observations.every(({ gapsMs }) => gapsMs.length === 7));
  });

  it("deals A/A runs of what was collected", async () => {
    const row = checkNamed("fairness");
    const settings = {
      requests: 60,
      rounds: 1,
      small_requests_per_minute: 30_000,
      large_requests_per_minute: 30_000,
    };
    const { observations, result } = await row.run(bedOf(), settings);
    assert.ok((result.falseAlarms?.runs ?? 0) > 0);
    assert.ok(result.notes.at(-1)?.startsWith("A/A: dealt to both conditions by chance"));
    const alarms = row.falseAlarms(observations, { ...settings, resamples: 200 }, { runs: 50, seed: 1 });
    assert.equal(alarms?.runs, 50);
    assert.equal(alarms?.failed, 0);
  });
});
