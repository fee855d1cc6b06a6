import type { Job, Metric } from "./contenders/contender.js";
import type { CaseGroup, CpuOptions } from "./flags.js";
import type { Bound } from "./limits.js";
import type { ModelFile } from "./models/model-file.js";
import type { FileType } from "./models/quantisation-mix.js";
import type { ShapeName } from "./models/shapes.js";

export const peerNames = ["llama.cpp", "node-llama-cpp", "openvino", "vllm"] as const;
export type PeerName = (typeof peerNames)[number];

/** A bound on a figure: on the ratio to the peer, on Octavo's own value, or on the share of the machine's limit. */
export interface FigureBound {
  readonly on: "ratio" | "octavo" | "share of limit";
  readonly atLeast?: number;
  readonly atMost?: number;
}

/** One number read from a case's measurements. */
export interface CaseFigure {
  /** Follows the case's name; empty for its main figure. */
  readonly label: string;
  readonly metric: Metric;
  readonly unit: string;
  /** Multiplies what was measured into the unit. */
  readonly scale?: number;
  readonly isBetter: "higher" | "lower";
  readonly bound?: (model: ModelFile) => Bound;
  readonly own?: readonly FigureBound[];
  readonly peers?: Readonly<Partial<Record<PeerName, FigureBound>>>;
}

export interface CaseSpec {
  readonly group: CaseGroup;
  readonly name: string;
  readonly shape: ShapeName;
  readonly type: FileType;
  readonly job: Job;
  readonly figures: readonly CaseFigure[];
  /** Those beside Octavo; measured where they are there and can do the job. */
  readonly peers: readonly PeerName[];
  readonly isa?: "avx2";
  /** Requests arrive at this share of the rate that the slowest contender sustains, which is measured first. */
  readonly shareOfCapacity?: number;
}

/** The cases of a group for a model. */
export type CaseMaker = (shape: ShapeName, type: FileType, options: CpuOptions) => CaseSpec[];

export const atLeast = (value: number, on: FigureBound["on"] = "ratio"): FigureBound => ({
  on,
  atLeast: value,
});
export const atMost = (value: number, on: FigureBound["on"] = "ratio"): FigureBound => ({
  on,
  atMost: value,
});
