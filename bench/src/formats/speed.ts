import type { Job, Measurement, Metric } from "../cpu/contenders/contender.js";
import { octavo } from "../cpu/contenders/octavo.js";
import { median } from "../support/median.js";
import type { Artifact } from "./artifacts.js";

/** Medians; tokens a second, and the process's most resident memory over the artifact's bytes. */
export interface Speed {
  readonly prefill: number;
  readonly decode1: number;
  readonly decode8: number;
  readonly peakMemoryRatio: number;
}

const jobs = {
  prefill: { kind: "prefill", promptTokens: 512, rounds: 3 },
  decode1: { kind: "decode", streams: 1, promptTokens: 128, newTokens: 48 },
  decode8: { kind: "decode", streams: 8, promptTokens: 128, newTokens: 24 },
  memory: { kind: "memory", promptTokens: 64, newTokens: 4 },
} as const satisfies Readonly<Record<string, Job>>;

export interface SpeedOptions {
  readonly threads: number;
  readonly rounds: number;
  readonly vocabSize: number;
  readonly contextLength: number;
  readonly onRound?: (round: number) => void;
}

/** Measures all artifacts in turn, in the opposite order each time, every job in a fresh process. */
export async function measureSpeeds(
  artifacts: readonly Artifact[],
  { threads, rounds, onRound, ...shape }: SpeedOptions,
): Promise<Speed[]> {
  const samples = artifacts.map((artifact) => ({
    artifact,
    seen: new Map<keyof typeof jobs, Measurement[]>(),
  }));
  for (let round = 0; round < rounds; round++) {
    onRound?.(round);
    for (const { artifact, seen } of round % 2 === 0 ? samples : samples.toReversed()) {
      for (const name of ["prefill", "decode1", "decode8", "memory"] as const) {
        const measurement = await octavo.measure(jobs[name], {
          model: { path: artifact.path, shape },
          threads,
          env: {},
        });
        seen.set(name, [...(seen.get(name) ?? []), measurement]);
      }
    }
  }
  return samples.map(({ artifact, seen }) => {
    const middle = (name: keyof typeof jobs, metric: Metric): number =>
      median((seen.get(name) ?? []).map((measurement) => measurement[metric] ?? Number.NaN));
    return {
      prefill: middle("prefill", "prefillTokensPerSecond"),
      decode1: middle("decode1", "decodeTokensPerSecond"),
      decode8: middle("decode8", "decodeTokensPerSecond"),
      peakMemoryRatio: middle("memory", "peakBytes") / artifact.weightBytes,
    };
  });
}
