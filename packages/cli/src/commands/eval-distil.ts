import { evaluatorTable, type EvaluatorSpec, exitCodes, openAiJudge, openDataset } from "@octavo/evals";
import { type DistilledEvaluator, distilEvaluator } from "@octavo/optimize";
import { definedFields } from "@octavo/protocol";
import { option } from "@octavo/protocol/options";
import { defineCommand } from "../command.js";
import { datasetOptions, datasetRows, evaluatorOf, judgeRows, keyOf } from "../eval/eval-rows.js";
import { interruptible } from "../interruptible.js";
import { writeTextOf } from "../output/files.js";
import { printable } from "@octavo/report/text-table";

const everySecondsMs = 2000;

/** `octavo eval distil`: a small classifier that saves most of a judge's calls, with a certified agreement. */
export default defineCommand({
  arguments: { "<file>": "cases with answers, some hundreds to thousands" },
  options: {
    ...datasetRows,
    ...judgeRows,
    judge: { ...judgeRows.judge, isRequired: true },
    judgeModel: { ...judgeRows.judgeModel, isRequired: true },
    evaluator: option.text(
      "--evaluator <name>",
      "the judged evaluator to imitate, by name, as JSON or as a file",
      {
        isRequired: true,
      },
    ),
    out: option.text("--out <file>", "evaluator file to write: a cascade of the classifier and the judge", {
      isRequired: true,
    }),
    embeddingModel: option.text("--embedding-model <name>", "model of the embeddings", {
      defaultText: "the judge's",
    }),
    embeddings: option.text("--embeddings <url>", "server of the embeddings", { defaultText: "the judge's" }),
    embeddingsKeyEnv: option.text("--embeddings-key-env <name>", "environment variable with its key"),
    inputs: option.choices(
      ["input", "output", "context", "expectedOutput"],
      "--inputs <name...>",
      "what the classifier sees",
      {
        default: ["output"],
      },
    ),
    agreement: option.number("--agreement <share>", "share of its decisions that the judge must share", {
      min: 0.5,
      max: 0.9999,
      default: 0.98,
    }),
    confidence: option.number("--confidence <share>", "probability that it does", {
      min: 0.5,
      max: 0.9999,
      default: 0.95,
    }),
    auditShare: option.number(
      "--audit-share <share>",
      "share of its decisions on which the judge is asked as well",
      {
        min: 0,
        max: 1,
        default: 0.05,
      },
    ),
    outputField: option.text("--output-field <name>", "field with the answer", { default: "output" }),
    concurrency: option.integer("--concurrency <n>", "judge requests in flight", {
      min: 1,
      max: 1024,
      default: 8,
    }),
    seed: option.integer("--seed <n>", "seed of the division and of training", { min: 0, default: 1 }),
  },
  async run(flags, file: string) {
    const { agreement, confidence, auditShare, outputField, concurrency, seed } = flags;
    const judge = openAiJudge({
      baseUrl: flags.judge,
      model: flags.judgeModel,
      concurrency,
      ...definedFields({ apiKey: keyOf("judge-key-env", flags.judgeKeyEnv) }),
    });
    const named = evaluatorOf(flags.evaluator);
    const spec = (typeof named === "string" ? { name: named } : named) as EvaluatorSpec;
    const [evaluator] = evaluatorTable.create([spec], { judge });
    let saidMs = performance.now();
    const distilled = await interruptible(async (signal) =>
      distilEvaluator({
        spec,
        evaluator: evaluator!,
        cases: (await openDataset(file, datasetOptions(flags))).cases(),
        judge,
        embeddings: {
          model: flags.embeddingModel ?? flags.judgeModel,
          ...definedFields({ base_url: flags.embeddings, api_key_env: flags.embeddingsKeyEnv }),
        },
        inputs: [...flags.inputs],
        agreement,
        confidence,
        auditShare,
        outputField,
        concurrency,
        seed,
        signal,
        onJudged(done) {
          if (performance.now() - saidMs < everySecondsMs) return;
          saidMs = performance.now();
          process.stderr.write(`${done} cases judged\n`);
        },
      }),
    );
    process.stdout.write(textOf(distilled));
    if (distilled.file === undefined) {
      process.exitCode = exitCodes.inconclusive;
      return;
    }
    await writeTextOf("out", flags.out, `${JSON.stringify(distilled.file, null, 2)}\n`);
  },
});

function textOf({
  kind,
  numJudged,
  numFailed,
  numTraining,
  numCertified,
  saved,
  agreementOfAll,
  reason,
  classifier,
}: DistilledEvaluator): string {
  const head = [
    `${numJudged} cases judged, ${numFailed} without a verdict; ${numTraining} to learn from, ${numCertified} to certify on`,
    `${kind === "mlp" ? "a network with one hidden layer" : "logistic regression"}; deciding all it would agree with the judge in ${percent(agreementOfAll)}`,
  ];
  if (classifier === undefined) return lines([...head, `not certified: ${reason}`]);
  const { agreement, confidence, lower_bound: bound, decided, agreed } = classifier.guarantee;
  return lines([
    ...head,
    `judge calls saved  ${percent(saved)}: it decides from a probability of ${classifier.certainty.toFixed(3)} on`,
    `agreement          ${agreed} of ${decided} decisions, at least ${percent(bound)} with ${percent(confidence)} confidence (asked for: ${percent(agreement)})`,
  ]);
}

function percent(share: number): string {
  return `${(100 * share).toFixed(1)} %`;
}

function lines(texts: readonly string[]): string {
  return texts.map((text) => `${printable(text)}\n`).join("");
}
