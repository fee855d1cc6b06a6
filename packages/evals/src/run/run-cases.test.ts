import assert from "node:assert/strict";
import { appendFile, mkdtemp, readFile, rm, truncate } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { OctavoError } from "@octavo/protocol";
import type { EvalCase } from "../cases/eval-case.js";
import type { Dataset } from "../datasets/dataset.js";
import type { Evaluator } from "../evaluators/evaluator.js";
import { LocalRunner } from "../runners/local-runner.js";
import { functionTarget } from "../targets/function-target.js";
import type { Target } from "../targets/target.js";
import { CaseJournal } from "./case-journal.js";
import type { CaseRow } from "./case-row.js";
import { type CaseRun, runCases } from "./run-cases.js";

function dataset(name: string, count: number): Dataset {
  return {
    name,
    size: count,
    async *cases() {
      for (let index = 0; index < count; index += 1) {
        const evalCase: EvalCase = {
          id: String(index),
          messages: [{ role: "user", content: `question ${index}` }],
          tools: [],
          context: undefined,
          expected: { outputs: [`answer ${index}`] },
          parameters: {},
          tenant: undefined,
          cluster: undefined,
          tags: [],
          metadata: {},
        };
        yield evalCase;
      }
    },
  };
}

interface Asked {
  readonly target: string;
  readonly caseId: string;
}

function targetNamed(
  name: string,
  asked: Asked[],
  failure?: (evalCase: EvalCase) => string | undefined,
): Target {
  return functionTarget(name, (evalCase) => {
    asked.push({ target: name, caseId: evalCase.id });
    const code = failure?.(evalCase);
    return {
      text: `answer ${evalCase.id}`,
      failure: code === undefined ? undefined : { code, httpStatus: undefined, message: `${code}!` },
    };
  });
}

const exact: Evaluator = {
  name: "exact",
  description: "",
  inputs: ["output"],
  output: "pass_fail",
  needsJudge: false,
  evaluate: ({ case: { expected }, answer, baseline }) => {
    const passed = expected.outputs?.[0] === answer.text;
    return {
      status: "scored",
      value: passed ? 1 : 0,
      passed,
      reason: baseline === undefined ? "alone" : "beside",
    };
  },
};

function caseRun(overrides: Partial<CaseRun>): CaseRun {
  return {
    datasets: [dataset("golden", 40)],
    targets: [],
    evaluators: [exact],
    runner: new LocalRunner(),
    concurrency: 2,
    signal: new AbortController().signal,
    ...overrides,
  };
}

async function collect(run: CaseRun): Promise<readonly CaseRow[]> {
  const rows: CaseRow[] = [];
  for await (const row of runCases(run)) rows.push(row);
  return rows;
}

test("every target answers every case, taking turns by blocks; rows keep the order and pair the answers", async () => {
  const asked: Asked[] = [];
  const rows = await collect(
    caseRun({ targets: [targetNamed("baseline", asked), targetNamed("candidate", asked)] }),
  );
  assert.deepEqual(
    rows.map(({ caseId }) => caseId),
    Array.from({ length: 40 }, (_, index) => String(index)),
  );
  const turns = asked.map(({ target }) => target).filter((target, index, all) => target !== all[index - 1]);
  assert.deepEqual(turns, ["baseline", "candidate", "baseline", "candidate"]);
  assert.deepEqual(
    asked.slice(16, 18).map(({ target }) => target),
    ["candidate", "candidate"],
  );
  for (const { caseId, answers, input, expected, block } of rows) {
    assert.equal(input, `question ${caseId}`);
    assert.equal(expected, `answer ${caseId}`);
    assert.equal(block, Math.floor(Number(caseId) / 16));
    assert.equal(answers["candidate"]?.answer.caseId, caseId);
    const score = answers["candidate"]?.scores["exact"];
    assert.ok(score?.status === "scored" && score.passed && score.reason === "beside");
  }
});

test("two datasets may have cases of the same name", async () => {
  const rows = await collect(
    caseRun({ datasets: [dataset("a", 3), dataset("b", 3)], targets: [targetNamed("candidate", [])] }),
  );
  assert.deepEqual(
    rows.map(({ dataset: name, caseId, answers }) => [
      name,
      caseId,
      Object.keys(answers["candidate"]?.scores ?? {}),
    ]),
    ["a", "b"].flatMap((name) => ["0", "1", "2"].map((id) => [name, id, ["exact"]])),
  );
});

test("a target that nobody reaches ends the run at once; one that fails now and then does not", async () => {
  const down = targetNamed("candidate", [], () => "connection");
  await assert.rejects(
    collect(caseRun({ targets: [down] })),
    (error) =>
      error instanceof OctavoError &&
      error.code === "target_unreachable" &&
      /candidate.*connection!/.test(error.message),
  );
  const flaky = targetNamed("candidate", [], ({ id }) => (id === "3" ? "connection" : undefined));
  let failed = 0;
  const rows = await collect(
    caseRun({ targets: [flaky], onProgress: (progress) => (failed = progress.failed) }),
  );
  assert.equal(failed, 1);
  assert.deepEqual(rows[3]?.answers["candidate"]?.scores, {}, "what did not come is not scored");
});

