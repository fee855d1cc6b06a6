import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { OctavoError } from "@octavo/protocol/errors";
import type { Machine } from "../../support/results.js";
import type { CaseResult } from "./summarise.js";

/** Where, when and of what a figure was measured. */
export interface RunRecord {
  readonly machine: Machine;
  readonly commit: string;
  readonly date: string;
  /** What the peers call themselves, by their names here. */
  readonly peers: Readonly<Record<string, string>>;
}

export interface CpuResults extends RunRecord {
  readonly benchmark: "cpu";
  /** Each keeps the record of the run that it is from. */
  readonly cases: readonly (CaseResult & { readonly run: RunRecord })[];
}

/** Figures of one run take the place of earlier ones of the same name, peer and kind of target; the others stay. */
export function mergeResults(
  earlier: CpuResults | undefined,
  run: RunRecord,
  cases: readonly CaseResult[],
): CpuResults {
  const merged = new Map(earlier?.cases.map((line) => [keyOf(line), line]));
  for (const line of cases) merged.set(keyOf(line), { ...line, run });
  return { benchmark: "cpu", ...run, cases: [...merged.values()] };
}

function keyOf({ name, peerName, target }: CaseResult): string {
  return [name, peerName ?? "", peerName === undefined ? (target?.on ?? "") : ""].join("|");
}

/** Merges into a file, which is made where there is none. */
export function saveResults(path: string, run: RunRecord, cases: readonly CaseResult[]): CpuResults {
  const results = mergeResults(existsSync(path) ? readResults(path) : undefined, run, cases);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, `${JSON.stringify(results, null, 2)}\n`);
  return results;
}

function readResults(path: string): CpuResults {
  let parsed: unknown;
  try {
    parsed = JSON.parse(readFileSync(path, "utf8"));
  } catch (cause) {
    throw new OctavoError("invalid_option", `${path} is not JSON; move it away or name another --output`, {
      cause,
      param: "output",
    });
  }
  const isResults =
    typeof parsed === "object" &&
    parsed !== null &&
    "benchmark" in parsed &&
    parsed.benchmark === "cpu" &&
    "cases" in parsed &&
    Array.isArray(parsed.cases);
  if (!isResults) {
    throw new OctavoError(
      "invalid_option",
      `${path} holds no results of this benchmark; name another --output`,
      {
        param: "output",
      },
    );
  }
  return parsed as CpuResults;
}
