import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { cpus, totalmem } from "node:os";
import { fileURLToPath } from "node:url";

/** One measured figure. `target` is the bound it is held to, in the same unit. */
export interface BenchCase {
  readonly name: string;
  readonly unit: string;
  readonly octavo: number;
  readonly target?: { readonly atMost?: number; readonly atLeast?: number };
  readonly details?: Readonly<Record<string, unknown>>;
}

export interface Machine {
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGiB: number;
  readonly node: string;
}

export interface BenchResult {
  readonly benchmark: string;
  readonly machine: Machine;
  readonly commit: string;
  readonly date: string;
  readonly cases: readonly BenchCase[];
}

export const resultsFolder = fileURLToPath(new URL("../../results/", import.meta.url));

export function thisMachine(): Machine {
  return {
    cpu: cpus()[0]?.model.trim() ?? "unknown",
    cores: cpus().length,
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    node: process.version,
  };
}

export function today(): string {
  return new Date().toISOString().slice(0, 10);
}

/** Writes `bench/results/NAME.json` and prints the cases as a table. */
export function report(benchmark: string, cases: readonly BenchCase[]): void {
  const result: BenchResult = {
    benchmark,
    machine: thisMachine(),
    commit: currentCommit(),
    date: today(),
    cases,
  };
  mkdirSync(resultsFolder, { recursive: true });
  writeFileSync(`${resultsFolder}${benchmark}.json`, `${JSON.stringify(result, null, 2)}\n`);
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

/** Short hash of the checkout. */
export function currentCommit(): string {
  try {
    return execFileSync("git", ["rev-parse", "--short", "HEAD"], {
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"],
    }).trim();
  } catch {
    return "unknown";
  }
}
