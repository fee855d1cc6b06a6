import {
  type Certificate,
  type CertifiedCondition,
  certify,
  type EvalCase,
  exitCodes,
  planEvaluation,
} from "@octavo/evals";
import { OctavoError } from "@octavo/protocol/errors";
import { inGroup, option } from "@octavo/protocol/options";
import { defineCommand } from "../command.js";
import { configFromFlags } from "../eval/config-from-flags.js";
import { targetRows } from "../eval/eval-rows.js";
import { interruptible } from "../interruptible.js";
import { writeTextOf } from "../output/files.js";
import { printable, textTable, type TextColumn } from "@octavo/report/text-table";

const shownDivergences = 10;

/** `octavo eval certify`: whether a request gets the same bits however it is served. */
export default defineCommand({
  options: {
    ...targetRows,
    cases: { ...targetRows.cases, default: 50 },
    rounds: option.integer("--rounds <n>", "batches that each case is part of; --concurrency is their size", {
      min: 1,
      max: 100,
      default: 2,
    }),
    ...inGroup("Output", {
      json: option.text("--json <file>", "write the certificate as JSON; - for standard output"),
    }),
  },
  async run(flags) {
    if (flags.dataset === undefined)
      throw new OctavoError("invalid_option", "--dataset: name the cases to certify with", {
        param: "dataset",
      });
    const config = configFromFlags(flags);
    const certificate = await interruptible(async (signal) => {
      const plan = await planEvaluation(config, { folder: process.cwd(), environment: process.env, signal });
      const cases: EvalCase[] = [];
      for (const dataset of plan.datasets) for await (const evalCase of dataset.cases()) cases.push(evalCase);
      return certify(plan.candidate.target, cases, {
        seed: flags.seed,
        batchSize: flags.concurrency,
        rounds: flags.rounds,
        signal,
      });
    });
    if (flags.json !== "-") process.stdout.write(rendered(certificate));
    if (flags.json !== undefined)
      await writeTextOf("json", flags.json, `${JSON.stringify(certificate, undefined, 2)}\n`);
    process.exitCode = exitCodes[certificate.verdict];
  },
});

const headlines = {
  pass: "CERTIFIED: the same bits however a request is served",
  fail: "NOT CERTIFIED: bits depend on how a request is served",
  inconclusive: "INCONCLUSIVE: not everything could be compared",
} as const;

const columns: readonly TextColumn<CertifiedCondition>[] = [
  { head: "condition", of: ({ name }) => name },
  { head: "runs", of: ({ runs }) => runs },
  { head: "tokens", of: ({ tokens }) => tokens },
  { head: "diverged", of: ({ divergedRuns }) => divergedRuns },
  { head: "failed", of: ({ failedRuns }) => failedRuns },
];

function rendered({ verdict, target, model, numCases, conditions, divergences, notes }: Certificate): string {
  const shown = divergences
    .slice(0, shownDivergences)
    .map(
      ({ caseId, condition, token, expected = "the end", got = "the end", isVisible }) =>
        `  ${printable(caseId)}, ${condition}: token ${token} gave ${got} instead of ${expected}${isVisible ? ", and the text differs" : ""}`,
    );
  return [
    headlines[verdict],
    `${numCases} cases on ${target}${model === undefined ? "" : ` (${model})`}, each compared with its run alone with nothing cached`,
    "",
    textTable(conditions, columns).trimEnd(),
    ...(shown.length === 0 ? [] : ["", "First tokens that differ:", ...shown]),
    ...(notes.length === 0 ? [] : ["", ...notes.slice(0, shownDivergences).map(printable)]),
    "",
  ].join("\n");
}
