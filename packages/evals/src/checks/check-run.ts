import { OctavoError } from "@octavo/protocol";
import type { z } from "zod";
import type { EvalCase } from "../cases/eval-case.js";
import type { Evaluator } from "../evaluators/evaluator.js";
import type { Target } from "../targets/target.js";
import type { Check, CheckName, CheckResult } from "./check.js";
import { collectUntilDecided, type LookPlan } from "./collect/until-decided.js";
import type { ObservationJournal } from "./collect/observation-journal.js";
import type { Observation } from "./observation.js";
import { judgeUnlessBroken } from "./support/broken-evaluators.js";
import {
  alongsideFalseAlarms,
  countFalseAlarms,
  falseAlarmNote,
  type FalseAlarms,
  type Placebo,
} from "./support/false-alarms.js";
import { unitScores } from "./support/unit-scores.js";

/** What a check may send traffic to, and with what. The command line and the release gate make it from their settings. */
export interface TestBed {
  /** What ships. */
  readonly candidate: Target;
  /** What it is held against, such as the unquantised model. */
  readonly baseline: Target | undefined;
  /** Each replica by itself, past any balancer. */
  readonly replicas: readonly Target[];
  /** Starts one more replica and resolves when its process runs, though it need not answer yet. */
  readonly startReplica: (() => Promise<Target>) | undefined;
  readonly cases: readonly EvalCase[];
  readonly evaluators: readonly Evaluator[];
  readonly seed: number;
  readonly signal: AbortSignal;
  /** Cases that it holds are not sent again. */
  readonly journal?: ObservationJournal;
  readonly onProgress?: (progress: { readonly done: number; readonly total: number | undefined }) => void;
}

export type TestBedNeed = "baseline" | "replicas" | "startReplica" | "cases" | "evaluators";

/** What a check is made of: how its settings are written, how its observations are collected, and how they are judged. */
export interface CheckParts<Settings> {
  readonly check: Check<Settings>;
  /** Strict, with a default for every setting, so that `{}` is valid. Names in snake_case, as in eval.yaml. */
  readonly settings: z.ZodType<Settings>;
  /** Without these nothing can be collected. */
  readonly needs: readonly TestBedNeed[];
  /** How an A/A run is made of what was observed; undefined where one needs traffic of its own. */
  readonly placebo?: (settings: Settings) => Placebo;
  /** On which side of the comparison an observation is; its condition where absent. */
  readonly sideOf?: (observation: Observation) => string;
  readonly collect: (bed: TestBed, settings: Settings) => Promise<readonly Observation[]>;
  /** How cases are sent until the check is decided; undefined where all are sent. */
  readonly sequence?: (settings: Settings) => LookPlan | undefined;
}

/** A check as commands and gates run it: one row of the table in `index.ts`. */
export interface CheckRow {
  readonly name: CheckName;
  readonly question: string;
  readonly needs: readonly TestBedNeed[];
  /** @throws OctavoError `invalid_option` that names the setting */
  checkSettings(settings: unknown): void;
  /**
   * Collects, judges, and makes an A/A run on what was observed.
   *
   * @throws OctavoError `invalid_option` when the bed lacks what the check needs, or a setting is wrong
   */
  run(bed: TestBed, settings: unknown): Promise<CheckRun>;
  /** Judges what was recorded elsewhere. */
  judge(observations: readonly Observation[], settings: unknown): CheckResult;
  /** Judges what was observed with its conditions dealt by chance; undefined where that needs traffic of its own. */
  falseAlarms(
    observations: readonly Observation[],
    settings: unknown,
    options: { readonly runs: number; readonly seed: number },
  ): FalseAlarms | undefined;
}

export interface CheckRun {
  readonly observations: readonly Observation[];
  readonly result: CheckResult;
}

/** Makes a row of the table: settings are parsed once, here. */
export function checkRow<Settings>({
  check,
  settings: schema,
  needs,
  placebo,
  sideOf = ({ condition }) => condition,
  collect,
  sequence,
}: CheckParts<Settings>): CheckRow {
  const parse = (settings: unknown): Settings => {
    const parsed = schema.safeParse(settings ?? {});
    if (parsed.success) return parsed.data;
    const [issue] = parsed.error.issues;
    const where = [check.name, ...(issue?.path ?? [])].join(".");
    throw new OctavoError("invalid_option", `${where}: ${issue?.message ?? "is not valid"}`, {
      param: where,
      cause: parsed.error,
    });
  };
  const judgeSeen = (observations: readonly Observation[], settings: Settings): CheckResult => {
    const scored = unitScores(observations);
    const result = judgeUnlessBroken((seen) => check.judge(seen, settings), scored.observations, sideOf);
    return scored.notes.length === 0 ? result : { ...result, notes: [...result.notes, ...scored.notes] };
  };
  return {
    name: check.name,
    question: check.question,
    needs,
    checkSettings: (settings) => void parse(settings),
    judge: (observations, settings) => judgeSeen(observations, parse(settings)),
    falseAlarms(observations, settings, options) {
      const parsed = parse(settings);
      if (placebo === undefined) return undefined;
      const { observations: scored } = unitScores(observations);
      return countFalseAlarms((dealt) => check.judge(dealt, parsed), placebo(parsed), scored, options);
    },
    async run(bed, settings) {
      const parsed = parse(settings);
      const missing = needs.find((need) => lacks(bed, need));
      if (missing !== undefined)
        throw new OctavoError("invalid_option", `${check.name}: ${howToGive[missing]}`, { param: missing });
      const judge = (seen: readonly Observation[]) => check.judge(seen, parsed);
      const looks = sequence?.(parsed);
      const collected =
        looks === undefined
          ? { observations: await collect(bed, parsed), notes: [] }
          : await collectUntilDecided(
              bed,
              looks,
              (part) => collect(part, parsed),
              (seen) => judgeSeen(seen, parsed).verdict,
            );
      const { observations } = collected;
      const judged = judgeSeen(observations, parsed);
      const result = { ...judged, notes: [...judged.notes, ...collected.notes] };
      if (placebo === undefined || observations.length === 0) return { observations, result };
      const falseAlarms = await alongsideFalseAlarms(judge, placebo(parsed), observations, bed);
      const notes = [...result.notes, falseAlarmNote(falseAlarms)];
      return { observations, result: { ...result, notes, falseAlarms } };
    },
  };
}

function lacks(bed: TestBed, need: TestBedNeed): boolean {
  const value = bed[need];
  return value === undefined || (Array.isArray(value) && value.length < (need === "replicas" ? 2 : 1));
}

const howToGive: Readonly<Record<TestBedNeed, string>> = {
  baseline: "needs a baseline to hold the candidate against (--baseline URL, or targets.baseline)",
  replicas: "needs at least two replicas (--replica URL twice, or targets.replicas)",
  startReplica: "needs a command that starts one more replica (--start-replica, or targets.start_replica)",
  cases: "needs cases (--dataset FILE, or datasets)",
  evaluators: "needs at least one evaluator (--evaluator NAME, or evaluators)",
};
