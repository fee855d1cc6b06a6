import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { after, before } from "node:test";
import type { EvalCase } from "../../cases/eval-case.js";
import { evaluatorTable } from "../../evaluators/table.js";
import { sampleOf } from "../../evaluators/testing/sample.js";
import { FakeJudge } from "../../judges/testing/fake-judge.js";
import { collected } from "../testing/sources.js";
import { importPromptfoo, type PromptfooImport } from "./import-promptfoo.js";

let folder = "";
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "octavo-promptfoo-"));
  await mkdir(join(folder, "suite", "parts"), { recursive: true });
  await writeFile(join(folder, "secret.txt"), "not yours");
});
after(() => rm(folder, { recursive: true, force: true }));

async function write(name: string, content: string): Promise<string> {
  const path = join(folder, "suite", name);
  await writeFile(path, content);
  return path;
}
const read = async (yaml: string): Promise<PromptfooImport> =>
  importPromptfoo(await write("promptfooconfig.yaml", yaml));

test("prompts by tests by values of variables, with defaults, files and chats", async () => {
  await write("parts/context.txt", "Paris is in France.");
  await write(
    "chat.json",
    '[{"role":"system","content":"Speak {{language}}."},{"role":"user","content":"{{question}}"}]',
  );
  const { dataset, providers, description } = await read(`
description: Capitals
providers: [openai:gpt-5-mini, {id: "vertex:gemini"}]
prompts:
  - "Answer in {{language}}: {{question}}"
  - file://chat.json
defaultTest:
  vars: {language: English, context: file://parts/context.txt}
tests:
  - description: asked twice
    vars: {question: "Where is \\"Paris\\"?", language: [French, German]}
  - vars: {question: "In {{language}}?"}
`);
  const cases = await collected(dataset);
  assert.deepEqual(providers, ["openai:gpt-5-mini", "vertex:gemini"]);
  assert.equal(description, "Capitals");
  assert.equal(dataset.size, 6);
  assert.deepEqual(
    cases.map(({ id }) => id),
    [
      "prompt-1/test-1/1",
      "prompt-1/test-1/2",
      "prompt-2/test-1/1",
      "prompt-2/test-1/2",
      "prompt-1/test-2",
      "prompt-2/test-2",
    ],
  );
  assert.equal(cases[1]?.messages[0]?.content, 'Answer in German: Where is "Paris"?');
  assert.deepEqual(cases[2]?.messages, [
    { role: "system", content: "Speak French." },
    { role: "user", content: 'Where is "Paris"?' },
  ]);
  assert.equal(cases[4]?.messages[0]?.content, "Answer in English: In English?");
  assert.equal(cases[0]?.context, "Paris is in France.");
  assert.equal(cases[0]?.metadata["description"], "asked twice");
});

test("assertions become evaluators that score their own cases alone, and share where they are alike", async () => {
  const imported = await read(`
prompts: ["Say {{word}}"]
defaultTest:
  assert:
    - {type: not-icontains, value: sorry}
tests:
  - vars: {word: one}
    assert:
      - {type: equals, value: "{{word}}"}
      - {type: llm-rubric, value: Is polite, threshold: 0.8, weight: 3}
  - vars: {word: two}
    assert:
      - {type: equals, value: "{{word}}"}
      - {type: contains-any, value: [two, zwei]}
      - {type: is-json, value: {type: object}}
      - {type: is-refusal}
`);
  const [first, second] = await collected(imported.dataset);
  assert.deepEqual(first?.expected.outputs, ["one"], "what must not be said is not expected");
  assert.deepEqual(imported.unsupported, []);
  assert.deepEqual(imported.weights, { "llm-rubric": 3 });
  const byName = new Map(imported.evaluators.map((spec) => [spec.as, spec]));
  assert.deepEqual(byName.get("not-icontains"), {
    name: "contains",
    options: { ignoreCase: true, values: ["sorry"] },
    not: true,
    as: "not-icontains",
    tags: ["assert:not-icontains"],
  });
  assert.deepEqual(byName.get("llm-rubric")?.options, { grading_criteria: "Is polite" });
  assert.equal(byName.get("llm-rubric")?.threshold, 0.8);
  assert.equal(byName.get("is-refusal")?.not, true);
  assert.deepEqual(first?.tags, ["assert:not-icontains", "assert:equals", "assert:llm-rubric"]);

  // every spec makes an evaluator, and verdicts are promptfoo's
  const evaluators = evaluatorTable.create(imported.evaluators, {
    judge: new FakeJudge(({ labels }) => ({ label: labels[0] ?? "" })),
  });
  const { signal } = new AbortController();
  const verdicts = async (
    evalCase: EvalCase | undefined,
    output: string,
  ): Promise<Record<string, boolean>> => {
    assert.ok(evalCase);
    const passed: Record<string, boolean> = {};
    for (const evaluator of evaluators) {
      if (evaluator.needsJudge) continue;
      const score = await evaluator.evaluate({ ...sampleOf({ output }), case: evalCase }, { signal });
      if (score.status === "scored") passed[evaluator.name] = score.passed;
    }
    return passed;
  };
  assert.deepEqual(await verdicts(first, "one"), { "not-icontains": true, equals: true });
  assert.deepEqual(await verdicts(first, "Sorry, one"), { "not-icontains": false, equals: false });
  assert.deepEqual(await verdicts(second, "zwei"), {
    "not-icontains": true,
    equals: false,
    "contains-any": true,
    "is-json": false,
    "is-refusal": false,
  });
});

