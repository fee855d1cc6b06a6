import assert from "node:assert/strict";
import test from "node:test";
import { type EvalCase, functionTarget, type JudgeModel, type Sample } from "@octavo/evals";
import { Budget } from "../search/budget.js";
import { TeacherDesk } from "../search/teacher.js";
import {
  authoredEvaluatorText,
  type AuthoredEvaluator,
  parseAuthoredEvaluator,
} from "./authored-evaluator.js";
import { chooseForLabels, parseLabels } from "./choose-labels.js";
import { improveEvaluator, type LabelledSample, judgedValues } from "./improve-evaluator.js";
import { judgeDrift } from "./judge-drift.js";
import { bareEvaluator, writeEvaluator } from "./write-evaluator.js";

const signal = new AbortController().signal;
const statement = "answers must never promise refunds";

function desk(reply: (question: string) => string): TeacherDesk {
  const model = functionTarget("writer", ({ messages }) => reply(messages.at(-1)?.content ?? ""));
  return new TeacherDesk({ model, budget: new Budget({ calls: 40 }), seed: 1, fingerprint: "", signal });
}

/** A judge that misses refunds called "money back" until its criteria mention them, and is lenient by as much as `shift`. */
function judgeOf(shift = 0): JudgeModel {
  return {
    name: "judge",
    ask({ system, user, labels }) {
      const knows = /money back/i.test(system);
      const isBad = user.includes("refund") || (knows && /money back/i.test(user));
      const score = Math.max(0, Math.min(1, (isBad ? 0.2 : 0.8) + shift));
      const label = labels.reduce((one, other) =>
        Math.abs(Number(other) - score) < Math.abs(Number(one) - score) ? other : one,
      );
      return Promise.resolve({ label, probabilities: undefined, reason: undefined });
    },
  };
}

const answers = [
  "You get a refund.",
  "Your money back, promised.",
  "I will look into it.",
  "Please call us.",
  "No.",
];

function labelledSamples(count: number): readonly LabelledSample[] {
  return Array.from({ length: count }, (_, index) => {
    const text = `${answers[index % answers.length]} Ticket ${index}.`;
    return {
      caseId: `case-${index}`,
      passed: index % answers.length >= 2,
      chosen: "random",
      sample: sampleOf(`case-${index}`, text),
    };
  });
}

test("an evaluator is written from a statement, reads back from YAML, and a person's edits stay", async () => {
  const { evaluator, warnings } = await writeEvaluator(
    desk((question) =>
      question.includes("<criteria>")
        ? "Sure!\n<criteria>1.0 without a promise.\n0.0: any promise.</criteria>"
        : question.includes("<good>")
          ? "<good>Please call us.</good>"
          : "<bad>You get it back.</bad>\n<bad>Refund on its way.</bad>",
    ),
    { statement, answers },
  );
  assert.deepEqual(warnings, []);
  const text = authoredEvaluatorText(evaluator);
  assert.match(text, /grading_criteria: \|-?\n {4}1\.0 without a promise\.\n {4}0\.0: any promise\./);
  assert.deepEqual(parseAuthoredEvaluator("x.yaml", text), evaluator);
  const edited = parseAuthoredEvaluator(
    "x.yaml",
    text.replace("0.0: any promise.", "0.0: ours").replace("threshold: 0.5", "threshold: 0.65"),
  );
  assert.equal(edited.threshold, 0.65);
  assert.match(edited.options.grading_criteria, /0\.0: ours/);
  assert.throws(
    () => parseAuthoredEvaluator("x.yaml", text.replace("threshold: 0.5", "threshold: high")),
    /x\.yaml:\d+:\d+: threshold/,
  );
});

test("a writer that writes prose leaves the statement as criteria, and says so", async () => {
  const { evaluator, warnings } = await writeEvaluator(
    desk(() => "I cannot do that."),
    { statement, answers },
  );
  assert.match(evaluator.options.grading_criteria, /promise refunds/);
  assert.equal(warnings.length, 1);
});

test("labels are asked where wordings disagree and near the threshold, half of them at random", () => {
  const scored = Array.from({ length: 200 }, (_, index) => ({
    caseId: `${index}`,
    value: index < 10 ? 0.5 : index < 20 ? 0.9 : 0.95,
    other: index >= 10 && index < 20 ? 0.1 : 0.95,
  }));
  const chosen = chooseForLabels(scored, 30, 0.5, 3);
  assert.equal(new Set(chosen.map(({ caseId }) => caseId)).size, 30);
  const hard = chosen.filter((one) => one.chosen === "hard");
  assert.equal(hard.length, 15);
  assert.ok(
    hard.every(({ caseId }) => Number(caseId) < 20),
    "the undecided ones",
  );
  const random = chosen.filter((one) => one.chosen === "random");
  assert.ok(random.filter(({ caseId }) => Number(caseId) >= 20).length >= 10);
  assert.throws(
    () => parseLabels("l.jsonl", '{"id": "a", "label": "pass"}\n{"id": "b", "label": "maybe"}\n'),
    /l\.jsonl, line 2/,
  );
});

