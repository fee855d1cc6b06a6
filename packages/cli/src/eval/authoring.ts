import { createInterface } from "node:readline/promises";
import { appendFile, readFile } from "node:fs/promises";
import {
  carriedAnswer,
  type EvalCase,
  openAiJudge,
  type OpenAiJudge,
  OpenAiTarget,
  openDataset,
  type Sample,
} from "@octavo/evals";
import {
  type AuthoredEvaluator,
  authoredEvaluatorText,
  bareEvaluator,
  Budget,
  chooseForLabels,
  type HumanLabel,
  improveEvaluator,
  type Improvement,
  labelLine,
  type LabelledSample,
  parseLabels,
  TeacherDesk,
  judgedValues,
} from "@octavo/optimize";
import { definedFields, OctavoError } from "@octavo/protocol";
import { inGroup, option, type ResolvedOptions } from "@octavo/protocol/options";
import { writeTextOf } from "../output/files.js";
import { printable } from "@octavo/report/text-table";
import { datasetOptions, datasetRows, judgeRows, keyOf } from "./eval-rows.js";

/** What `octavo eval author` and `octavo eval improve` share. */
export const authoringRows = {
  cases: option.text("--cases <file>", "cases with answers, as production or a run gave them", {
    isRequired: true,
  }),
  ...datasetRows,
  outputField: option.text("--output-field <name>", "field with the answer", { default: "output" }),
  labels: option.text(
    "--labels <file>",
    "JSON lines of id and label (pass or fail); what is asked is added to it",
    {
      defaultText: "the evaluator's file with .labels.jsonl",
    },
  ),
  ask: option.integer("--ask <n>", "cases to ask for labels of, half of them at random", {
    min: 0,
    max: 1000,
    default: 20,
  }),
  ...judgeRows,
  judge: { ...judgeRows.judge, isRequired: true as const },
  judgeModel: { ...judgeRows.judgeModel, isRequired: true as const },
  ...inGroup("Writer", {
    writer: option.text("--writer <url>", "server of the model that writes criteria", {
      defaultText: "the judge's",
    }),
    writerModel: option.text("--writer-model <name>", "its model", { defaultText: "the judge's" }),
    writerKeyEnv: option.text("--writer-key-env <name>", "environment variable with its key"),
  }),
  concurrency: option.integer("--concurrency <n>", "judge requests in flight", {
    min: 1,
    max: 1024,
    default: 8,
  }),
  seed: option.integer("--seed <n>", "seed of the choice of cases", { min: 0, default: 1 }),
};

export type AuthoringFlags = ResolvedOptions<typeof authoringRows>;

/** Questions that a writer may be asked in one command. */
const writerCalls = 40;

export function authoringJudge(flags: AuthoringFlags): OpenAiJudge {
  return openAiJudge({
    baseUrl: flags.judge,
    model: flags.judgeModel,
    concurrency: flags.concurrency,
    ...definedFields({ apiKey: keyOf("judge-key-env", flags.judgeKeyEnv) }),
  });
}

export function writerDesk(flags: AuthoringFlags, signal: AbortSignal): TeacherDesk {
  const isOwn = flags.writer !== undefined;
  const model = new OpenAiTarget({
    name: "writer",
    baseUrl: flags.writer ?? flags.judge,
    model: flags.writerModel ?? flags.judgeModel,
    ...definedFields({
      apiKey: isOwn ? keyOf("writer-key-env", flags.writerKeyEnv) : keyOf("judge-key-env", flags.judgeKeyEnv),
    }),
  });
  return new TeacherDesk({
    model,
    temperature: 0.7,
    budget: new Budget({ calls: writerCalls }),
    seed: flags.seed,
    fingerprint: "",
    signal,
  });
}

/** The labels that there are, and the file that takes more. */
interface LabelFile {
  readonly path: string;
  readonly known: readonly HumanLabel[];
}

export interface AuthoringMaterial {
  readonly samples: readonly Sample[];
  readonly labels: LabelFile;
}

