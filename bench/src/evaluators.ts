// What local scoring costs: 500 cases with ten heuristics, in this process and on worker threads, and a million cases in bounded
// memory. `--cases N` and `--stream N` for shorter runs.
import assert from "node:assert/strict";
import { parseArgs } from "node:util";
import {
  type Answer,
  type EvalCase,
  evaluate,
  type EvaluationSummary,
  evaluatorTable,
  LocalRunner,
  type Runner,
  type Sample,
} from "@octavo/evals";
import { median } from "./support/median.js";
import { type BenchCase, report } from "./support/results.js";

const { values: flags } = parseArgs({
  options: { cases: { type: "string", default: "500" }, stream: { type: "string", default: "1000000" } },
});
const numCases = Number(flags.cases);
const numStreamed = Number(flags.stream);
assert.ok(numStreamed >= 100_000, "--stream: memory settles within the first tenth of 100,000 cases or more");

const heuristics = [
  "is_json",
  { name: "json_schema", options: { fenced: true } },
  "exact_match",
  "fuzzy_match",
  { name: "regex", options: { pattern: "\\b(?:paged|blocks?)\\b.*\\bcache\\b", flags: "is" } },
  "bleu_score",
  "rouge_l",
  "chrf_score",
  "evaluate_function_calling",
  "no_pii",
];

const words =
  "the paged cache keeps keys and values in blocks of sixteen tokens so that requests share a prefix and nothing is copied when a sequence grows while the scheduler picks what runs in each step".split(
    " ",
  );

/** A text of so many words, different for every seed. */
function prose(seed: number, length: number): string {
  return Array.from({ length }, (_, at) => words[(seed * 7 + at * (1 + (seed % 5))) % words.length]).join(
    " ",
  );
}

const schema = { type: "object", properties: { id: { type: "integer" } }, required: ["id"] };

/** A third of the cases answers in JSON, a third calls a tool, a third writes some hundred words. */
function sampleOf(index: number): Sample {
  const id = `case-${index}`;
  const gold = prose(index, 100);
  const text =
    index % 3 === 0 ? `{"id": ${index}, "note": "${gold}"}` : index % 6 === 1 ? gold : prose(index + 1, 110);
  const tool = index % 3 === 1;
  const evalCase: EvalCase = {
    id,
    messages: [{ role: "user", content: gold }],
    tools: [],
    context: undefined,
    expected: {
      outputs: [gold],
      ...(index % 3 === 0 ? { schema } : {}),
      ...(tool ? { toolCalls: [{ name: "find", arguments: { id: [index] } }] } : {}),
    },
    parameters: {},
    tenant: undefined,
    cluster: undefined,
    tags: [`third-${index % 3}`],
    metadata: {},
  };
  const answer: Answer = {
    caseId: id,
    target: "bench",
    model: undefined,
    text,
    reasoning: undefined,
    toolCalls: tool
      ? [{ id: "call", name: "find", arguments: `{"id":${index % 2 === 0 ? index : -1}}` }]
      : [],
    finishReason: "stop",
    usage: { promptTokens: undefined, completionTokens: undefined, cachedTokens: undefined },
    timing: { scheduledEpochMs: 0, sentEpochMs: 0, durationMs: 0, pieceMs: [] },
    serving: undefined,
    headers: {},
    failure: undefined,
  };
  return { case: evalCase, answer };
}

function* samplesUpTo(count: number): Generator<Sample, void, undefined> {
  for (let index = 0; index < count; index++) yield sampleOf(index);
}

interface Timed {
  readonly seconds: number;
  /** CPU time of the whole process, which other users of the machine do not change. */
  readonly cpuSeconds: number;
  readonly summary: EvaluationSummary;
}

async function timed(runner: Runner): Promise<Timed> {
  const samples = [...samplesUpTo(numCases)];
  const evaluators = evaluatorTable.create(heuristics);
  const start = performance.now();
  const before = process.cpuUsage();
  const summary = await evaluate({ samples, evaluators, runner }).summary();
  const { user, system } = process.cpuUsage(before);
  return { seconds: (performance.now() - start) / 1000, cpuSeconds: (user + system) / 1e6, summary };
}

/** The scores are as they must be before anything is timed. */
function check({ evaluators }: EvaluationSummary): void {
  const of = (name: string) => evaluators.find((one) => one.name === name)!;
  const count = (holds: (index: number) => boolean): number =>
    Array.from({ length: numCases }, (_, index) => index).filter(holds).length;
  assert.equal(
    of("is_json").numPassed,
    count((index) => index % 3 === 0),
  );
  assert.equal(
    of("json_schema").numPassed,
    count((index) => index % 3 === 0),
  );
  assert.equal(
    of("exact_match").numPassed,
    count((index) => index % 6 === 1),
  );
  assert.equal(
    of("evaluate_function_calling").numPassed,
    count((index) => index % 6 === 4),
  );
  assert.equal(of("no_pii").numPassed, numCases);
  assert.ok(evaluators.every(({ numFailed }) => numFailed === 0));
}

const cold = await timed(new LocalRunner());
check(cold.summary);
const warm: number[] = [];
for (let round = 0; round < 5; round++) warm.push((await timed(new LocalRunner())).seconds);

const threads = new LocalRunner({ threads: "auto" });
const onThreads: number[] = [];
for (let round = 0; round < 3; round++) {
  const { seconds, summary } = await timed(threads);
  check(summary);
  onThreads.push(seconds);
}
await threads.close();

// what stays after a hundred thousand cases is what a million needs
let baseline = 0;
let most = 0;
let numRows = 0;
const start = performance.now();
for await (const row of evaluate({
  samples: samplesUpTo(numStreamed),
  evaluators: evaluatorTable.create(["exact_match", "one_line"]),
})) {
  assert.ok(row);
  numRows++;
  if (numRows % 20_000 !== 0) continue;
  const used = process.memoryUsage().rss / 2 ** 20;
  if (numRows <= (numStreamed * 2) / 10) baseline = Math.max(baseline, used);
  else most = Math.max(most, used);
}
assert.equal(numRows, numStreamed * 2);
const streamSeconds = (performance.now() - start) / 1000;

const pairs = numCases * heuristics.length;
const cases: BenchCase[] = [
  {
    name: `${numCases} cases x ${heuristics.length} heuristics, first run`,
    unit: "s",
    octavo: cold.seconds,
    target: { atMost: 1 },
    details: { pairs, cpuSeconds: cold.cpuSeconds },
  },
  {
    name: "the same, warm",
    unit: "s",
    octavo: median(warm),
    target: { atMost: 1 },
    details: { rounds: warm },
  },
  {
    name: "the same on worker threads",
    unit: "s",
    octavo: median(onThreads.slice(1)),
    details: { rounds: onThreads },
  },
  {
    name: `${numStreamed} cases x 2 heuristics, streamed`,
    unit: "s",
    octavo: streamSeconds,
    details: { rowsPerSecond: Math.round(numRows / streamSeconds) },
  },
  {
    name: "memory after the first tenth of them, at most",
    unit: "MiB",
    octavo: most,
    target: { atMost: Math.ceil(baseline + 128) },
    details: { inFirstTenth: Math.round(baseline) },
  },
];
report("evaluators", cases);
