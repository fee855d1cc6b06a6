import assert from "node:assert/strict";
import test from "node:test";
import { type EvalCase, evaluatorTable, functionTarget } from "@octavo/evals";
import { Random } from "@octavo/statistics";
import { optimizePrompts, type OptimizeOptions } from "../search/optimize.js";
import { rulesTask } from "../testing/rules-task.js";
import { paretoFront, sampleFront } from "./pareto.js";
import { proposeSet, type Trial } from "./tpe.js";

test("the front keeps who leads somewhere and drops who leads nowhere alone", () => {
  const fronts = paretoFront([
    [1, 0, 0],
    [0, 1, 0],
    // leads the third case with the fourth, which leads the second too
    [0, 0, 1],
    [0, 1, 1],
  ]);
  assert.deepEqual(
    fronts.map((front) => [...front]),
    [[0], [3], [3]],
  );
  const random = new Random(1);
  const drawn = Array.from({ length: 3000 }, () => sampleFront(fronts, random));
  const share = drawn.filter((index) => index === 3).length / drawn.length;
  assert.ok(Math.abs(share - 2 / 3) < 0.04, `who leads two of three cases is drawn in ${share}`);
});

test("a Parzen estimator finds a good set in fewer trials than chance", () => {
  const space = { numItems: 16, minSize: 2, maxSize: 6 };
  const good = new Set([3, 7, 11, 14]);
  const scoreOf = (items: readonly number[]): number =>
    items.filter((item) => good.has(item)).length - 0.5 * items.filter((item) => !good.has(item)).length;
  const bestOf = (seed: number, startup: number): number => {
    const random = new Random(seed);
    const trials: Trial[] = [];
    for (let trial = 0; trial < 60; trial += 1) {
      const items = proposeSet(trials, space, { gamma: 0.25, draws: 24, startup }, random);
      assert.equal(new Set(items).size, items.length);
      assert.ok(items.length >= 2 && items.length <= 6);
      trials.push({ items, score: scoreOf(items) });
    }
    return Math.max(...trials.map(({ score }) => score));
  };
  const seeds = Array.from({ length: 20 }, (_, index) => index + 1);
  const mean = (startup: number): number =>
    seeds.reduce((sum, seed) => sum + bestOf(seed, startup), 0) / seeds.length;
  const [parzen, chance] = [mean(8), mean(1000)];
  assert.ok(parzen > 3.5 && parzen > chance + 0.75, `${parzen} against ${chance}`);
});

/** The target answers right where an example of the case's kind stands in the prompt. */
function examplesTask(): Omit<OptimizeOptions, "optimizer" | "budget"> {
  const task = rulesTask({ seed: 4, numKinds: 4, sizes: { train: 40, validation: 24, heldOut: 60 } });
  const target = functionTarget("artifact", ({ messages, metadata }) => {
    const shown = messages.filter(({ role }) => role === "assistant").map(({ content }) => content ?? "");
    const kind = String(metadata["kind"]);
    return shown.some((text) => text.endsWith(`answer ${kind}`)) ? `answer ${kind}` : "no idea";
  });
  return { ...task, target, teacher: { model: task.teacher } };
}

test("bayesian search finds examples of every kind, without a teacher", async () => {
  const { teacher: _, ...task } = examplesTask();
  const result = await optimizePrompts({
    ...task,
    optimizer: { name: "bayesian", options: { trials: 40, min_examples: 2, max_examples: 5 } },
    budget: { calls: 2000 },
  });
  assert.equal(result.verdict, "better");
  assert.ok((result.validation.winner ?? 0) === 1, `${result.validation.winner}`);
  assert.equal(result.teacher.replies, 0);
  const ids = new Set(task.cases.train.map(({ id }) => id));
  assert.ok(
    result.winner.shots.every(({ caseId }) => ids.has(caseId ?? "")),
    "examples are training cases",
  );
});

test("promptwizard takes examples where the target fails, and gives them reasoning", async () => {
  const task = examplesTask();
  const asked: string[] = [];
  const teacher = functionTarget("teacher", ({ messages }) => {
    const question = messages.at(-1)?.content ?? "";
    asked.push(question);
    if (question.includes("<reasoning>")) return "<reasoning>The kind says it.</reasoning>";
    if (question.includes("<critique>")) return "<critique>Kinds are missing.</critique>";
    if (question.includes("<example>")) return "Input without an output";
    return `<text>Answer the question. ${asked.length}</text>`;
  });
  const result = await optimizePrompts({
    ...task,
    teacher: { model: teacher },
    optimizer: { name: "promptwizard", options: { examples: 8, iterations: 1, refinements: 1 } },
    budget: { calls: 4000 },
  });
  const origins = result.candidates.map(({ origin }) => origin);
  for (const origin of ["examples", "reasoning"]) assert.ok(origins.includes(origin), origin);
  assert.equal(result.verdict, "better");
  assert.ok(asked.some((question) => question.includes("Criticise the text")));
  assert.ok(asked.some((question) => question.includes("Criticise these examples")));
  assert.ok(result.winner.shots.length > 0);
});

