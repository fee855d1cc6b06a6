/** What has kernels of its own: weights in f32 and f16, in bf16, in integers with scales, in codebooks; all ops but their products. */
export const kernelKinds = ["f32", "bf16", "quantised", "codebook", "ops"] as const;
/** Instruction sets that kernels are written for. */
export const kernelPaths = ["scalar", "neon", "avx2", "avx512", "avx512_bf16", "avx512_amx"] as const;
export type KernelKind = (typeof kernelKinds)[number];
export type KernelPath = (typeof kernelPaths)[number];

/** A path and the seconds that a kind's sample of work took on it. */
export type ProbedPath = readonly [path: KernelPath, seconds: number];
/** Times by kind; the path that the machine's features suggest comes first. */
export type ProbedTimes = Readonly<Record<KernelKind, readonly ProbedPath[]>>;
export type ChosenPaths = Readonly<Partial<Record<KernelKind, KernelPath>>>;
