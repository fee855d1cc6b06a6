import type { CaseFigure, CaseSpec, FigureBound } from "../case-spec.js";
import { fullName } from "../cases.js";
import type { Metric } from "../contenders/contender.js";
import { type Limits, shareOf } from "../limits.js";
import type { ModelFile } from "../models/model-file.js";
import type { CaseSamples, CaseSample } from "../run/run-case.js";
import { median } from "../../support/median.js";

/** One line of the results: Octavo's figure, beside a peer's or alone. Medians over `samples`. */
export interface CaseResult {
  readonly name: string;
  readonly unit: string;
  readonly isBetter: "higher" | "lower";
  readonly octavo: number;
  readonly peerName?: string;
  readonly peer?: number;
  /** The setting with which the peer was fastest. */
  readonly peerSetting?: string;
  /** octavo / peer */
  readonly ratio?: number;
  readonly target?: FigureBound;
  readonly isMet?: boolean;
  readonly limit?: {
    readonly name: keyof Limits;
    readonly value: number;
    /** Median of the shares of the limit that was measured beside each sample. */
    readonly octavoShare?: number;
    readonly peerShare?: number;
  };
  readonly samples: { readonly octavo: readonly number[]; readonly peer?: readonly number[] };
  /** Samples thrown away and taken again because the machine had lost its bandwidth. */
  readonly numRepeated: number;
  readonly threads: number;
}

const OCTAVO = "octavo";

/** All lines of a case; none where Octavo itself gave nothing. */
export function summariseCase(
  spec: CaseSpec,
  model: ModelFile,
  threads: number,
  { samples, numRepeated }: CaseSamples,
): CaseResult[] {
  return spec.figures.flatMap((figure) => {
    const values = valuesOf(samples, OCTAVO, figure);
    if (values.length === 0) return [];
    const bound = figure.bound?.(model);
    const shareBy = (contender: string): number | undefined => {
      if (bound === undefined) return undefined;
      const shares = samples
        .filter((sample) => sample.contender === contender)
        .flatMap((sample) => {
          const value = sample.measurement[figure.metric];
          return value === undefined ? [] : (shareOf(value, bound, sample.limits) ?? []);
        });
      return shares.length === 0 ? undefined : median(shares);
    };
    const octavoShare = shareBy(OCTAVO);
    const base = {
      name: figure.label === "" ? fullName(spec) : `${fullName(spec)}: ${figure.label}`,
      unit: figure.unit,
      isBetter: figure.isBetter,
      octavo: median(values),
      numRepeated,
      threads,
    };
    const limitWith = (peerShare?: number): Pick<CaseResult, "limit"> =>
      bound === undefined
        ? {}
        : {
            limit: {
              name: bound.limit,
              value: median(samples.map((sample) => sample.limits[bound.limit])),
              ...(octavoShare !== undefined && { octavoShare }),
              ...(peerShare !== undefined && { peerShare }),
            },
          };
    const beside = spec.peers.flatMap((peerName): CaseResult[] => {
      const peers = valuesOf(samples, peerName, figure);
      if (peers.length === 0) return [];
      const peerSetting = samples.find(({ contender }) => contender === peerName)?.setting;
      const line = {
        ...base,
        peerName,
        peer: median(peers),
        ...(peerSetting !== undefined && { peerSetting }),
        ratio: base.octavo / median(peers),
        ...limitWith(shareBy(peerName)),
        samples: { octavo: values, peer: peers },
      };
      return [judged(line, figure.peers?.[peerName])];
    });
    const alone = { ...base, ...limitWith(), samples: { octavo: values } };
    const own = (figure.own ?? []).map((target) => judged(alone, target));
    return own.length + beside.length > 0 ? [...own, ...beside] : [alone];
  });
}

function valuesOf(samples: readonly CaseSample[], contender: string, figure: CaseFigure): number[] {
  const metric: Metric = figure.metric;
  return samples.flatMap((sample) => {
    const value = sample.contender === contender ? sample.measurement[metric] : undefined;
    return value === undefined ? [] : [value * (figure.scale ?? 1)];
  });
}

function judged(line: CaseResult, target: FigureBound | undefined): CaseResult {
  if (target === undefined || (target.atLeast === undefined && target.atMost === undefined)) return line;
  const value = { ratio: line.ratio, octavo: line.octavo, "share of limit": line.limit?.octavoShare }[
    target.on
  ];
  if (value === undefined) return { ...line, target };
  const isMet = value >= (target.atLeast ?? -Infinity) && value <= (target.atMost ?? Infinity);
  return { ...line, target, isMet };
}
