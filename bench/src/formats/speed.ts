import type { Job, Measurement, Metric } from "../cpu/contenders/contender.js";
import { octavo } from "../cpu/contenders/octavo.js";
import { median } from "../support/median.js";
import type { Artifact } from "./artifacts.js";

export const paces = ["prefill", "decode1", "decode8"] as const;
/** A prompt alone, one stream, eight streams. */
export type Pace = (typeof paces)[number];

/** Medians over the rounds. */
export interface Speed {
  readonly weightBytes: number;
  /** Tokens a second. */
  readonly tokensPerSecond: Readonly<Record<Pace, number>>;
  /** Times the first artifact's, which each round compares within itself. */
  readonly ratio: Readonly<Record<Pace, number>>;
  /** Absent for the first artifact itself. */
  readonly target?: { readonly on: "ratio"; readonly atLeast: number };
  readonly isMet?: boolean;
  /** The process's most resident memory over the artifact's bytes. */
  readonly peakMemoryRatio: number;
  readonly rounds: number;
}

const jobs: Readonly<Record<Pace | "memory", Job>> = {
  prefill: { kind: "prefill", promptTokens: 512, rounds: 3 },
  decode1: { kind: "decode", streams: 1, promptTokens: 128, newTokens: 48 },
  decode8: { kind: "decode", streams: 8, promptTokens: 128, newTokens: 24 },
  memory: { kind: "memory", promptTokens: 64, newTokens: 4 },
};
const metricOf: Readonly<Record<Pace | "memory", Metric>> = {
  prefill: "prefillTokensPerSecond",
  decode1: "decodeTokensPerSecond",
  decode8: "decodeTokensPerSecond",
  memory: "peakBytes",
};
/** Fewer bytes must not cost time. */
const target = { on: "ratio", atLeast: 1 } as const;

export interface SpeedOptions {
  readonly threads: number;
  readonly rounds: number;
  readonly vocabSize: number;
  readonly contextLength: number;
  /** What the rounds so far have given, in the artifacts' order. */
  readonly onRound: (done: number, speeds: readonly Speed[]) => void;
}

/** One artifact's figures, a value a round. */
export type Samples = Readonly<Record<Pace | "memory", readonly number[]>>;

/**
 * Measures all artifacts in turn, in the opposite order each time, every job in a fresh process. Memory, which no neighbour on the
 * machine disturbs, is measured in the first round alone.
 */
export async function measureSpeeds(
  artifacts: readonly Artifact[],
  { threads, rounds, onRound, ...shape }: SpeedOptions,
): Promise<void> {
  const all = artifacts.map((artifact) => ({
    artifact,
    samples: noSamples(),
  }));
  for (let round = 0; round < rounds; round++) {
    for (const { artifact, samples } of round % 2 === 0 ? all : all.toReversed()) {
      for (const name of round === 0 ? ([...paces, "memory"] as const) : paces) {
        const measurement: Measurement = await octavo.measure(jobs[name], {
          model: { path: artifact.path, shape },
          threads,
          env: {},
        });
        samples[name].push(measurement[metricOf[name]] ?? Number.NaN);
      }
    }
    const baseline = all[0]?.samples ?? noSamples();
    onRound(
      round + 1,
      all.map(({ artifact, samples }) => speedOf(artifact.weightBytes, samples, baseline)),
    );
  }
}

function noSamples(): Record<Pace | "memory", number[]> {
  return { prefill: [], decode1: [], decode8: [], memory: [] };
}

/** @param baseline - the first artifact's samples, of the same rounds; held to nothing where they are `samples` themselves */
export function speedOf(weightBytes: number, samples: Samples, baseline: Samples): Speed {
  const each = (of: (pace: Pace) => number): Record<Pace, number> => ({
    prefill: of("prefill"),
    decode1: of("decode1"),
    decode8: of("decode8"),
  });
  const ratio = each((pace) =>
    median(samples[pace].map((value, round) => value / (baseline[pace][round] ?? Number.NaN))),
  );
  return {
    weightBytes,
    tokensPerSecond: each((pace) => median(samples[pace])),
    ratio,
    ...(samples !== baseline && {
      target,
      isMet: paces.every((pace) => ratio[pace] >= target.atLeast),
    }),
    peakMemoryRatio: median(samples.memory) / weightBytes,
    rounds: samples.prefill.length,
  };
}