/** Answers and labels, read and held against each other before a model is asked anything. `path`: the evaluator's file. */
export async function readMaterial(
  flags: AuthoringFlags,
  path: string,
  signal: AbortSignal,
): Promise<AuthoringMaterial> {
  const samples = await readSamples(flags, signal);
  const labels = flags.labels ?? `${path}.labels.jsonl`;
  const known = await readLabels(labels);
  const ids = new Set(samples.map((sample) => sample.case.id));
  const strays = known.filter(({ caseId }) => !ids.has(caseId));
  if (strays.length > 0) {
    const told = `${strays.length} of ${known.length} labels in ${labels} are of no case in ${flags.cases}, "${strays[0]!.caseId}" first`;
    if (strays.length === known.length)
      throw new OctavoError("dataset_invalid", `${told}: a label's id is that of its case`, {
        param: "labels",
      });
    process.stderr.write(`octavo: ${printable(told)}\n`);
  }
  return { samples, labels: { path: labels, known } };
}

async function readSamples(flags: AuthoringFlags, signal: AbortSignal): Promise<readonly Sample[]> {
  const dataset = await openDataset(flags.cases, datasetOptions(flags));
  const samples: Sample[] = [];
  for await (const evalCase of dataset.cases())
    samples.push({ case: evalCase, answer: await carriedAnswer(evalCase, flags.outputField, signal) });
  return samples;
}

/** Asks for labels, lets the writer improve the evaluator by them, writes it to its file, and prints what came of it. */
export async function improveByLabels(
  evaluator: AuthoredEvaluator,
  material: AuthoringMaterial,
  { param, path }: { readonly param: string; readonly path: string },
  context: { readonly flags: AuthoringFlags; readonly desk: TeacherDesk; readonly signal: AbortSignal },
): Promise<void> {
  const { flags, desk, signal } = context;
  const labelled = await gatherLabels(evaluator, material, flags, signal);
  const { concurrency } = flags;
  const judge = authoringJudge(flags);
  const improved = await improveEvaluator(evaluator, labelled, { judge, desk, concurrency, signal });
  await writeTextOf(param, path, authoredEvaluatorText(improved.evaluator));
  process.stdout.write(improvementText(improved, path));
}

/** The labels that are there and those that are given now, with their answers. */
async function gatherLabels(
  evaluator: AuthoredEvaluator,
  { samples, labels: { path, known } }: AuthoringMaterial,
  flags: AuthoringFlags,
  signal: AbortSignal,
): Promise<readonly LabelledSample[]> {
  const labels = new Map(known.map((label) => [label.caseId, label]));
  const unlabelled = samples.filter(({ case: { id } }) => !labels.has(id));
  if (flags.ask > 0 && unlabelled.length > 0) {
    const judge = authoringJudge(flags);
    const asked = unlabelled.map((sample) => ({ caseId: sample.case.id, sample }));
    const run = { judge, concurrency: flags.concurrency, signal };
    const values = await judgedValues(evaluator, asked, run);
    const others = await judgedValues(bareEvaluator(evaluator.statement), asked, run);
    const scored = asked.flatMap(({ caseId }) => {
      const value = values.get(caseId);
      return value === undefined ? [] : [{ caseId, value, other: others.get(caseId) }];
    });
    const chosen = chooseForLabels(scored, flags.ask, evaluator.threshold, flags.seed);
    const byId = new Map(unlabelled.map((sample) => [sample.case.id, sample]));
    for await (const label of askPerson(
      evaluator.statement,
      chosen.map((one) => ({ ...one, sample: byId.get(one.caseId)! })),
      signal,
    )) {
      await appendFile(path, labelLine(label));
      labels.set(label.caseId, label);
    }
  }
  return samples.flatMap((sample) => {
    const label = labels.get(sample.case.id);
    return label === undefined ? [] : [{ ...label, sample }];
  });
}

async function readLabels(path: string): Promise<readonly HumanLabel[]> {
  const text = await readFile(path, "utf8").catch((cause: NodeJS.ErrnoException) => {
    if (cause.code === "ENOENT") return "";
    throw cause;
  });
  return parseLabels(path, text);
}

