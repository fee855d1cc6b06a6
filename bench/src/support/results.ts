import { execFileSync } from "node:child_process";
import { cpus, totalmem } from "node:os";
import { fileURLToPath } from "node:url";
import { writeResults } from "./merged-results.js";

/** One measured figure. `target` is the bound it is held to, in the same unit. */
export interface BenchCase {
  readonly name: string;
  readonly unit: string;
  readonly octavo: number;
  readonly target?: { readonly atMost?: number; readonly atLeast?: number };
  readonly details?: Readonly<Record<string, unknown>>;
}

export interface BenchMachine {
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGiB: number;
  readonly node: string;
}

/** Where, when and of what something was measured. */
export interface RunRecord {
  readonly machine: BenchMachine;
  /** Short hash of the checkout. */
  readonly commit: string;
  readonly date: string;
}

export const resultsFolder = fileURLToPath(new URL("../../results/", import.meta.url));

export function thisRun(): RunRecord {
  return { machine: thisMachine(), commit: currentCommit(), date: new Date().toISOString().slice(0, 10) };
}

export function thisMachine(): BenchMachine {
  return {
    cpu: cpus()[0]?.model.trim() ?? "unknown",
    cores: cpus().length,
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    node: process.version,
  };
}

/** Writes `bench/results/NAME.json` and prints the cases as a table. */
export function report(benchmark: string, cases: readonly BenchCase[]): void {
  writeResults(`${resultsFolder}${benchmark}.json`, { benchmark, ...thisRun(), cases });
  printCases(cases);
}

/** A table of cases, and which targets they meet. */
export function printCases(cases: readonly BenchCase[]): void {
  const width = Math.max(...cases.map((item) => item.name.length));
  for (const { name, unit, octavo, target } of cases) {
    const bound = [
      ...(target?.atMost === undefined ? [] : [`at most ${target.atMost}`]),
      ...(target?.atLeast === undefined ? [] : [`at least ${target.atLeast}`]),
    ];
    const verdict = target === undefined ? "" : meets(octavo, target) ? "  met" : "  MISSED";
    process.stdout.write(
      `${name.padEnd(width)}  ${octavo.toFixed(2).padStart(10)} ${unit}${bound.length > 0 ? `  (${bound.join(", ")})` : ""}${verdict}\n`,
    );
  }
}

function meets(value: number, target: NonNullable<BenchCase["target"]>): boolean {
  return (
    value <= (target.atMost ?? Number.POSITIVE_INFINITY) &&
    value >= (target.atLeast ?? Number.NEGATIVE_INFINITY)
  );
}

function currentCommit(): string {
  try {
    return execFileSync("git", ["rev-parse", "--short", "HEAD"], {
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"],
    }).trim();
  } catch {
    return "unknown";
  }
}
