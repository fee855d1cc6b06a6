import assert from "node:assert/strict";
import { test } from "node:test";
import { evaluatorTable } from "../evaluators/table.js";
import { sampleOf, scoreOf } from "../evaluators/testing/sample.js";
import { asArray } from "@octavo/protocol";
import { type FakeHandler, replyJson, startFakeOpenAi } from "../testing/fake-openai-server.js";
import type { JudgeModel } from "./judge.js";
import { openAiJudge } from "./openai-judge.js";
import { FakeJudge } from "./testing/fake-judge.js";

const context = "The museum opens at nine. It is closed on Mondays.";

test("each sentence is asked about by itself, and its probability counts", async () => {
  const judge = new FakeJudge(({ user }) => {
    if (user.includes("opens at nine sharp"))
      return { label: "unknown", probabilities: { entailed: 0.3, unknown: 0.7 } };
    return user.includes("Mondays it is open") ? { label: "contradicted" } : { label: "entailed" };
  });
  const [evaluator] = evaluatorTable.create(["nli_groundedness"], { judge });
  const output = "It opens in the morning. It opens at nine sharp. On Mondays it is open.";
  const score = await scoreOf(evaluator!, sampleOf({ output, case: { context } }));
  assert.ok(score.status === "scored");
  assert.equal(score.value, (1 + 0.3 + 0) / 3);
  assert.equal(score.passed, false);
  assert.deepEqual(score.details, { sentences: 3, asked: 3, contradicted: 1, unknown: 1 });
  assert.match(score.reason ?? "", /unknown: It opens at nine sharp\.\ncontradicted: On Mondays/);
  assert.equal(judge.questions.length, 3);
  assert.ok(judge.questions.every(({ user }) => user.includes(context)));
  const empty = await scoreOf(evaluator!, sampleOf({ output: "...", case: { context } }));
  assert.equal(empty.status, "skipped");
  assert.equal((await scoreOf(evaluator!, sampleOf({ output: "It opens." }))).status, "skipped");
});

const vectors: Readonly<Record<string, readonly number[]>> = {
  one: [1, 0],
  near: [3, 4],
  opposite: [-1, 0],
  zero: [0, 0],
};

async function similarity(output: string, references: readonly string[], handler: FakeHandler) {
  await using server = await startFakeOpenAi({ "/v1/embeddings": handler });
  const judge = openAiJudge({ baseUrl: server.baseUrl, model: "judge-1", backoffMs: 1, retries: 1 });
  const [evaluator] = evaluatorTable.create(
    [{ name: "embedding_similarity", options: { model: "embedder" } }],
    { judge },
  );
  const score = await scoreOf(evaluator!, sampleOf({ output, case: { expected: { outputs: references } } }));
  assert.ok(server.requests.every(({ body }) => body["model"] === "embedder"));
  return score;
}

const embeds: FakeHandler = ({ body }, response) =>
  replyJson(response, 200, {
    // in any order: the index says whose each is
    data: asArray(body["input"])
      .map((text, index) => ({ index, embedding: vectors[String(text)] }))
      .toReversed(),
    usage: { prompt_tokens: 3 },
  });

test("the cosine with the nearest expected output counts, and never less than 0", async () => {
  for (const [output, references, value] of [
    ["one", ["one"], 1],
    ["one", ["opposite", "near"], 0.6],
    ["one", ["opposite"], 0],
    ["zero", ["one"], 0],
  ] as const) {
    const score = await similarity(output, references, embeds);
    assert.ok(score.status === "scored", JSON.stringify(score));
    assert.ok(Math.abs(score.value - value) < 1e-12, `${output}: ${score.value}`);
  }
});

test("what is no embedding is a failed score, and one that passes is asked for again", async () => {
  for (const data of [
    [],
    [{ index: 0, embedding: [1] }],
    [
      { index: 0, embedding: [1, 2] },
      { index: 1, embedding: [1] },
    ],
  ]) {
    const score = await similarity("one", ["near"], (_, response) => replyJson(response, 200, { data }));
    assert.ok(score.status === "failed" && score.code === "judge_failed", JSON.stringify(score));
    assert.match(score.reason, /2 texts were sent/);
  }
  let attempts = 0;
  const flaky = await similarity("one", ["one"], (request, response) =>
    ++attempts === 1 ? replyJson(response, 503, { error: "busy" }) : embeds(request, response),
  );
  assert.deepEqual([flaky.status, attempts], ["scored", 2]);
  const talking = new FakeJudge(() => ({ label: "pass" }));
  const mute: JudgeModel = { name: "mute", ask: (question) => talking.ask(question) };
  assert.throws(
    () => evaluatorTable.create(["embedding_similarity"], { judge: mute }),
    /gives no embeddings/,
  );
});

test("evaluators of images and sound are refused with the reason", () => {
  for (const [name, medium] of [
    ["caption_hallucination", "images"],
    ["ImageInstructionAdherence", "images"],
    ["ocr_evaluation", "images"],
    ["audio_quality", "sound"],
    ["tts_accuracy", "sound"],
  ] as const)
    assert.throws(
      () => evaluatorTable.create([name]),
      new RegExp(`it judges ${medium}, and cases and targets have text only`),
    );
  assert.throws(() => evaluatorTable.create(["capt"]), /there is no evaluator/);
});