test("a run that was cut off goes on from its journal, and a torn line is asked again", async (context) => {
  const folder = await mkdtemp(join(tmpdir(), "octavo-journal-"));
  context.after(() => rm(folder, { recursive: true }));
  const path = join(folder, "run.jsonl");
  const question = { model: "octavo-mini", evaluators: ["exact"] };
  const stopping = new AbortController();
  const first: Asked[] = [];
  const journal = await CaseJournal.open(path, question);
  await assert.rejects(async () => {
    for await (const { caseId } of runCases(
      caseRun({ targets: [targetNamed("candidate", first)], journal, signal: stopping.signal }),
    ))
      if (caseId === "20") stopping.abort();
  });
  await journal.close();
  assert.equal(first.length, 32);
  await appendFile(path, '{"caseId":"32","dataset":"golden","ans');

  const again: Asked[] = [];
  const resumed = await CaseJournal.open(path, question);
  assert.equal(resumed.size, 32);
  let progress = { done: 0, resumed: 0 };
  const rows = await collect(
    caseRun({
      targets: [targetNamed("candidate", again)],
      journal: resumed,
      onProgress: (state) => (progress = state),
    }),
  );
  await resumed.close();
  assert.deepEqual(
    again.map(({ caseId }) => caseId),
    ["32", "33", "34", "35", "36", "37", "38", "39"],
  );
  assert.deepEqual(
    rows.map(({ caseId }) => caseId),
    Array.from({ length: 40 }, (_, index) => String(index)),
  );
  assert.deepEqual([progress.done, progress.resumed], [40, 32]);

  const bytes = (await readFile(path)).length;
  await truncate(path, bytes - 10);
  const torn = await CaseJournal.open(path, question);
  assert.equal(torn.size, 39);
  await torn.close();
});

test("a case that was edited is asked again, whatever its name", async (context) => {
  const folder = await mkdtemp(join(tmpdir(), "octavo-journal-"));
  context.after(() => rm(folder, { recursive: true }));
  const journal = await CaseJournal.open(join(folder, "run.jsonl"), 1);
  context.after(() => journal.close());
  const golden = dataset("golden", 20);
  const edited: Dataset = {
    ...golden,
    async *cases() {
      for await (const evalCase of golden.cases())
        yield evalCase.id === "7"
          ? { ...evalCase, messages: [{ role: "user", content: "another question" }] }
          : evalCase;
    },
  };
  const asked: Asked[] = [];
  const target = targetNamed("candidate", asked);
  await collect(caseRun({ datasets: [golden], targets: [target], journal }));
  asked.length = 0;
  const rows = await collect(caseRun({ datasets: [edited], targets: [target], journal }));
  assert.deepEqual(
    asked.map(({ caseId }) => caseId),
    ["7"],
  );
  assert.equal(rows.find(({ caseId }) => caseId === "7")?.input, "another question");
});

test("of an answer that never came only what leaves the case out has a score", async () => {
  const grounded: Evaluator = { ...exact, name: "grounded", inputs: ["output", "context"] };
  const tagged: Evaluator = { ...exact, name: "tagged", spec: { name: "exact", tags: ["greeting"] } };
  const rows = await collect(
    caseRun({
      targets: [targetNamed("candidate", [], ({ id }) => (id === "3" ? "timeout" : undefined))],
      evaluators: [exact, grounded, tagged],
    }),
  );
  const scores = rows[3]?.answers["candidate"]?.scores ?? {};
  assert.deepEqual(
    Object.entries(scores).map(([name, { status }]) => [name, status]),
    [
      ["grounded", "skipped"],
      ["tagged", "skipped"],
    ],
  );
});

test("failures are tried again on resuming", async (context) => {
  const folder = await mkdtemp(join(tmpdir(), "octavo-journal-"));
  context.after(() => rm(folder, { recursive: true }));
  const path = join(folder, "run.jsonl");
  const journal = await CaseJournal.open(path, 1);
  const flaky = targetNamed("candidate", [], ({ id }) => (id === "3" ? "timeout" : undefined));
  await collect(caseRun({ targets: [flaky], journal }));
  assert.equal(journal.size, 39);
  await journal.close();
});

test("a journal of another run, or another file, is never touched", async (context) => {
  const folder = await mkdtemp(join(tmpdir(), "octavo-journal-"));
  context.after(() => rm(folder, { recursive: true }));
  const path = join(folder, "run.jsonl");
  await (await CaseJournal.open(path, { model: "a" })).close();
  await assert.rejects(CaseJournal.open(path, { model: "b" }), /other targets, evaluators or parameters/);
  const other = join(folder, "notes.txt");
  await appendFile(other, "my notes\nand more");
  await assert.rejects(CaseJournal.open(other, 1), /not a journal of cases/);
  assert.equal(await readFile(other, "utf8"), "my notes\nand more");
  await assert.rejects(CaseJournal.open(join(folder, "none", "x"), 1), /cannot be opened/);
});
