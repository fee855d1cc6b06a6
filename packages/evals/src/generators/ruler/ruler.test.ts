import assert from "node:assert/strict";
import test from "node:test";
import * as fc from "fast-check";
import type { EvalCase } from "../../cases/eval-case.js";
import { collected } from "../../datasets/testing/sources.js";
import { evaluatorTable } from "../../evaluators/table.js";
import { sampleOf } from "../../evaluators/testing/sample.js";
import { fitLength } from "./fit-length.js";
import { type RulerOptions, rulerDataset } from "./ruler.js";
import { type RulerTaskName, rulerTaskNames } from "./ruler-task.js";

/** About as many tokens as a byte-pair tokenizer makes: pieces of up to four letters, digits one by one. */
const countTokens = (text: string): number => text.match(/[A-Za-z]{1,4}|\d|[^A-Za-z\d\s]/g)?.length ?? 0;

const text = Array.from(
  { length: 40 },
  (_, index) => `Sentence ${index} says that boats are built of wood.`,
).join(" ");
const questions = Array.from({ length: 60 }, (_, index) => ({
  question: `Who built boat ${index}?`,
  answers: [`Builder ${index}`, `Mx ${index}`],
  documents: [`Boat ${index} was built in its year by Builder ${index}, of whom little else is known.`],
}));

const read = (options: Partial<RulerOptions>): Promise<EvalCase[]> =>
  collected(
    rulerDataset({ lengthsTokens: [2048], count: 2, seed: 1, countTokens, text, questions, ...options }),
  );
const only = async (task: RulerTaskName, lengthTokens = 2048): Promise<EvalCase> => {
  const [evalCase] = await read({ tasks: [task], count: 1, lengthsTokens: [lengthTokens] });
  assert.ok(evalCase);
  return evalCase;
};
const promptOf = (evalCase: EvalCase): string => evalCase.messages[0]?.content ?? "";
const referencesOf = (evalCase: EvalCase): string[] => evalCase.metadata["references"] as string[];
const timesIn = (haystack: string, needle: string): number => haystack.split(needle).length - 1;

test("every task fits every length, filled but for less than one more piece of haystack", async () => {
  for (const evalCase of await read({ lengthsTokens: [2048, 8192], count: 2 })) {
    const [, task = "", length = ""] = evalCase.tags;
    const budget = Number(length.slice("length:".length)) - (evalCase.parameters.maxTokens ?? 0);
    const used = countTokens(promptOf(evalCase));
    assert.equal(used, evalCase.metadata["promptTokens"]);
    assert.ok(used <= budget, `${evalCase.id} has ${used} of ${budget}`);
    // sixty documents are all there are
    if (!task.startsWith("qa")) assert.ok(used > budget - 80, `${evalCase.id} has only ${used} of ${budget}`);
  }
});

test("the same seed gives the same cases, another seed others, whatever else is asked for", async () => {
  const first = await read({ count: 2 });
  assert.equal(first.length, 26);
  assert.equal(new Set(first.map(({ id }) => id)).size, 26);
  assert.deepEqual(await read({ count: 2 }), first);
  const alone = await read({ tasks: ["fwe"], count: 1 });
  assert.deepEqual(
    alone[0],
    first.find(({ id }) => id === alone[0]?.id),
  );
  const other = await read({ count: 2, seed: 2 });
  assert.ok(other.every((evalCase, index) => promptOf(evalCase) !== promptOf(first[index] as EvalCase)));
});

test("needles stand in the haystack once, under the key that is asked for", async () => {
  const expectations: readonly [
    task: RulerTaskName,
    numReferences: number,
    numNeedles: number | undefined,
  ][] = [
    ["niah_single_1", 1, 1],
    ["niah_single_2", 1, 1],
    ["niah_single_3", 1, 1],
    ["niah_multikey_1", 1, 4],
    ["niah_multikey_2", 1, undefined],
    ["niah_multikey_3", 1, undefined],
    ["niah_multivalue", 4, 4],
    ["niah_multiquery", 4, 4],
  ];
  for (const [task, numReferences, numNeedles] of expectations) {
    const evalCase = await only(task);
    const prompt = promptOf(evalCase);
    const references = referencesOf(evalCase);
    assert.equal(references.length, numReferences, task);
    const needles = [...prompt.matchAll(/One of the special magic \w+ for (\S+) is: (\S+)\./g)];
    if (numNeedles === undefined) assert.ok(needles.length > 20, task);
    else assert.equal(needles.length, numNeedles, task);
    const question = prompt.slice(prompt.lastIndexOf("According to the text"));
    for (const reference of references) {
      const [needle, ...others] = needles.filter((match) => match[2] === reference);
      assert.equal(others.length, 0);
      assert.ok(needle?.[1] !== undefined && question.includes(needle[1]), `${task}: ${question}`);
    }
    assert.equal(timesIn(prompt, "The grass is green.") > 0, task === "niah_single_1");
    assert.equal(
      timesIn(prompt, "boats are built") > 0,
      /single_[23]|multikey_1|multivalue|multiquery/.test(task),
    );
  }
});

