// Is a server's JSON and are its tool calls still right? Any OpenAI-compatible server; here the one that runs the examples.
import { evaluate, evaluatorTable, jsonlDataset, OpenAiTarget } from "octavo/evals";

const evaluation = evaluate({
  dataset: jsonlDataset("examples/data/golden.jsonl"),
  target: new OpenAiTarget({ name: "candidate", baseUrl: process.env["OPENAI_BASE_URL"] ?? "" }),
  evaluators: evaluatorTable.create(["json_schema", "evaluate_function_calling"]),
});

for await (const { sample, evaluator, score } of evaluation)
  if (score.status === "scored" && !score.passed)
    process.stdout.write(`${sample.case.id} fails ${evaluator}: ${score.reason ?? sample.answer.text}\n`);

const { evaluators } = await evaluation.summary();
for (const { name, numPassed, numScored, passRateInterval } of evaluators) {
  const [low, high] = passRateInterval ?? [0, 1];
  process.stdout.write(
    `${name}: ${numPassed} of ${numScored} passed, true rate between ${low.toFixed(2)} and ${high.toFixed(2)}\n`,
  );
}
