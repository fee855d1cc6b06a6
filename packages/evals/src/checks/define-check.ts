import { asRecord, OctavoError } from "@octavo/protocol";
import type { z } from "zod";
import type { CheckResult, FalseAlarms } from "./check.js";
import { collectUntilDecided, type LookPlan } from "./collecting/until-decided.js";
import { judgeUnlessBroken } from "./judging/broken-evaluators.js";
import {
  alongsideFalseAlarms,
  countFalseAlarms,
  falseAlarmNote,
  type Placebo,
} from "./judging/false-alarms.js";
import { unitScores } from "./judging/unit-scores.js";
import type { Observation } from "./observation.js";
import { requireOf, type TestBed, type TestBedNeed } from "./test-bed.js";

/** What the author of a check writes: what it is called, how it collects observations, and how it judges them. */
export interface CheckParts<Name extends string, Settings> {
  readonly name: Name;
  /** What goes wrong in production, in one sentence. */
  readonly question: string;
  /** Strict, with a default for every setting, so that `{}` is valid. Names in snake_case, as in eval.yaml. */
  readonly settings: z.ZodType<Settings>;
  /** Without these nothing can be collected. */
  readonly needs: readonly TestBedNeed[];
  /** Settings without which nothing is collected. Default: none. */
  readonly neededSettings?: readonly string[];
  readonly collect: (bed: TestBed, settings: Settings) => Promise<readonly Observation[]>;
  /** How cases are sent until the check is decided; undefined where all are sent. */
  readonly sequence?: (settings: Settings) => LookPlan | undefined;
  /** How an A/A run is made of what was observed; absent where one needs traffic of its own. */
  readonly placebo?: (settings: Settings) => Placebo;
  /** On which side of the comparison an observation is. Default: its condition. */
  readonly sideOf?: (observation: Observation) => string;
  /** A pure function: recorded spans are judged as fresh traffic is. */
  judge(observations: readonly Observation[], settings: Settings): Judgement;
}

/** What `judge` returns; `defineCheck` names the check, sorts and cuts the moved cases, and drops notes that do not apply. */
export interface Judgement extends Omit<CheckResult, "check" | "notes"> {
  readonly notes: readonly (string | false | undefined)[];
}

/** A statistic over many observations with a verdict, and how to collect the observations. */
export interface Check<Name extends string, Settings> extends Omit<CheckParts<Name, Settings>, "judge"> {
  readonly defaults: Settings;
  judge(observations: readonly Observation[], settings: Settings): CheckResult;
}

const mostMovedCases = 50;

/** A check from its parts: settings with their defaults, how observations are collected, how they are judged. */
export function defineCheck<const Name extends string, Settings>(
  parts: CheckParts<Name, Settings>,
): Check<Name, Settings> {
  return {
    ...parts,
    defaults: parts.settings.parse({}),
    judge(observations, settings) {
      const { movedCases, notes, ...judged } = parts.judge(observations, settings);
      return {
        check: parts.name,
        ...judged,
        movedCases: movedCases.toSorted((a, b) => b.severity - a.severity).slice(0, mostMovedCases),
        notes: notes.filter((note): note is string => typeof note === "string"),
      };
    },
  };
}

/** A check as commands and gates run it: its settings are unknown until they are parsed. */
export interface CheckRow<Name extends string = string> {
  readonly name: Name;
  readonly question: string;
  readonly needs: readonly TestBedNeed[];
  readonly neededSettings: readonly string[];
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

/** What a check saw, and what it made of that. */
export interface CheckRun {
  readonly observations: readonly Observation[];
  readonly result: CheckResult;
}

/** Makes a row of the table: settings are parsed once, here. */
export function checkRow<Name extends string, Settings>(check: Check<Name, Settings>): CheckRow<Name> {
  const { name, question, needs, neededSettings = [], placebo, sideOf = conditionOf, collect } = check;
  const parse = (settings: unknown): Settings => {
    const parsed = check.settings.safeParse(settings ?? {});
    if (parsed.success) return parsed.data;
    const [issue] = parsed.error.issues;
    const where = [name, ...(issue?.path ?? [])].join(".");
    throw new OctavoError("invalid_option", `${where}: ${issue?.message ?? "is not valid"}`, {
      param: where,
      cause: parsed.error,
    });
  };
  const judgeSeen = (observations: readonly Observation[], settings: Settings): CheckResult => {
    const scored = unitScores(observations);
    const result = judgeUnlessBroken((seen) => check.judge(seen, settings), scored.observations, sideOf);
    return { ...result, notes: [...result.notes, ...scored.notes] };
  };
  return {
    name,
    question,
    needs,
    neededSettings,
    checkSettings: (settings) => void parse(settings),
    judge: (observations, settings) => judgeSeen(observations, parse(settings)),
    falseAlarms(observations, settings, options) {
      const parsed = parse(settings);
      if (placebo === undefined) return undefined;
      const { observations: scored } = unitScores(observations);
      return countFalseAlarms((dealt) => check.judge(dealt, parsed), placebo(parsed), scored, options);
    },
    async run(bed, settings) {
      const given = parse(settings);
      requireOf(bed, name, needs);
      const looks = check.sequence?.(given);
      const planned = { planned_cases: new Set(bed.cases.map(({ id }) => id)).size };
      const parsed = looks === undefined ? given : parse({ ...planned, ...asRecord(settings) });
      const { observations, notes } =
        looks === undefined
          ? { observations: await collect(bed, parsed), notes: [] }
          : await collectUntilDecided(
              bed,
              looks,
              (part) => collect(part, parsed),
              (seen) => judgeSeen(seen, parsed).verdict,
            );
      const judged = judgeSeen(observations, parsed);
      const result = { ...judged, notes: [...judged.notes, ...notes] };
      if (placebo === undefined || observations.length === 0) return { observations, result };
      const judge = (seen: readonly Observation[]) => check.judge(seen, parsed);
      const falseAlarms = await alongsideFalseAlarms(judge, placebo(parsed), observations, bed);
      return {
        observations,
        result: { ...result, notes: [...result.notes, falseAlarmNote(falseAlarms)], falseAlarms },
      };
    },
  };
}

function conditionOf({ condition }: Observation): string {
  return condition;
}
