import assert from "node:assert/strict";
import test, { describe } from "node:test";
import type { EvalCase } from "../../cases/eval-case.js";
import { sampleOf } from "../../evaluators/testing/sample.js";
import { functionTarget } from "../../targets/function-target.js";
import type { Target } from "../../targets/target.js";
import type { TestBed } from "../test-bed.js";
import type { Observation } from "../observation.js";
import { quantizationCheck } from "../quantization/check.js";
import { quantizationSettings } from "../quantization/settings.js";
import { checkNamed } from "../table.js";
import { observation } from "../testing/observation.js";
import { bedOf as bedAround } from "../testing/test-bed.js";
import { collectQuantization } from "../quantization/collect.js";
import { collectUntilDecided } from "./until-decided.js";

function casesOf(
  count: number,
  more: (index: number) => Partial<EvalCase> = () => ({}),
): readonly EvalCase[] {
  return Array.from({ length: count }, (_, index) => ({
    ...sampleOf({ case: { id: `case-${index}` } }).case,
    expected: { outputs: ["right"] },
    ...more(index),
  }));
}

function bedOf({
  candidate = functionTarget("candidate", () => "right"),
  ...parts
}: Partial<TestBed>): TestBed {
  const baseline = functionTarget("baseline", () => "right");
  return bedAround(candidate, { baseline, cases: casesOf(1000), ...parts });
}

/** Wrong on every `nth` case, whatever the order. */
function losing(nth: number, asked: string[] = []): Target {
  return functionTarget("candidate", ({ id }) => {
    asked.push(id);
    return Number(id.slice("case-".length)) % nth === 0 ? "wrong" : "right";
  });
}

describe("looking as cases are answered", () => {
  test("what is broken is found after a part of the cases in every run, and the others are not sent", async () => {
    const settings = quantizationSettings.parse({ sequential: true });
    let found = 0;
    for (let seed = 0; seed < 20; seed++) {
      const asked: string[] = [];
      const done: [number, number | undefined][] = [];
      const bed = bedOf({
        candidate: losing(5, asked),
        seed,
        onProgress: (progress) => void done.push([progress.done, progress.total]),
      });
      const judge = (seen: readonly Observation[]) => quantizationCheck.judge(seen, settings);
      const { observations, notes } = await collectUntilDecided(
        bed,
        { every: 25, axisTags: [] },
        (part) => collectQuantization(part, settings),
        (seen) => judge(seen).verdict,
      );
      assert.deepEqual(done.at(-1), [2 * asked.length, 2000]);
      assert.equal(observations.length, 2 * asked.length);
      if (judge(observations).verdict === "fail" && asked.length < 300) found++;
      assert.deepEqual(notes, [
        `Looked at ${asked.length / 25} times as cases were answered, decided after ${asked.length} of 1000 cases: the others were not sent.`,
      ]);
    }
    assert(found >= 19, String(found));
  });

  test("a variant without loss passes before the end, and with all cases sent where they do not suffice", async () => {
    const passed = await checkNamed("quantization").run(bedOf({}), { sequential: true });
    assert.equal(passed.result.verdict, "pass");
    assert.equal(passed.result.sampleSize.have, 300);
    const few = await checkNamed("quantization").run(bedOf({ cases: casesOf(70) }), { sequential: true });
    assert.equal(few.result.verdict, "inconclusive");
    assert(few.result.notes.includes("Looked at 2 times as cases were answered, all 70 cases were sent."));
    assert(few.result.sampleSize.needed! > 200);
  });

  test("a replica that is wrong is found so too", async () => {
    const replicas = [functionTarget("a", () => "right"), losing(4), functionTarget("c", () => "right")];
    const { result, observations } = await checkNamed("replica-skew").run(bedOf({ replicas }), {
      sequential: true,
    });
    assert.equal(result.verdict, "fail");
    assert.match(result.summary, /candidate: exact below the others/);
    assert(observations.length < 3 * 300, String(observations.length));
  });

  test("the order is drawn from the seed, clusters stay whole, and of every kind some were sent", async () => {
    const cases = casesOf(200, (index) => ({
      cluster: `document-${Math.floor(index / 4)}`,
      tags: index === 150 ? ["json"] : ["chat"],
    }));
    const runOf = async (seed: number): Promise<readonly string[]> => {
      const sent: string[] = [];
      await collectUntilDecided(
        bedOf({ cases, seed }),
        { every: 10, axisTags: ["json", "chat"] },
        ({ cases: part }) => {
          assert(part.length === 12 || sent.length + part.length === 200, String(part.length));
          sent.push(...part.map(({ id }) => id));
          return Promise.resolve(part.map(({ id }) => observation({ caseId: id })));
        },
        () => "fail",
      );
      return sent;
    };
    const [one, again, other] = [await runOf(1), await runOf(1), await runOf(2)];
    assert.deepEqual(one, again);
    assert.notDeepEqual(one, other);
    // the one case of its axis was waited for, though all that was seen had failed
    for (const sent of [one, other]) assert(sent.slice(-12).includes("case-150"), sent.join());
  });

  test("cases between looks are a whole number", () => {
    assert.throws(
      () => checkNamed("quantization").checkSettings({ sequential: true, look_every: 0 }),
      /quantization\.look_every/,
    );
    assert.throws(() => checkNamed("tail").checkSettings({ sequential: true }), { code: "invalid_option" });
  });
});
