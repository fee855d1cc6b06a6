import assert from "node:assert/strict";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { after, describe, it } from "node:test";
import {
  checkNamed,
  type EvalCase,
  evaluatorTable,
  observationFromAnswer,
  openAiTarget,
  readSpans,
  ReplicaProcesses,
  sendOpenLoop,
  type Target,
  type TestBed,
} from "@octavo/evals";
import { octavoMain } from "../testing/run-octavo.js";

const { signal } = new AbortController();
const processes = new ReplicaProcesses();
after(() => processes[Symbol.asyncDispose]());

/** `octavo serve` of octavo-mini in a process of its own; it runs, and need not answer yet. */
function start(name: string, ...flags: readonly string[]): Promise<Target> {
  const always = ["--threads", "1", "--kv-cache-memory", "64MiB", "--log-level", "error"];
  const command = [
    process.execPath,
    octavoMain,
    "serve",
    "--port",
    "{port}",
    "--replica-id",
    name,
    ...always,
  ];
  return processes.start([...command, ...flags], (baseUrl) => openAiTarget({ name, baseUrl }), signal);
}

async function served(name: string, ...flags: readonly string[]): Promise<Target> {
  const target = await start(name, ...flags);
  for (;;) {
    const { failure } = await target.answer(caseOf(0, 1, 1), { signal });
    if (failure === undefined) return target;
    assert.equal(failure.code, "connection", failure.message);
    await sleep(50);
  }
}

const words = "paper leaf folded sheet quire binding margin letter column press".split(" ");

function caseOf(index: number, promptWords = 60, maxTokens = 32): EvalCase {
  const text = Array.from({ length: promptWords }, (_, at) => words[(index + at * at) % words.length]).join(
    " ",
  );
  return {
    id: `case-${index}`,
    messages: [{ role: "user", content: `${index}: ${text}` }],
    tools: [],
    context: undefined,
    expected: {},
    parameters: { maxTokens, temperature: 0, extraBody: { min_tokens: maxTokens } },
    tenant: undefined,
    cluster: undefined,
    tags: [],
    metadata: {},
  };
}

function bedOf(candidate: Target, given: Partial<TestBed> = {}): TestBed {
  return {
    candidate,
    baseline: undefined,
    replicas: [],
    startReplica: undefined,
    cases: Array.from({ length: 40 }, (_, index) => caseOf(index, 30 + 2 * index)),
    evaluators: [],
    seed: 1,
    signal,
    ...given,
  };
}

describe("faults of load, planted in octavo serve", () => {
  it("a tenant starved by a first-come queue", async () => {
    const candidate = await served("first-come", "--scheduling-policy", "fcfs", "--max-num-seqs", "32");
    const { result } = await checkNamed("fairness").run(bedOf(candidate), {
      requests: 40,
      rounds: 1,
      small_requests_per_minute: 600,
      large_requests_per_minute: 6000,
      large_prompt_tokens: 250,
      large_output_tokens: 48,
    });
    assert.equal(result.verdict, "fail", result.summary);
    assert.ok(result.advice.some(({ knob }) => knob.includes("--scheduling-policy fair")));
  });

  it("a jitter burst: long prompts in steps without a bound", async () => {
    const candidate = await served(
      "unbounded",
      "--max-num-batched-tokens",
      "8192",
      "--max-prefill-step-ms",
      "0",
    );
    const { result } = await checkNamed("jitter").run(bedOf(candidate), {
      rounds: 6,
      replays: 3,
      burst_prompts: 4,
      burst_prompt_tokens: 1000,
      slice_ms: 20,
      full_slice: 8,
    });
    assert.equal(result.verdict, "fail", result.summary);
    assert.equal(result.advice[0]?.knob, "--max-num-batched-tokens", result.notes.join("\n"));
  });

  it("a slow scale-up: a replica that starts late", async () => {
    const candidate = await served("first", "--max-num-seqs", "1");
    const late = ["--enable-fault-injection", "--fault-start-delay", "2", "--max-num-seqs", "1"];
    const bed = bedOf(candidate, {
      startReplica: () => start("late", ...late),
      evaluators: evaluatorTable.create(["is_json"]),
    });
    const { result, observations } = await checkNamed("autoscaling-lag").run(bed, {
      idle_requests_per_second: 20,
      burst_requests_per_second: 80,
    });
    assert.equal(result.verdict, "fail", result.summary);
    assert.ok(observations.some(({ condition, replica }) => condition === "scaled" && replica === "late"));
    assert.ok(
      result.notes.some((note) => /^All \d+ answers/.test(note)),
      "no schedule changes an answer",
    );
  });

  it("a drifted mix, from the spans that the server kept", async () => {
    const folder = await mkdtemp(join(tmpdir(), "octavo-drift-"));
    try {
      const candidate = await served("traced", "--trace-store", folder);
      const bed = bedOf(candidate);
      // clumps of ten, twice a second; a quarter of the requests is another tenant's
      const production = Array.from({ length: 120 }, (_, index) => ({
        evalCase: bed.cases[index % bed.cases.length]!,
        atMs: 500 * Math.floor(index / 10) + 15 * (index % 10) + 7 * (index % 3),
        tenant: index % 4 === 0 ? "few" : "many",
      })).toSorted((one, other) => one.atMs - other.atMs);
      await sendOpenLoop(candidate, production, { signal });
      const recording = await recordedIn(folder, production.length);
      const check = checkNamed("traffic-drift");
      // little traffic: what is alike cannot be told from it within the usual margins
      const settings = { recording, length_margin: 0.5, tenant_margin: 0.3, dispersion_margin: 4 };
      const replay = await check.run(bed, settings);
      assert.notEqual(replay.result.verdict, "fail", replay.result.summary);

      const even = Array.from({ length: 40 }, (_, index) => ({
        evalCase: caseOf(index, 20, 4),
        atMs: 100 * index,
        tenant: "few",
      }));
      const evaluation = (await sendOpenLoop(candidate, even, { signal })).map(({ answer, scheduled }) =>
        observationFromAnswer(answer, { condition: "evaluation", ...scheduled }),
      );
      const kept = replay.observations.filter(({ condition }) => condition === "production");
      const drifted = check.judge([...kept, ...evaluation], settings);
      assert.equal(drifted.verdict, "fail", drifted.summary);
      const failed = drifted.hypotheses.filter(({ verdict }) => verdict === "fail").map(({ name }) => name);
      for (const part of ["prompt tokens", "output tokens", "shares of tenants"])
        assert.ok(
          failed.some((name) => name.includes(part)),
          `${part}: ${failed.join("; ")}`,
        );
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });
});

/** The store's file, once it holds so many spans. */
async function recordedIn(folder: string, count: number): Promise<string> {
  for (;;) {
    const name = (await readdir(folder)).find((file) => file.endsWith(".jsonl"));
    if (name !== undefined) {
      let spans = 0;
      for await (const _ of readSpans(join(folder, name), { condition: "production" })) spans += 1;
      if (spans >= count) return join(folder, name);
    }
    await sleep(50);
  }
}
