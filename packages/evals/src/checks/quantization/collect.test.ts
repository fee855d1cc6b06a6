import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { describe } from "node:test";
import { OctavoError } from "@octavo/protocol";
import type { Evaluator } from "../../evaluators/evaluator.js";
import { functionTarget } from "../../targets/function-target.js";
import { openAiTarget } from "../../targets/openai-target.js";
import { chatCompletion, replyJson, startFakeOpenAi } from "../../testing/fake-openai-server.js";
import { checkNamed } from "../table.js";
import { bedOf, testCases, exact, rightFor, type Sent, watched } from "../testing/test-bed.js";
import { ObservationJournal } from "../collecting/observation-journal.js";

describe("collecting for quantization", () => {
  test("both variants answer every case, greedily, in alternating order", async () => {
    const sent: Sent[] = [];
    const bed = bedOf(
      watched("candidate", sent, (one) => (one.id === "case-3" ? "wrong" : rightFor(one))),
      { baseline: watched("baseline", sent, rightFor) },
    );
    const { observations, result } = await checkNamed("quantization").run(bed, { concurrency: 1 });
    assert.deepEqual(
      sent.slice(0, 4).map(({ id, target }) => `${id} ${target}`),
      ["case-0 baseline", "case-0 candidate", "case-1 candidate", "case-1 baseline"],
    );
    assert(sent.every(({ body }) => body["temperature"] === 0));
    assert.equal(observations.length, 12);
    assert.deepEqual(
      result.movedCases.map(({ caseId, before, after }) => [caseId, before, after]),
      [["case-3", "right 3", "wrong"]],
    );
  });

  test("a failed answer has no scores and is tried again from the journal, the others are not", async () => {
    const folder = await mkdtemp(join(tmpdir(), "octavo-journal-"));
    try {
      const path = join(folder, "run.jsonl");
      let isDown = true;
      const sent: Sent[] = [];
      const candidate = watched("candidate", sent, (one) => {
        const failure = { code: "timeout", httpStatus: undefined, message: "late" };
        return one.id === "case-2" && isDown ? { failure } : rightFor(one);
      });
      const parts = { baseline: functionTarget("baseline", rightFor) };
      const runWith = async () => {
        await using journal = await ObservationJournal.open(path);
        return await checkNamed("quantization").run(bedOf(candidate, { ...parts, journal }), {});
      };
      const first = await runWith();
      assert.equal(first.observations.filter(({ failureCode }) => failureCode === "timeout").length, 1);
      assert.equal(sent.length, 6);
      // a line torn by a crash is not there
      await writeFile(path, `${await readFile(path, "utf8")}{"key":"0123`);
      isDown = false;
      const second = await runWith();
      assert.deepEqual(
        sent.slice(6).map(({ id }) => id),
        ["case-2"],
      );
      assert.equal(second.result.hypotheses[0]?.estimate, 0);
      assert.equal(second.result.sampleSize.have, 6);
      // another question is another plan
      await using journal = await ObservationJournal.open(path);
      await checkNamed("quantization").run(bedOf(candidate, { ...parts, journal, seed: 8 }), {});
      assert.equal(sent.length, 13);
      // and another server is another context
      await using elsewhere = await ObservationJournal.open(path, ["http://elsewhere/v1"]);
      await checkNamed("quantization").run(bedOf(candidate, { ...parts, journal: elsewhere }), {});
      assert.equal(sent.length, 19);
      await writeFile(path, "something else\n");
      await assert.rejects(ObservationJournal.open(path), { code: "invalid_option" });
      await assert.rejects(ObservationJournal.open(folder), { code: "invalid_option" });
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  test("a score that failed is asked for again, and an evaluator that throws does not end the check", async () => {
    const folder = await mkdtemp(join(tmpdir(), "octavo-journal-"));
    try {
      let isDown = true;
      const moody: Evaluator = {
        ...exact,
        evaluate: (sample) => {
          if (isDown && sample.case.id === "case-2")
            throw new OctavoError("judge_failed", "the judge is down");
          return exact.evaluate(sample, { signal: new AbortController().signal });
        },
      };
      const sent: Sent[] = [];
      const baseline = functionTarget("baseline", rightFor);
      const runWith = async () => {
        await using journal = await ObservationJournal.open(join(folder, "run.jsonl"));
        const bed = bedOf(watched("candidate", sent, rightFor), { baseline, journal, evaluators: [moody] });
        return await checkNamed("quantization").run(bed, {});
      };
      const first = await runWith();
      assert.deepEqual(
        first.observations.filter(({ caseId }) => caseId === "case-2").map((one) => one.failedScores),
        [["exact"], ["exact"]],
      );
      assert.equal(first.result.brokenEvaluators?.length, 2);
      isDown = false;
      const second = await runWith();
      assert.deepEqual(
        sent.slice(6).map(({ id }) => id),
        ["case-2"],
      );
      assert.equal(second.result.brokenEvaluators, undefined);
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  test("a reference that no server can score token by token is left out", async () => {
    await using server = await startFakeOpenAi({
      "/v1/chat/completions": (_, response) => replyJson(response, 200, chatCompletion("right 0")),
    });
    const candidate = openAiTarget({ name: "candidate", baseUrl: server.baseUrl, model: "fake" });
    const bed = bedOf(candidate, { baseline: functionTarget("b", rightFor), cases: testCases(1) });
    const { observations } = await checkNamed("quantization").run(bed, { forced: true });
    assert(server.requests.length > 1);
    assert(observations.every(({ forced, scores }) => forced === undefined && scores["exact"] === 1));
  });

  test("a bed without a baseline is refused, an abort ends the run", async () => {
    const row = checkNamed("quantization");
    await assert.rejects(row.run(bedOf(functionTarget("c", rightFor)), {}), { code: "invalid_option" });
    const control = new AbortController();
    const candidate = functionTarget("c", (one) => {
      control.abort(new Error("enough"));
      return rightFor(one);
    });
    const bed = bedOf(candidate, { baseline: functionTarget("b", rightFor), signal: control.signal });
    await assert.rejects(row.run(bed, {}), /enough/);
  });
});
