import { comparePaired, type EvalCase, type Evaluator, type Target } from "@octavo/evals";
import { OctavoError } from "@octavo/protocol";
import type { Interval } from "@octavo/statistics";
import { Random } from "@octavo/statistics";
import type { Candidate, TunedPart } from "../artifact/candidate.js";
import { candidateKey } from "../artifact/candidate.js";
import { optimizerNamed } from "../optimizers/table.js";
import { Budget, BudgetEnded, type BudgetLimits, type Spending } from "./budget.js";
import type { SearchJournal } from "./journal-rows.js";
import { CandidateScorer, type TokenPrices } from "./scorer.js";
import { Search, type Validated } from "./search.js";
import { type CaseParts, refuseLeaks } from "./split.js";
import { TeacherDesk, type TeacherSettings, type TeacherTally } from "./teacher.js";

/** What is searched, with which budget, by which evaluators. */
export interface OptimizeOptions {
  /** The artifact that will serve: what is tuned is tuned for it. */
  readonly target: Target;
  /** The model that proposes; undefined where the optimiser asks none. */
  readonly teacher?: TeacherSettings | undefined;
  readonly evaluators: readonly Evaluator[];
  readonly cases: CaseParts;
  /** What stands in the files today. */
  readonly seed: Candidate;
  /** What may be changed of it. */
  readonly parts: readonly TunedPart[];
  readonly optimizer: { readonly name: string; readonly options?: unknown };
  readonly budget: BudgetLimits;
  readonly randomSeed?: number;
  /** Requests in flight. Default 32. */
  readonly concurrency?: number;
  /** Confidence level of the interval on the held-out part. Default 0.95. */
  readonly confidence?: number;
  /** Address and model of target and teacher: answers in the journal are theirs. */
  readonly fingerprint?: string;
  readonly usdPerMillionTokens?: TokenPrices | undefined;
  readonly journal?: SearchJournal | undefined;
  readonly signal?: AbortSignal;
  readonly onProgress?: ((progress: SearchProgress) => void) | undefined;
}

/** How far a search has come. Scores are means over validation cases, 0 to 1. */
export interface SearchProgress {
  readonly phase: "search" | "held-out";
  readonly spent: Spending;
  /** Share of the budget that is spent, 0 to 1. */
  readonly share: number;
  readonly numValidated: number;
  readonly seedScore: number | undefined;
  readonly bestScore: number | undefined;
}

/** What a search found, with the evidence for it. */
export interface OptimizeResult {
  readonly optimizer: string;
  /** `better` where the held-out interval of the gain lies above 0. */
  readonly verdict: "better" | "no_better";
  readonly summary: string;
  /** The best on validation; what stood in the files where nothing was better there. */
  readonly winner: Candidate;
  readonly isSeed: boolean;
  readonly validation: {
    readonly seed: number | undefined;
    readonly winner: number | undefined;
    readonly numCases: number;
  };
  /** Undefined where the winner is what stood in the files. */
  readonly heldOut: HeldOutComparison | undefined;
  readonly candidates: readonly { readonly score: number; readonly origin: string }[];
  readonly spent: Spending;
  /** Beside the budget: both candidates on every held-out case. */
  readonly spentOnHeldOut: Spending;
  readonly teacher: TeacherTally;
  /** Why the search ended before the optimiser was done. */
  readonly endedBy: string | undefined;
}

/** The found prompt against the first one, on cases that the search never saw. */
export interface HeldOutComparison {
  readonly numCases: number;
  readonly seed: number;
  readonly winner: number;
  readonly gain: number;
  readonly interval: Interval | undefined;
  readonly confidence: number;
  /** Two-sided, of "no difference". */
  readonly pValue: number | undefined;
  readonly method: string;
}

/**
 * Searches for texts and examples under which the target scores more. The search sees training and validation cases; the best on
 * validation meets the held-out cases once, beside what stood in the files, and is called better only where the paired interval
 * says so. With a journal a search that was cut off, or whose budget was raised, goes on where it was.
 * @throws OctavoError `invalid_option`, `dataset_invalid` for parts that leak, `target_unreachable`, `judge_failed`, `disk_full`
 */
