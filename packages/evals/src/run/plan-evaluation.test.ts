import assert from "node:assert/strict";
import test from "node:test";
import { parseGateConfig } from "../gate/config.js";
import { evaluationVocabulary, planEvaluation } from "./plan-evaluation.js";

async function warningsOf(judge: string, evaluators: string): Promise<readonly string[]> {
  const config = parseGateConfig(
    "eval.yaml",
    `version: 1
targets:
  candidate: {base_url: "http://127.0.0.1:1", model: small}
  baseline: {base_url: "http://127.0.0.1:1", model: large}
judge: {base_url: "http://127.0.0.1:1", model: ${judge}}
evaluators: ${evaluators}
checks: {jitter: {}}`,
    evaluationVocabulary,
  );
  const surroundings = { folder: ".", environment: {}, signal: new AbortController().signal };
  return (await planEvaluation(config, surroundings)).warnings;
}

test("models that judge their own answers are warned of, whoever names them", async () => {
  assert.deepEqual(await warningsOf("other", "[groundedness]"), []);
  assert.match((await warningsOf("small", "[groundedness]")).join(), /small judges its own answers/);
  const own = await warningsOf(
    "other",
    "[groundedness, {name: groundedness, as: again, options: {model: large}}]",
  );
  assert.match(own.join(), /^large judges its own answers/);
});