test("meta_prompt shows what was tried before, best last", async () => {
  const task = rulesTask({ seed: 2, sizes: { train: 30, validation: 20, heldOut: 40 } });
  const asked: string[] = [];
  const teacher = functionTarget("teacher", (evalCase, options) => {
    asked.push(evalCase.messages.at(-1)?.content ?? "");
    return task.teacher.answer(evalCase, options);
  });
  await optimizePrompts({
    ...task,
    teacher: { model: teacher },
    optimizer: { name: "meta_prompt", options: { rounds: 6, batch: 20 } },
    budget: { calls: 900 },
  });
  const scores = [...(asked.at(-1) ?? "").matchAll(/^Scored ([\d.]+)\./gm)].map(([, text]) => Number(text));
  assert.ok(scores.length >= 3);
  assert.deepEqual(
    scores,
    scores.toSorted((a, b) => a - b),
  );
  assert.match(asked.at(-1) ?? "", /hypothesis/);
});

test("protegi spends its selection on candidates that look good", async () => {
  const task = rulesTask({
    seed: 6,
    numKinds: 3,
    numUseless: 9,
    sizes: { train: 60, validation: 20, heldOut: 40 },
  });
  const met = new Map<string, Set<string>>();
  const target = functionTarget("artifact", (evalCase, options) => {
    const prompt = evalCase.messages.find(({ role }) => role === "system")?.content ?? "";
    if (task.cases.train.some(({ id }) => id === evalCase.id))
      met.set(prompt, (met.get(prompt) ?? new Set()).add(evalCase.id));
    return task.target.answer(evalCase, options);
  });
  await optimizePrompts({
    ...task,
    target,
    teacher: { model: task.teacher },
    optimizer: {
      name: "protegi",
      options: {
        rounds: 1,
        minibatch: 20,
        beam: 2,
        selection: { rounds: 16, pulls: 3, batch: 4, exploration: 0.3 },
      },
    },
    budget: { calls: 900 },
  });
  const tried = [...met].map(([prompt, cases]) => ({
    score: task.expectedScore({ texts: { prompt }, shots: [] }),
    count: cases.size,
  }));
  const meanCount = (rows: typeof tried): number =>
    rows.reduce((sum, { count }) => sum + count, 0) / rows.length;
  const good = tried.filter(({ score }) => score > 0.3);
  const bad = tried.filter(({ score }) => score <= 0.3);
  assert.ok(good.length > 0 && bad.length > 0);
  assert.ok(meanCount(good) > 1.5 * meanCount(bad), `${meanCount(good)} cases against ${meanCount(bad)}`);
});

/**
 * A landscape whose optimum is reached by a merge alone: the teacher mends a text only where the other is as it was, and a mended text
 * loses the cases that need both to be alike. The seed has those, each child one of the other kinds, and the optimum all.
 */
function crossedTask(): Omit<OptimizeOptions, "optimizer" | "budget"> {
  const evalCase = (index: number): EvalCase => ({
    id: `crossed-${index}`,
    messages: [{ role: "user", content: `Question ${index}` }],
    tools: [
      { type: "function", function: { name: "look", description: "plain", parameters: { type: "object" } } },
    ],
    context: undefined,
    expected: { outputs: ["right"] },
    parameters: {},
    tenant: undefined,
    cluster: undefined,
    tags: [],
    metadata: { kind: index % 5 },
  });
  const target = functionTarget("artifact", ({ messages, tools, metadata }) => {
    const isMended = (text = ""): boolean => text.includes("mended");
    const prompt = isMended(messages.find(({ role }) => role === "system")?.content ?? "");
    const tool = isMended(tools[0]?.function.description);
    const kind = Number(metadata["kind"]);
    const isRight = kind < 2 ? prompt : kind < 4 ? tool : prompt === tool;
    return isRight ? "right" : `wrong ${Number(prompt)}${Number(tool)}`;
  });
  let written = 0;
  const teacher = functionTarget("teacher", ({ messages }) => {
    const question = messages.at(-1)?.content ?? "";
    const isUntouched = question.includes("wrong 00");
    written += 1;
    return `<text>${isUntouched ? "mended" : "worse"} ${written}</text>`;
  });
  const casesFrom = (first: number, count: number): readonly EvalCase[] =>
    Array.from({ length: count }, (_, index) => evalCase(first + index));
  return {
    target,
    teacher: { model: teacher },
    evaluators: evaluatorTable.create(["exact_match"]),
    cases: { train: casesFrom(0, 40), validation: casesFrom(40, 20), heldOut: casesFrom(60, 40) },
    parts: [
      { id: "prompt", text: "plain" },
      { id: "tool:look", text: "plain" },
    ],
    seed: { texts: { prompt: "plain", "tool:look": "plain" }, shots: [] },
  };
}

test("gepa's merge takes from each lineage what it changed, and reaches an optimum that reflection does not", async () => {
  for (const seed of [1, 2, 3, 4, 5]) {
    const run = (merge: boolean) =>
      optimizePrompts({
        ...crossedTask(),
        optimizer: { name: "gepa", options: { merge, minibatch: 5, rounds: 60 } },
        budget: { calls: 2000 },
        randomSeed: seed,
      });
    const [merged, reflected] = [await run(true), await run(false)];
    assert.ok(
      Object.values(merged.winner.texts).every((text) => text.startsWith("mended")),
      JSON.stringify(merged.winner.texts),
    );
    assert.equal(merged.heldOut?.winner, 1);
    const joined = merged.candidates.filter(({ origin }) => origin === "merged");
    assert.ok(joined.length > 0 && joined.every(({ score }) => score === 1), "what each lineage had");
    const others = merged.candidates.filter(({ origin }) => origin !== "merged");
    assert.ok(Math.max(...others.map(({ score }) => score)) <= 0.4);
    assert.ok(
      reflected.candidates.every(({ score }) => score <= 0.4),
      `seed ${seed}: without merging`,
    );
  }
});
