// Measures under expectations: an interval decides, and "not enough cases" is an answer of its own.
import { evaluatorTable, LocalRunner, jsonlDataset, OpenAiTarget } from "octavo/evals";
import { evaluationVocabulary, judgeGate, Measurements, parseGateConfig, runCases } from "octavo/evals";

const baseUrl = process.env["OPENAI_BASE_URL"] ?? "";
const config = parseGateConfig(
  "eval.yaml",
  `version: 1
targets: { candidate: { base_url: "${baseUrl}" } }
datasets: { golden: { path: examples/data/golden.jsonl } }
evaluators: [json_schema]
health:
  quality: [pass_rate(json_schema) >= 0.5, pass_rate(json_schema) >= 0.99]
  latency: [median(duration_ms) <= 60s]`,
  evaluationVocabulary,
);

const measurements = new Measurements();
for await (const row of runCases({
  datasets: [jsonlDataset("examples/data/golden.jsonl")],
  targets: [new OpenAiTarget({ name: "candidate", baseUrl })],
  evaluators: evaluatorTable.create(config.file.evaluators),
  runner: new LocalRunner(),
  concurrency: 4,
  signal: AbortSignal.timeout(60_000),
}))
  measurements.add(row);

const { outcome, items } = judgeGate(config, {
  measurements,
  checks: [],
  judged: [],
  targets: ["candidate"],
});
for (const { expectation, verdict, summary } of items)
  process.stdout.write(`${expectation}: ${verdict}, ${summary}\n`);
process.stdout.write(`${outcome}\n`);
