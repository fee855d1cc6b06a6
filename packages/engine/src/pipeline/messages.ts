import type { KvCacheSpec, StepPlan, StepStates } from "@octavo/kernels";
import type { FloatType } from "@octavo/artifacts/checkpoint/tensor-storage";
import type { StagePlace } from "../model/load-model.js";

/** What a stage loads. Its files lie at the same path on its machine. */
export interface StageLoad {
  readonly path: string;
  readonly name: string;
  readonly quantization?: string | undefined;
  readonly stage: StagePlace;
  readonly numRanks: number;
  readonly numThreads?: number | undefined;
  readonly kernels: string;
  readonly dtype?: FloatType | undefined;
  readonly maxTokens: number;
  readonly maxModelLen: number;
  readonly inPlace: boolean;
  /** What the artifact must be, where the files are another host's. */
  readonly artifactDigest?: string | undefined;
  /** Of what the kernels compute with: other kernels may give other bits. */
  readonly kernelFeatures: string;
}

export type StageRequest =
  | { readonly kind: "load"; readonly load: StageLoad }
  /** Of the whole model. */
  | { readonly kind: "cache"; readonly spec: KvCacheSpec }
  | { readonly kind: "step"; readonly plan: PlainPlan };

export type StageReply =
  | { readonly kind: "loaded"; readonly weightBytes: number }
  | { readonly kind: "made" }
  | { readonly kind: "done"; readonly computeMs: number }
  | { readonly kind: "failed"; readonly code: string; readonly message: string };

/** A step without what only the last stage reads: its arrays follow it in the order of `planArrays`. */
export interface PlainPlan {
  readonly numTokens: number;
  readonly numSequences: number;
  readonly hasTypes: boolean;
  readonly hasStates: boolean;
  readonly hasRows: boolean;
}

const stateFields = [
  "slots",
  "sources",
  "starts",
  "ends",
  "snapshotStarts",
  "snapshotPositions",
  "snapshotSlots",
] as const satisfies readonly (keyof StepStates)[];

/** A step and the rows of the stage before, for the wire. */
export function packPlan(
  plan: StepPlan,
  rows: Float32Array | undefined,
): { readonly plan: PlainPlan; readonly arrays: (Int32Array | Float32Array)[] } {
  const { numTokens, numSequences, tokenTypes, states } = plan;
  const blocks = plan.blockTableStarts[numSequences] ?? 0;
  return {
    plan: {
      numTokens,
      numSequences,
      hasTypes: tokenTypes !== undefined,
      hasStates: states !== undefined,
      hasRows: rows !== undefined,
    },
    arrays: [
      plan.tokenIds.subarray(0, numTokens),
      plan.positions.subarray(0, numTokens),
      plan.slots.subarray(0, numTokens),
      plan.queryStarts.subarray(0, numSequences + 1),
      plan.contextLengths.subarray(0, numSequences),
      plan.blockTableStarts.subarray(0, numSequences + 1),
      plan.blockTables.subarray(0, blocks),
      ...(tokenTypes === undefined ? [] : [tokenTypes.subarray(0, numTokens)]),
      ...(states === undefined ? [] : stateFields.map((field) => states[field])),
      ...(rows === undefined ? [] : [rows]),
    ],
  };
}

const noIds = new Int32Array(0);

/** The step as a stage runs it; what is missing or of another kind is refused by the backend's own checks. */
export function unpackPlan(plain: PlainPlan, arrays: readonly (Int32Array | Float32Array)[]): StepPlan {
  const { numTokens, numSequences } = plain;
  let at = 0;
  const integers = (): Int32Array => {
    const array = arrays[at++];
    return array instanceof Int32Array ? array : noIds;
  };
  const plan: StepPlan = {
    numTokens,
    numSequences,
    tokenIds: integers(),
    positions: integers(),
    slots: integers(),
    queryStarts: integers(),
    contextLengths: integers(),
    blockTableStarts: integers(),
    blockTables: integers(),
    outputTokens: noIds,
    outputs: [],
    ...(plain.hasTypes && { tokenTypes: integers() }),
    ...(plain.hasStates && {
      states: Object.fromEntries(stateFields.map((field) => [field, integers()])) as unknown as StepStates,
    }),
  };
  const rows = arrays[at];
  return plain.hasRows && rows instanceof Float32Array ? { ...plan, received: rows } : plan;
}
