import { Journal, journalKey } from "@octavo/evals";
import { asNumber, asRecord, asString } from "@octavo/protocol";
import type { Spending } from "./budget.js";

/** A candidate's answer to a case, scored. */
export interface CandidateResult {
  readonly caseId: string;
  /** 0 to 1: the mean of the evaluators. */
  readonly score: number;
  readonly output: string;
  /** What evaluators said, as a teacher reads it. */
  readonly feedback: string;
}

/** What was asked and paid for: a scored answer, or a text of the teacher's. */
export interface PaidRow {
  readonly cost: Spending;
  readonly result?: CandidateResult;
  readonly reply?: string;
}

/**
 * Everything a search has paid for, by what was asked. A search is a function of its seed and of these rows: run again with the
 * same journal it takes the same way, pays nothing twice, and goes on where it was cut off.
 */
export function openSearchJournal(path: string): Promise<Journal<PaidRow>> {
  return Journal.open<PaidRow>(path, {
    header: '{"journal":"octavo-optimize","version":1}',
    rows: "an optimisation",
    parse(fields) {
      const cost = asRecord(fields["cost"]);
      const [calls, tokens, dollars, gpuSeconds] = ["calls", "tokens", "dollars", "gpuSeconds"].map((unit) =>
        asNumber(cost[unit]),
      );
      if (calls === undefined || tokens === undefined || dollars === undefined || gpuSeconds === undefined)
        return undefined;
      const spending = { calls, tokens, dollars, gpuSeconds };
      const reply = asString(fields["reply"]);
      if (reply !== undefined) return { cost: spending, reply };
      const { caseId, score, output, feedback } = asRecord(fields["result"]);
      const isResult =
        typeof caseId === "string" &&
        typeof score === "number" &&
        typeof output === "string" &&
        typeof feedback === "string";
      return isResult ? { cost: spending, result: { caseId, score, output, feedback } } : undefined;
    },
  });
}

/** What a search has paid for: read when it goes on after a stop. */
export type SearchJournal = Pick<Journal<PaidRow>, "read" | "append" | "flush">;

export { journalKey };
