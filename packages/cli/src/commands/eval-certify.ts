import { writeFile } from "node:fs/promises";
import {
  type Certificate,
  type CertifiedCondition,
  certify,
  type EvalCase,
  exitCodes,
  planEvaluation,
} from "@octavo/evals";
import { OctavoError } from "@octavo/protocol";
import { Command } from "commander";
import { configFromFlags } from "../eval/config-from-flags.js";
import { evalAction } from "../eval/eval-action.js";
import { targetFlags, type TargetFlags } from "../eval/eval-flags.js";
import { interruptible } from "../interruptible.js";
import { parseCount } from "../options/parse.js";
import { printable, textTable, type TextColumn } from "../output/text-table.js";

interface EvalCertifyFlags extends TargetFlags {
  readonly rounds: number;
  readonly json?: string;
}

/** Cases that are taken where `--cases` does not say. */
const defaultCases = 50;

const shownDivergences = 10;

/** `octavo eval certify`: the same bits, however a request is served. */
export function evalCertifyCommand(): Command {
  const command = new Command("certify").description(
    "compare the logits of each token, bit by bit: alone, cached, in batches, preempted, recomputed",
  );
  return targetFlags(command)
    .option(
      "--rounds <n>",
      "batches that each case is in; --concurrency is their size",
      parseCount(1, 100),
      2,
    )
    .optionsGroup("Output:")
    .option("--json <file>", "the certificate as JSON; - for standard output")
    .action(evalAction(evalCertify));
}

async function evalCertify(flags: EvalCertifyFlags): Promise<void> {
  if (flags.dataset === undefined)
    throw new OctavoError("invalid_option", "--dataset: name the cases to certify with", {
      param: "dataset",
    });
  const config = configFromFlags({ ...flags, cases: flags.cases ?? defaultCases });
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
  const json = `${JSON.stringify(certificate, undefined, 2)}\n`;
  if (flags.json !== undefined && flags.json !== "-") await writeFile(flags.json, json);
  process.stdout.write(flags.json === "-" ? json : rendered(certificate));
  process.exitCode = exitCodes[certificate.verdict];
}

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
    `${numCases} cases on ${target}${model === undefined ? "" : ` (${model})`}, each held against its run alone with nothing cached`,
    "",
    textTable(conditions, columns).trimEnd(),
    ...(shown.length === 0 ? [] : ["", "First tokens that differ:", ...shown]),
    ...(notes.length === 0 ? [] : ["", ...notes.slice(0, shownDivergences).map(printable)]),
    "",
  ].join("\n");
}