export async function optimizePrompts(options: OptimizeOptions): Promise<OptimizeResult> {
  const { cases, seed, randomSeed = 1, confidence = 0.95, journal, fingerprint = "", onProgress } = options;
  const { signal = new AbortController().signal, usdPerMillionTokens, optimizer } = options;
  const row = optimizerNamed(optimizer.name);
  const run = row.prepare(optimizer.options ?? {});
  if (row.needsTeacher && options.teacher === undefined)
    throw new OctavoError("invalid_option", `${row.name} asks a teacher: name a model that writes`, {
      param: "teacher",
    });
  const budget = new Budget(options.budget);
  refuseLeaks(cases, seed);
  let search: Search | undefined;
  let phase: SearchProgress["phase"] = "search";
  const tell = (): void =>
    onProgress?.({
      phase,
      spent: budget.spent,
      share: Math.min(1, budget.share),
      numValidated: search?.validated.length ?? 0,
      seedScore: search?.validated[0]?.score,
      bestScore: search?.best?.score,
    });
  const { target, evaluators, concurrency = 32 } = options;
  const scorer = new CandidateScorer({
    target,
    evaluators,
    concurrency,
    seed: randomSeed,
    fingerprint,
    usdPerMillionTokens,
    journal,
    signal,
    onScored: tell,
  });
  const teacher = new TeacherDesk({
    model: target,
    usdPerMillionTokens,
    ...options.teacher,
    budget,
    journal,
    seed: randomSeed,
    fingerprint,
    signal,
  });
  search = new Search({
    seed,
    parts: options.parts,
    train: cases.train,
    validation: cases.validation,
    scorer,
    teacher,
    budget,
    random: new Random(randomSeed),
    onValidated: tell,
  });
  let endedBy: string | undefined;
  try {
    await search.validate([seed], "seed");
    await run(search);
  } catch (thrown) {
    if (!(thrown instanceof BudgetEnded)) throw thrown;
    endedBy = thrown.message;
  }
  const winner = search.best;
  const isSeed = winner === undefined || candidateKey(winner.candidate) === candidateKey(seed);
  phase = "held-out";
  const heldOutBudget = new Budget({ calls: Number.POSITIVE_INFINITY });
  const heldOut = isSeed
    ? undefined
    : await judgeHeldOut(scorer, seed, winner.candidate, cases.heldOut, confidence, heldOutBudget);
  await journal?.flush();
  const verdict = heldOut?.interval !== undefined && heldOut.interval[0] > 0 ? "better" : "no_better";
  return {
    optimizer: optimizer.name,
    verdict,
    summary: summaryOf(verdict, winner, heldOut),
    winner: winner?.candidate ?? seed,
    isSeed,
    validation: {
      seed: search.validated[0]?.score,
      winner: winner?.score,
      numCases: cases.validation.length,
    },
    heldOut,
    candidates: search.validated.map(({ score, origin }) => ({ score, origin })),
    spent: budget.spent,
    spentOnHeldOut: heldOutBudget.spent,
    teacher: teacher.tally,
    endedBy,
  };
}

async function judgeHeldOut(
  scorer: CandidateScorer,
  seed: Candidate,
  winner: Candidate,
  cases: readonly EvalCase[],
  confidence: number,
  budget: Budget,
): Promise<HeldOutComparison> {
  const asked = [seed, winner].flatMap((candidate) => cases.map((evalCase) => ({ candidate, evalCase })));
  const results = await scorer.scoreAll(asked, budget);
  const scores = cases.map((evalCase, index) => ({
    cluster: evalCase.cluster === undefined ? `case ${index}` : `cluster ${evalCase.cluster}`,
    before: results[index]!.score,
    after: results[cases.length + index]!.score,
  }));
  const compared = comparePaired(scores)!;
  const interval = compared.intervalAt(confidence);
  return {
    numCases: compared.count,
    seed: compared.meanBefore,
    winner: compared.meanAfter,
    gain: -compared.loss,
    // it counts losses
    interval: interval && [-interval[1], -interval[0]],
    confidence,
    pValue: compared.mcnemarPValue,
    method: compared.method,
  };
}

function summaryOf(
  verdict: OptimizeResult["verdict"],
  winner: Validated | undefined,
  heldOut: HeldOutComparison | undefined,
): string {
  if (winner === undefined)
    return "The budget did not suffice to score what stands in the files: nothing can be said.";
  if (heldOut === undefined) return "Nothing scored more on validation than what stands in the files.";
  const { seed, winner: after, gain, interval, confidence, numCases } = heldOut;
  const ends = interval === undefined ? "unknown" : `${points(interval[0])} to ${points(interval[1])}`;
  const figures = `${points(seed)} to ${points(after)} points on ${numCases} held-out cases: ${gain >= 0 ? "+" : ""}${points(gain)} (${100 * confidence} % interval ${ends})`;
  return verdict === "better"
    ? `Better: ${figures}.`
    : `No better, as far as the held-out cases can tell: ${figures}.`;
}

function points(share: number): string {
  return (100 * share).toFixed(1);
}
