import { OctavoError } from "@octavo/protocol/errors";
import type { Contender, Job, MeasureContext, Measurement } from "../contenders/contender.js";
import type { Limits } from "../limits.js";
import { median } from "../../support/median.js";

export interface CaseSample {
  readonly contender: string;
  readonly measurement: Measurement;
  /** How the contender ran, where it has several ways. */
  readonly setting?: string;
  /** The lower of the limits measured just before and just after. */
  readonly limits: Limits;
}

export interface CaseSamples {
  readonly samples: readonly CaseSample[];
  /** Samples that were thrown away because the machine had lost half of its bandwidth. */
  readonly numRepeated: number;
  /** Why a contender gave nothing. */
  readonly failures: ReadonlyMap<string, OctavoError>;
}

export interface MeasuredCase {
  readonly job: Job;
  /** What is measured instead of `job` once the contenders are prepared for it. */
  readonly settleJob?: (contenders: readonly Contender[]) => Promise<Job>;
  readonly contenders: readonly Contender[];
  readonly repeats: number;
  readonly context: MeasureContext;
  readonly measureLimits: () => Promise<Limits>;
  /** Read bandwidths of the whole run so far; what this case meets is added. */
  readonly bandwidths: number[];
  readonly onSample?: (sample: CaseSample) => void;
}

/** A measurement that takes longer is made once: its own length averages the machine's moods. */
const LONG_MS = 120_000;
const MAX_REPEATED = 3;
const LOST_SHARE = 0.5;

/**
 * Measures the contenders in turn, each time in the opposite order, the machine's limits between them. A sample taken while the
 * bandwidth was below half of the run's median is thrown away and taken again.
 */
export async function runCase(run: MeasuredCase): Promise<CaseSamples> {
  const samples: CaseSample[] = [];
  const failures = new Map<string, OctavoError>();
  const done = new Set<string>();
  let numRepeated = 0;
  for (const contender of run.contenders) {
    try {
      await contender.prepare?.(run.job, run.context);
    } catch (thrown) {
      failures.set(contender.name, OctavoError.from(thrown));
      done.add(contender.name);
    }
  }
  const job = (await run.settleJob?.(run.contenders.filter(({ name }) => !done.has(name)))) ?? run.job;
  let before = await run.measureLimits();
  const take = async (contender: Contender): Promise<CaseSample | undefined> => {
    const startMs = performance.now();
    try {
      const measurement = await contender.measure(job, run.context);
      const after = await run.measureLimits();
      if (performance.now() - startMs > LONG_MS) done.add(contender.name);
      const limits = lower(before, after);
      before = after;
      run.bandwidths.push(limits.readGBps);
      const setting = contender.setting?.();
      return { contender: contender.name, measurement, limits, ...(setting !== undefined && { setting }) };
    } catch (thrown) {
      failures.set(contender.name, OctavoError.from(thrown));
      done.add(contender.name);
      return undefined;
    }
  };
  for (let round = 0; round < run.repeats; round++) {
    const order = round % 2 === 0 ? run.contenders : run.contenders.toReversed();
    for (const contender of order) {
      if (done.has(contender.name)) continue;
      let sample = await take(contender);
      while (sample !== undefined && hasLostBandwidth(sample, run.bandwidths) && numRepeated < MAX_REPEATED) {
        numRepeated += 1;
        sample = await take(contender);
      }
      if (sample === undefined) continue;
      samples.push(sample);
      run.onSample?.(sample);
    }
  }
  return { samples, numRepeated, failures };
}

export function hasLostBandwidth(sample: CaseSample, bandwidths: readonly number[]): boolean {
  return sample.limits.readGBps < LOST_SHARE * median(bandwidths);
}

function lower(a: Limits, b: Limits): Limits {
  return {
    readGBps: Math.min(a.readGBps, b.readGBps),
    int8Gops: Math.min(a.int8Gops, b.int8Gops),
    bf16Gflops: Math.min(a.bf16Gflops, b.bf16Gflops),
  };
}
