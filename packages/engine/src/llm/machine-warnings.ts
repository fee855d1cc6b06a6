import type { BackendInfo } from "@octavo/kernels";

export interface MachineFacts {
  readonly info: Pick<BackendInfo, "instructionSet" | "numThreads">;
  /** Processors that this process may run on. */
  readonly numProcessors: number;
  /** Value of OCTAVO_ISA. */
  readonly wantedIsa: string | undefined;
}

/** Reasons why this machine may be slower than expected. */
export function machineWarnings({ info, numProcessors, wantedIsa }: MachineFacts): string[] {
  const warnings: string[] = [];
  const { instructionSet, numThreads } = info;
  if (wantedIsa !== undefined && wantedIsa !== "" && wantedIsa !== instructionSet) {
    warnings.push(
      `OCTAVO_ISA asks for ${wantedIsa}, which this machine or build does not have; ${instructionSet} is used.`,
    );
  } else if (instructionSet === "scalar" && wantedIsa !== "scalar") {
    warnings.push(
      "This processor has none of the instruction sets that the kernels are written for (AVX-512 with VNNI, AVX2, " +
        "ARMv8.2 with dot products), so portable ones run, several times slower.",
    );
  }
  if (numThreads > numProcessors) {
    const processors = numProcessors === 1 ? "is 1 processor" : `are ${numProcessors} processors`;
    warnings.push(
      `${numThreads} threads were asked for, but there ${processors} to run them; more threads than processors only get in each other's way.`,
    );
  }
  return warnings;
}
