import { OctavoError } from "@octavo/protocol";
import type { EvalCase } from "../cases/eval-case.js";
import type { Evaluator } from "../evaluators/evaluator.js";
import type { Target } from "../targets/target.js";
import type { ObservationJournal } from "./collecting/observation-journal.js";

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

/** What a check cannot do without. */
export type TestBedNeed = "baseline" | "replicas" | "startReplica" | "cases" | "evaluators";

/** @throws OctavoError `invalid_option` where the bed lacks one of them */
export function requireOf(bed: TestBed, check: string, needs: readonly TestBedNeed[]): void {
  const missing = needs.find((need) => lacks(bed, need));
  if (missing !== undefined)
    throw new OctavoError("invalid_option", `${check}: ${howToGive[missing]}`, { param: missing });
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