test("vt: the named variables are those that get the value through the chain", async () => {
  const evalCase = await only("vt");
  const asked = promptOf(evalCase).split("Follow the chain").at(-1) ?? "";
  const value = /have the value (\d+)\?/.exec(asked)?.[1];
  const values = new Map<string, string>();
  for (const [, name = "", number, from] of asked.matchAll(/VAR (\w+) = (?:(\d+)|VAR (\w+))/g)) {
    values.set(name, number ?? values.get(from ?? "") ?? "unassigned");
  }
  const names = [...values].filter(([, assigned]) => assigned === value).map(([name]) => name);
  assert.deepEqual(names, referencesOf(evalCase));
  assert.equal(names.length, 5);
});

test("cwe and fwe: the references are the most frequent words, by a clear margin", async () => {
  for (const [task, splitter, skipped] of [
    ["cwe", /\s*\d+\. /, new Set([""])],
    ["fwe", / /, new Set(["..."])],
  ] as const) {
    for (const length of [2048, 8192, 32_768]) {
      const evalCase = await only(task, length);
      const paragraphs = promptOf(evalCase).split("\n\n");
      const counts = new Map<string, number>();
      for (const word of (paragraphs.at(-2) ?? "").split(splitter)) {
        if (!skipped.has(word)) counts.set(word, (counts.get(word) ?? 0) + 1);
      }
      const ranked = [...counts].toSorted((a, b) => b[1] - a[1]);
      const references = referencesOf(evalCase);
      assert.deepEqual(
        new Set(ranked.slice(0, references.length).map(([word]) => word)),
        new Set(references),
      );
      assert.ok((ranked[references.length - 1]?.[1] ?? 0) > (ranked[references.length]?.[1] ?? 0), task);
      for (const reference of references) {
        assert.equal(ranked.filter(([word]) => word.includes(reference)).length, 1, "found in no other word");
      }
    }
  }
});

test("qa: the document that holds the answer is among the others", async () => {
  const evalCase = await only("qa_1");
  const number = /boat (\d+)\?/.exec(promptOf(evalCase))?.[1];
  assert.deepEqual(evalCase.expected.outputs, [`Builder ${number}`, `Mx ${number}`]);
  assert.equal(timesIn(promptOf(evalCase), `Boat ${number} was built`), 1);
  assert.ok(timesIn(promptOf(evalCase), "Document ") > 20);
});

test("string_match gives the share of the references, or any of them", async () => {
  const [evaluator] = evaluatorTable.create(["string_match"]);
  const signal = new AbortController().signal;
  const score = async (evalCase: EvalCase, output: string): Promise<unknown> => {
    const result = await evaluator?.evaluate({ ...sampleOf({ output }), case: evalCase }, { signal });
    return result?.status === "scored" ? [result.value, result.passed] : result;
  };
  const many = await only("niah_multivalue");
  const [a = "", b = "", c = "", d = ""] = referencesOf(many);
  assert.deepEqual(await score(many, `They are ${d}, ${c}, ${b} and ${a}.`), [1, true]);
  assert.deepEqual(await score(many, `They are ${d} and ${a}.`), [0.5, false]);
  const either = await only("qa_2");
  const [, second = ""] = referencesOf(either);
  assert.deepEqual(await score(either, `it was ${second.toUpperCase()}`), [1, true]);
  assert.deepEqual(await score(either, "nobody"), [0, false]);
});

test("lengths that are too short, unknown tasks and missing texts are refused", async () => {
  await assert.rejects(
    read({ tasks: ["cwe"], lengthsTokens: [256] }),
    /cwe: lengthTokens: the smallest prompt has \d+ tokens/,
  );
  assert.throws(
    () => rulerDataset({ lengthsTokens: [4096], count: 1, seed: 1, countTokens, tasks: ["qa_1"] }),
    /qa_1 asks questions over documents/,
  );
  assert.throws(
    () =>
      rulerDataset({
        lengthsTokens: [4096],
        count: 1,
        seed: 1,
        countTokens,
        tasks: ["niah_single_2"],
        text: "Too short.",
      }),
    /niah_single_2 hides its needles in a text/,
  );
  assert.throws(
    () => rulerDataset({ lengthsTokens: [0], count: 1, seed: 1, countTokens }),
    /lengthsTokens: expected a whole number/,
  );
  const plain = rulerDataset({ lengthsTokens: [4096], count: 1, seed: 1, countTokens });
  assert.deepEqual(
    new Set((await collected(plain)).map(({ tags }) => tags[1])),
    new Set(["niah_single_1", "niah_multikey_2", "niah_multikey_3", "vt", "cwe", "fwe"]),
  );
  assert.equal(rulerTaskNames.length, 13);
});

test("the largest size that fits is found from any guess", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.nat({ max: 3 }),
      fc.nat({ max: 2000 }),
      fc.integer({ min: 0, max: 3000 }),
      fc.integer({ min: 1, max: 9 }),
      fc.nat({ max: 5000 }),
      async (minSize, more, budget, perSize, guess) => {
        const maxSize = minSize + more;
        const draft = { minSize, maxSize, prompt: (size: number) => "x".repeat(size * perSize) };
        const search = fitLength(draft, budget, (prompt) => prompt.length, guess);
        if (minSize * perSize > budget) return assert.rejects(search, { code: "invalid_option" });
        assert.equal((await search).size, Math.min(maxSize, Math.floor(budget / perSize)));
      },
    ),
    { seed: 13, numRuns: 300 },
  );
});
