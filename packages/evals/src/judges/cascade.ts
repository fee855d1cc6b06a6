import { createHash } from "node:crypto";
import { asArray, asNumber, asRecord, asString, OctavoError } from "@octavo/protocol";
import { wilsonInterval, type Interval } from "@octavo/statistics";
import { z } from "zod";
import type { EvaluateOptions, Evaluator, Sample, Score } from "../evaluators/evaluator.js";
import {
  defineEvaluator,
  type EvaluatorEntry,
  type EvaluatorTable,
  type ScorerOutcome,
} from "../evaluators/registry.js";

/** One way to a verdict; the cheapest stands first. */
interface CascadeStage {
  readonly evaluator: Evaluator;
  /** Which of its verdicts are final; a pattern that finds refusals can only fail an answer. Default both. */
  readonly decides: "pass" | "fail" | "both";
  /** Least probability of the label with which a judge's verdict is final; without probabilities it never is. */
  readonly certainty: number;
}

interface CascadeSettings {
  /** The last one decides every case that reaches it. */
  readonly stages: readonly CascadeStage[];
  /** Share of the verdicts that came earlier for which the last stage is asked as well. */
  readonly auditShare: number;
  readonly seed: number;
}

/** The verdict of the first confident stage, with the last stage's verdict where the case is audited. */
async function runCascade(
  { stages, auditShare, seed }: CascadeSettings,
  sample: Sample,
  options: EvaluateOptions,
): Promise<ScorerOutcome> {
  const last = stages.length - 1;
  const problems: string[] = [];
  for (const [index, stage] of stages.entries()) {
    const score = await stage.evaluator.evaluate(sample, options);
    if (score.status === "failed") problems.push(`${stage.evaluator.name}: ${score.reason}`);
    const seenProblems = problems.length === 0 ? {} : { stageProblems: problems };
    if (index === last) return withStage(score, stage, index, seenProblems);
    if (!isFinal(score, stage)) continue;
    if (!isAudited(sample.case.id, auditShare, seed)) return withStage(score, stage, index, seenProblems);
    const audit = await stages[last]!.evaluator.evaluate(sample, options);
    const seen = audit.status === "scored" ? { audit: audit.passed ? "pass" : "fail" } : {};
    return withStage(score, stage, index, { ...seenProblems, ...seen });
  }
  throw new OctavoError("invalid_option", "a cascade needs stages", { param: "stages" });
}

function isFinal(score: Score, { evaluator, decides, certainty }: CascadeStage): boolean {
  if (score.status !== "scored") return false;
  if (decides !== "both" && decides !== (score.passed ? "pass" : "fail")) return false;
  if (!evaluator.needsJudge) return true;
  const probability = asNumber(asRecord(score.details?.["probabilities"])[score.label ?? ""]);
  return probability !== undefined && probability >= certainty;
}

/** By the case alone, so that every worker and every rerun audits the same ones. */
function isAudited(caseId: string, share: number, seed: number): boolean {
  const digest = createHash("sha256").update(`${seed}\n${caseId}`).digest();
  return digest.readUInt32BE(0) < share * 2 ** 32;
}

function withStage(
  score: Score,
  { evaluator }: CascadeStage,
  index: number,
  audit: { readonly audit?: string; readonly stageProblems?: readonly string[] },
): ScorerOutcome {
  if (score.status !== "scored") return score;
  return { ...score, details: { ...score.details, stage: evaluator.name, stageIndex: index, ...audit } };
}

const stageOptions = z.strictObject({
  /** The name of an evaluator, or its spec. */
  evaluator: z.union([z.string(), z.record(z.string(), z.unknown())]),
  decides: z.enum(["pass", "fail", "both"]).default("both"),
  certainty: z.number().min(0.5).max(1).default(0.9),
});

const cascadeOptions = z.strictObject({
  stages: z.array(stageOptions).min(2).max(8),
  audit_share: z.number().min(0).max(1).default(0.1),
  seed: z.int().default(1),
});