const longestShown = 3000;

/** Asks on standard error, reads a letter a line; ends with `q` or with the input. */
async function* askPerson(
  statement: string,
  chosen: readonly {
    readonly caseId: string;
    readonly chosen: HumanLabel["chosen"];
    readonly sample: Sample;
  }[],
  signal: AbortSignal,
): AsyncGenerator<HumanLabel> {
  const terminal = createInterface({ input: process.stdin });
  const lines = terminal[Symbol.asyncIterator]();
  try {
    for (const [index, { caseId, chosen: how, sample }] of chosen.entries()) {
      process.stderr.write(
        `\n[${index + 1} of ${chosen.length}] ${printable(statement)}\n${shown("asked", questionOf(sample.case))}${shown("answered", sample.answer.text)}p pass, f fail, s skip, q stop: `,
      );
      for (;;) {
        signal.throwIfAborted();
        const { value, done } = await lines.next();
        if (done === true || value.trim() === "q") return;
        const letter = value.trim().toLowerCase();
        if (letter === "s") break;
        if (letter === "p" || letter === "f") {
          yield { caseId, passed: letter === "p", chosen: how };
          break;
        }
        process.stderr.write("p, f, s or q: ");
      }
    }
  } finally {
    terminal.close();
    process.stderr.write("\n");
  }
}

function questionOf({ messages }: EvalCase): string {
  return messages.findLast(({ role }) => role === "user")?.content ?? "";
}

function shown(name: string, text: string): string {
  return `${name}:\n${text
    .slice(0, longestShown)
    .split("\n")
    .map((line) => `  ${printable(line)}\n`)
    .join("")}`;
}

/** What people see of a version: its agreement, what it still gets wrong, and what to do next. */
function improvementText(improved: Improvement, path: string): string {
  const { evaluator, summary, wrong, numTuned, numHeldOut, numFailed } = improved;
  const { measured, version, threshold } = evaluator;
  const lines = [
    summary,
    `version ${version}, passes from ${threshold} on; ${numTuned} labels to tune by, ${numHeldOut} held out, ${numFailed} without a verdict`,
    ...(measured?.refused === undefined ? [] : [`agreement          ${measured.refused}`]),
    ...(measured?.balanced_accuracy === undefined
      ? []
      : [
          `kappa              ${figure(measured.kappa, measured.kappa_interval)} of ${measured.labels} random labels`,
          `balanced accuracy  ${figure(measured.balanced_accuracy, measured.balanced_accuracy_interval)}`,
        ]),
    ...(wrong.length === 0 ? [] : [`still wrong        ${wrong.length} of the labels:`]),
    ...wrong
      .slice(0, 10)
      .map(
        ({ caseId, passed, value }) =>
          `  ${caseId}: ${passed ? "passes" : "fails"}, was scored ${value.toFixed(2)}`,
      ),
    `next               ${nextStep(improved, path)}`,
  ];
  return lines.map((line) => `${printable(line)}\n`).join("");
}

function nextStep({ evaluator, verdict, wrong }: Improvement, path: string): string {
  const { anchors, measured } = evaluator;
  if (verdict === "too_few_labels" || measured?.balanced_accuracy_interval === undefined)
    return `octavo eval improve ${path} asks for more labels`;
  const [score, ...others] = new Set(Object.values(anchors));
  if (score !== undefined && others.length === 0 && wrong.length > 0)
    return `the judge scored every labelled answer ${score.toFixed(2)}, so it does not tell them apart: take another judge model`;
  if (measured.balanced_accuracy_interval[0] <= 0.5)
    return `these labels do not show it to be better than chance: take another judge model, or label more with octavo eval improve ${path}`;
  return `use it with --evaluator ${path}, or as file: ${path} in eval.yaml`;
}

function figure(value: number | undefined, ends: readonly [number, number] | undefined): string {
  if (value === undefined) return "unknown";
  return ends === undefined
    ? value.toFixed(3)
    : `${value.toFixed(3)} [${ends.map((end) => end.toFixed(3)).join(", ")}]`;
}