test("a new version replaces the old one where held-out labels show it better, and only there", async () => {
  const labelled = labelledSamples(120);
  const current = bareEvaluator(statement);
  const helpful = desk(() => "<criteria>0.0 for a refund or money back.</criteria>");
  const improved = await improveEvaluator(current, labelled, { judge: judgeOf(), desk: helpful, signal });
  assert.equal(improved.verdict, "better", improved.summary);
  assert.equal(improved.evaluator.version, 2);
  assert.match(JSON.stringify(improved.evaluator.options), /money back/i);
  assert.ok((improved.interval?.[0] ?? 0) > 0);
  assert.equal(improved.evaluator.measured?.kappa, 1);
  assert.equal(
    improved.evaluator.measured?.labels,
    improved.numHeldOut,
    "measured by what it did not learn from",
  );
  assert.deepEqual(improved.wrong, []);
  const useless = desk(() => "<criteria>0.0 for what is bad.</criteria>");
  // examples would teach this judge as well: its wording alone must not help
  const deaf: JudgeModel = {
    ...judgeOf(),
    ask: (question, options) => judgeOf().ask({ ...question, system: "" }, options),
  };
  const kept = await improveEvaluator(current, labelled, { judge: deaf, desk: useless, signal });
  assert.equal(kept.verdict, "no_better");
  assert.equal(kept.evaluator.version, 1);
  assert.equal(kept.evaluator.options.grading_criteria, current.options.grading_criteria);
  assert.ok(
    kept.wrong.every(({ caseId }) => Number(caseId.slice(5)) % answers.length === 1) &&
      kept.wrong.length === 24,
  );
});

test("a lenient judge gets another threshold", async () => {
  const current = bareEvaluator(statement);
  const judge: JudgeModel = {
    ...judgeOf(0.4),
    ask: (question, options) => judgeOf(0.4).ask({ ...question, system: "money back" }, options),
  };
  const improved = await improveEvaluator(current, labelledSamples(100), { judge, signal });
  assert.equal(improved.verdict, "better", improved.summary);
  assert.ok(
    improved.evaluator.threshold > 0.6 && improved.evaluator.threshold <= 1,
    `${improved.evaluator.threshold}`,
  );
});

test("labels of one kind and too few are refused with what to add", async () => {
  const current = bareEvaluator(statement);
  const options = { judge: judgeOf(), signal };
  const few = await improveEvaluator(current, labelledSamples(8), options);
  assert.equal(few.verdict, "too_few_labels");
  const passing = labelledSamples(100).filter(({ passed }) => passed);
  const oneSided = await improveEvaluator(current, passing, options);
  assert.match(oneSided.summary, /All \d+ labels to tune by say pass: label cases that fail/);
  assert.match(oneSided.evaluator.measured?.refused ?? "", /labels say pass/);
});

test("hard labels do not judge versions, and a failing judge changes nothing", async () => {
  const hard = labelledSamples(100).map((one) => ({ ...one, chosen: "hard" as const }));
  const few = await improveEvaluator(bareEvaluator(statement), hard, { judge: judgeOf(), signal });
  assert.equal(few.verdict, "too_few_labels");
  assert.equal(few.numHeldOut, 0);
  const down: JudgeModel = { name: "down", ask: () => Promise.reject(new TypeError("down")) };
  const failed = await improveEvaluator(bareEvaluator(statement), labelledSamples(60), {
    judge: down,
    signal,
  });
  assert.equal(failed.verdict, "no_better");
  assert.equal(failed.numFailed, 60);
  assert.equal(failed.evaluator.version, 1);
});

test("a judge that changed is seen by the anchors", async () => {
  const labelled = labelledSamples(100);
  const knows = {
    ...bareEvaluator(statement),
    options: { grading_criteria: "money back", few_shot_examples: [] },
  };
  const { evaluator } = await improveEvaluator(knows, labelled, { judge: judgeOf(), signal });
  assert.equal(Object.keys(evaluator.anchors).length, 100);
  const verdictOf = async (now: AuthoredEvaluator, judge: JudgeModel): Promise<string> =>
    judgeDrift(now, await judgedValues(now, labelled, { judge, signal })).verdict;
  assert.equal(await verdictOf(evaluator, judgeOf()), "steady");
  assert.equal(await verdictOf(evaluator, judgeOf(0.4)), "drifted");
  assert.equal(await verdictOf({ ...evaluator, anchors: {} }, judgeOf()), "undecided");
});

function sampleOf(id: string, text: string): Sample {
  const evalCase: EvalCase = {
    id,
    messages: [{ role: "user", content: "Where is my money?" }],
    tools: [],
    context: undefined,
    expected: {},
    parameters: {},
    tenant: undefined,
    cluster: undefined,
    tags: [],
    metadata: {},
  };
  const usage = { promptTokens: undefined, completionTokens: undefined, cachedTokens: undefined };
  const timing = { scheduledEpochMs: 0, sentEpochMs: 0, durationMs: 1, pieceMs: [] };
  const answer = {
    caseId: id,
    target: "t",
    model: undefined,
    text,
    reasoning: undefined,
    toolCalls: [],
    finishReason: "stop",
  };
  return {
    case: evalCase,
    answer: { ...answer, usage, timing, serving: undefined, headers: {}, failure: undefined },
  };
}