/** The row; its stages are other rows of the table, which is there only after it. */
export function cascadeEvaluator(table: () => EvaluatorTable): EvaluatorEntry {
  return defineEvaluator({
    name: "cascade",
    description: "The verdict of the cheapest of several evaluators that is sure of it.",
    inputs: ["output"],
    output: "pass_fail",
    needsJudge: true,
    options: cascadeOptions,
    create(options, services) {
      const stages = options.stages.map(({ evaluator: spec, decides, certainty }, index): CascadeStage => {
        // two stages may be one row with different judges
        const named = typeof spec === "string" ? { name: spec } : spec;
        const [evaluator] = table().create([{ as: stageName(index, named), ...named }], services);
        if (evaluator === undefined) throw new OctavoError("internal_error", "no stage was made");
        return { evaluator, decides, certainty };
      });
      const settings = { stages, auditShare: options.audit_share, seed: options.seed };
      // the last one has the last word
      const judge = stages.findLast(({ evaluator }) => evaluator.judge !== undefined)?.evaluator.judge;
      return {
        ...(judge === undefined ? {} : { judge }),
        fingerprint: stages.map(({ evaluator }) => evaluator.fingerprint ?? evaluator.name).join(" "),
        score: (sample, evaluateOptions) => runCascade(settings, sample, evaluateOptions),
      };
    },
  });
}

/** As reports show it. */
function stageName(index: number, { name }: { readonly name?: unknown }): string {
  return `${index + 1}:${String(name)}`.slice(0, 64);
}

/** How many verdicts each stage of a cascade gave, and how far the last stage agrees with the ones before it. */
export interface CascadeReport {
  readonly numScored: number;
  /** In the order of the stages. */
  readonly stages: readonly { readonly name: string; readonly numDecided: number }[];
  /** Verdicts settled before the last stage on which the last stage was asked as well. */
  readonly numAudited: number;
  /** Share of the audited that the last stage agrees with; undefined where none was audited. */
  readonly agreement: { readonly estimate: number; readonly interval: Interval } | undefined;
  /** Why earlier stages failed, such as embeddings that have changed: the last one was asked in their place. */
  readonly problems: readonly string[];
}

/** What a cascade saved and what it cost in agreement, from its scores alone, wherever they were made. */
export function cascadeReport(scores: Iterable<Score>, confidence = 0.95): CascadeReport {
  const tally = new CascadeTally();
  for (const score of scores) tally.add(score);
  return tally.report(confidence);
}

/** Stages that are counted apart; no cascade has so many. */
const mostStages = 64;
/** Different ones that are listed. */
const mostProblems = 5;

/** Counts what each stage decided, as scores come. */
export class CascadeTally {
  readonly #stages: { name: string; numDecided: number }[] = [];
  #numScored = 0;
  #numAudited = 0;
  #agreed = 0;
  readonly #problems = new Set<string>();

  /** What no cascade scored is not counted. */
  add(score: Score): void {
    if (score.status !== "scored") return;
    const index = asNumber(score.details?.["stageIndex"]);
    const name = asString(score.details?.["stage"]);
    if (index === undefined || name === undefined || index > mostStages) return;
    this.#numScored += 1;
    for (const problem of asArray(score.details?.["stageProblems"]).slice(0, mostStages))
      if (typeof problem === "string" && this.#problems.size < mostProblems) this.#problems.add(problem);
    while (this.#stages.length <= index)
      this.#stages.push({ name: `stage-${this.#stages.length}`, numDecided: 0 });
    this.#stages[index]!.name = name;
    this.#stages[index]!.numDecided += 1;
    const audit = asString(score.details?.["audit"]);
    if (audit === undefined) return;
    this.#numAudited += 1;
    if (audit === (score.passed ? "pass" : "fail")) this.#agreed += 1;
  }

  report(confidence = 0.95): CascadeReport {
    const [agreed, audited] = [this.#agreed, this.#numAudited];
    return {
      numScored: this.#numScored,
      stages: this.#stages,
      numAudited: audited,
      agreement:
        audited === 0
          ? undefined
          : { estimate: agreed / audited, interval: wilsonInterval(agreed, audited, confidence) },
      problems: [...this.#problems],
    };
  }
}
