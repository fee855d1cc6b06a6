import assert from "node:assert/strict";
import { appendFile, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { OctavoError } from "@octavo/protocol";
import type { Evaluator, Sample } from "../evaluators/evaluator.js";
import { sampleOf } from "../evaluators/testing/sample.js";
import { LocalRunner } from "./local-runner.js";
import { ScoreJournal } from "./score-journal.js";
import { runnerConformance } from "./testing/conformance.js";
import type { ScoredCase } from "./runner.js";

runnerConformance("LocalRunner", () => new LocalRunner(), {
  samplesInFlight: 17,
  manySamples: 20_000,
});
runnerConformance("LocalRunner one at a time", () => new LocalRunner({ concurrency: 1 }), {
  samplesInFlight: 2,
  manySamples: 2000,
});

/** Counts what it is asked, and fails for outputs that hold `down`. */
class CountingEvaluator implements Evaluator {
  readonly name = "counting";
  readonly description = "Counts.";
  readonly inputs = ["output"] as const;
  readonly output = "score";
  readonly needsJudge = false;
  readonly fingerprint: string;
  numAsked = 0;
  numActive = 0;
  mostActive = 0;

  constructor(fingerprint = "") {
    this.fingerprint = fingerprint;
  }

  async evaluate({ answer }: Sample) {
    this.numAsked++;
    this.mostActive = Math.max(this.mostActive, ++this.numActive);
    await new Promise(setImmediate);
    this.numActive--;
    if (answer.text.includes("down"))
      return { status: "failed", code: "judge_failed", reason: "down" } as const;
    return { status: "scored", value: answer.text.length / 1000, passed: true } as const;
  }
}

const samples = Array.from({ length: 300 }, (_, index) =>
  sampleOf({ output: "y".repeat(index) + (index % 10 === 0 ? "down" : ""), case: { id: `${index}` } }),
);

async function run(runner: LocalRunner, evaluator: Evaluator, count = Infinity): Promise<ScoredCase[]> {
  const rows: ScoredCase[] = [];
  const { signal } = new AbortController();
  for await (const row of runner.run(samples, [evaluator], { signal })) {
    rows.push(row);
    if (rows.length >= count) break;
  }
  return rows.toSorted((a, b) => Number(a.caseId) - Number(b.caseId));
}

async function withFile(use: (path: string) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "octavo-journal-"));
  try {
    await use(join(folder, "scores.ndjson"));
  } finally {
    await rm(folder, { recursive: true });
  }
}

const refusal = (message: RegExp) => (thrown: unknown) =>
  thrown instanceof OctavoError && thrown.code === "invalid_option" && message.test(thrown.message);

test("as many pairs are scored at a time as was asked for", async () => {
  const evaluator = new CountingEvaluator();
  await run(new LocalRunner({ concurrency: 5 }), evaluator);
  assert.equal(evaluator.mostActive, 5);
  assert.throws(() => new LocalRunner({ concurrency: 0 }), refusal(/concurrency: expected a whole number/));
});

test("a run goes on from its journal: only what failed or was not reached is scored again", () =>
  withFile(async (path) => {
    const whole = await run(new LocalRunner(), new CountingEvaluator());
    const first = await ScoreJournal.open(path);
    await run(new LocalRunner({ journal: first }), new CountingEvaluator(), 120);
    await first.close();

    // as a crash in the middle of a write would leave it
    await appendFile(path, '{"key":"00');
    const second = await ScoreJournal.open(path);
    const kept = second.size;
    assert.ok(kept >= 100 && kept < 200, `${kept} rows were kept`);
    const evaluator = new CountingEvaluator();
    const resumed = await run(new LocalRunner({ journal: second }), evaluator);
    await second.close();
    assert.deepEqual(resumed, whole);
    assert.equal(evaluator.numAsked, 300 - kept);

    const third = await ScoreJournal.open(path);
    const again = new CountingEvaluator();
    assert.deepEqual(await run(new LocalRunner({ journal: third }), again), whole);
    assert.equal(again.numAsked, 30, "only what failed is tried again");
    const other = new CountingEvaluator("another judge");
    await run(new LocalRunner({ journal: third }), other);
    assert.equal(other.numAsked, 300, "another judge's scores are not this one's");
    await third.close();
  }));

test("a file that is no journal is refused and left as it is", () =>
  withFile(async (path) => {
    for (const [text, message] of [
      ["my notes\n", /is not a journal of scores/],
      ["no line end", /is not a journal of scores/],
      ['{"journal":"octavo-scores","version":1}\n{"key":"12"}\n', /line 2: not a row of a journal/],
      ["x".repeat(5 << 20), /is not a journal of scores/],
      ["x".repeat(65 << 20), /over 64 MiB/],
    ] as const) {
      await writeFile(path, text);
      await assert.rejects(ScoreJournal.open(path), refusal(message));
      assert.equal(await readFile(path, "utf8"), text);
    }
    await assert.rejects(ScoreJournal.open(join(path, "below")), refusal(/cannot be opened/));
  }));
