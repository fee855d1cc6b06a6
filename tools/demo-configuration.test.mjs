// The demo's eval.yaml is checked as a user's is, without running the demo.
import assert from "node:assert/strict";
import { join } from "node:path";
import test from "node:test";
import { pathToFileURL } from "node:url";
import { demoConfiguration } from "./lib/demo-configuration.mjs";
import { root } from "./lib/steps.mjs";

const evals = await import(pathToFileURL(join(root, "packages/evals/dist/index.js")).href);

test("the demo configures every check", () => {
  const url = "http://127.0.0.1:1";
  const servers = { baseline: url, candidate: url, replica: url, startReplica: ["octavo"] };
  const text = demoConfiguration({ ...servers, only: evals.checkNames });
  const config = evals.parseGateConfig("eval.yaml", text, evals.evaluationVocabulary);
  assert.deepEqual(
    config.checks.map(({ name }) => name),
    evals.checkNames,
  );
  assert.ok(config.assertions.length >= 5);
  const some = demoConfiguration({ ...servers, only: ["jitter"] });
  assert.deepEqual(
    evals.parseGateConfig("eval.yaml", some, evals.evaluationVocabulary).checks.map(({ name }) => name),
    ["jitter"],
  );
});
