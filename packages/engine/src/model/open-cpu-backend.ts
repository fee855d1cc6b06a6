import { type Backend, createCpuBackend } from "@octavo/kernels";
import { given } from "@octavo/protocol/options";

interface CpuPlace {
  readonly kernels?: string | undefined;
  readonly numThreads?: number | undefined;
}

/** The CPU as one rank, or as several that share every layer; those are read only where they are asked for. */
export async function openCpuBackend({ kernels, numThreads }: CpuPlace, numRanks: number): Promise<Backend> {
  const options = given({ kernels, numThreads });
  if (numRanks === 1) return createCpuBackend(options);
  const { createRankedBackend } = await import("@octavo/kernels/ranked-backend");
  return createRankedBackend({ ...options, numRanks });
}