test("a thousand tests with texts of their own share one evaluator", async () => {
  const tests = Array.from(
    { length: 1000 },
    (_, index) => `  - {vars: {n: ${index}}, assert: [{type: contains, value: "{{n}}"}]}`,
  );
  const imported = await read(`prompts: ["{{n}}"]\ntests:\n${tests.join("\n")}\n`);
  assert.deepEqual(
    imported.evaluators.map(({ name, as }) => [name, as]),
    [["contains", "contains"]],
  );
  const cases = await collected(imported.dataset);
  assert.deepEqual(cases[999]?.expected.outputs, ["999"]);
});

test("what has no counterpart is reported by place and type, and code is refused by name", async () => {
  const imported = await read(`
prompts: ["{{missing}} {{word}}"]
tests:
  - vars: {word: one}
    threshold: 0.5
    options: {transform: output.trim()}
    assert:
      - {type: javascript, value: "process.exit(1)"}
      - {type: python, value: file://check.py}
      - {type: similar, value: x}
      - {type: not-latency, threshold: 5}
      - {type: invented}
      - {type: assert-set, threshold: 0.5, assert: [{type: is-json}]}
      - {type: assert-set, assert: [{type: is-json}, {$ref: "#/assertionTemplates/short"}]}
assertionTemplates:
  short: {type: word-count, value: {max: 5}}
`);
  assert.deepEqual(
    imported.unsupported.map(({ at, type }) => [at, type]),
    [
      ["tests[0].assert[0]", "javascript"],
      ["tests[0].assert[1]", "python"],
      ["tests[0].assert[2]", "similar"],
      ["tests[0].assert[3]", "not-latency"],
      ["tests[0].assert[4]", "invented"],
      ["tests[0].assert[5]", "assert-set"],
    ],
  );
  assert.match(imported.unsupported[0]?.reason ?? "", /runs code/);
  assert.deepEqual(
    imported.evaluators.map(({ as, options }) => [as, options]),
    [
      ["is-json", undefined],
      ["word-count", { unit: "words", max: 5 }],
    ],
  );
  assert.deepEqual(imported.warnings, [
    "tests[0]: {{missing}} has no value and is left out",
    "tests[0].threshold is not taken over: state it in eval.yaml",
    "tests[0].options.transform is not taken over",
  ]);
});

test("tests in CSV and scenarios", async () => {
  await write(
    "tests.csv",
    'word,__expected,__expected2,__description,__metadata:level\none,one,"contains-any: one, eins",first,easy\ntwo,llm-rubric(0.9): Is two,,,\n',
  );
  const imported = await read(`
prompts: ["Say {{word}} {{tone}}"]
tests: file://tests.csv
scenarios:
  - config: [{vars: {tone: loudly}}, {vars: {tone: softly}}]
    tests: [{vars: {word: three}, assert: [{type: contains, value: "{{tone}}"}]}]
`);
  const cases = await collected(imported.dataset);
  assert.deepEqual(
    cases.map(({ messages }) => messages[0]?.content),
    ["Say one ", "Say two ", "Say three loudly", "Say three softly"],
  );
  assert.deepEqual(cases[0]?.expected.outputs, ["one"]);
  assert.equal(cases[0]?.metadata["level"], "easy");
  assert.deepEqual(
    imported.evaluators.map(({ as, options, threshold }) => [as, options, threshold]),
    [
      ["equals", undefined, undefined],
      ["contains-any", { values: ["one", "eins"] }, undefined],
      ["llm-rubric", { grading_criteria: "Is two" }, 0.9],
      ["contains", undefined, undefined],
    ],
  );
});

test("files outside the folder, links out of it, code, patterns and templates that compute are refused", async () => {
  await symlink(join(folder, "secret.txt"), join(folder, "suite", "link.txt"));
  await write("prompt.js", "module.exports = () => 1");
  const refusals: readonly [vars: string, says: RegExp][] = [
    ["{x: file://../secret.txt}", /tests\[0\]\.vars\.x is file:\/\/\.\.\/secret\.txt, which is outside/],
    [`{x: "file://${join(folder, "secret.txt")}"}`, /which is outside the configuration's folder/],
    ["{x: file://link.txt}", /which is outside the configuration's folder/],
    ["{x: file://missing.txt}", /cannot be read: there is no such file/],
    ["{x: file://prompt.js}", /which is code; code is never run/],
    ["{x: 'file://parts/*.txt'}", /is the pattern/],
    ["[1]", /tests\[0\]\.vars must be an object/],
  ];
  for (const [vars, says] of refusals) {
    await assert.rejects(read(`prompts: ["{{x}}"]\ntests: [{vars: ${vars}}]\n`), says);
  }
  const templates: readonly [prompt: string, says: RegExp][] = [
    ["{{ x | upper }}", /tests\[0\] has \{\{ x \| upper \}\}, but only names/],
    ["{% for y in x %}{% endfor %}", /uses \{% for y in x/],
    ["{{ x.constructor('return 1')() }}", /but only names and their parts/],
  ];
  for (const [prompt, says] of templates) {
    await assert.rejects(read(`prompts: [${JSON.stringify(prompt)}]\ntests: [{vars: {x: 1}}]\n`), says);
  }
  const reached = await read('prompts: ["{{x.constructor}}{{x.__proto__}}"]\ntests: [{vars: {x: {a: 1}}}]\n');
  assert.equal((await collected(reached.dataset))[0]?.messages[0]?.content, "", "own parts only");
  await assert.rejects(read("tests: []\n"), /prompts is missing/);
  await assert.rejects(read("prompts: [\n"), /promptfooconfig\.yaml cannot be parsed/);
  await assert.rejects(read("just text\n"), /the configuration must be an object/);
});
