import { activations } from "../checks/gate-ops.js";
import { kvDtypes } from "../kv-bytes.js";
import { type WeightType, weightTypes } from "../weights.js";
import { kernelKinds, kernelPaths } from "./kernel-paths.js";
import { opKinds, rowErrors } from "./decode-results.js";
import { outputIntegers, outputKinds, outputReals, poolings } from "./encode-outputs.js";

const weightTypeNames = Object.keys(weightTypes) as WeightType[];
/** When a matrix is packed: see `MatrixOptions`. */
const packings = ["now", "in_place", "later"] as const;

/** What travels as an index, by its name in C++. `checkInterface` refuses an addon that lists anything else. */
export const enumerations: Readonly<Record<string, readonly string[]>> = {
  WeightType: weightTypeNames.map(
    (name) => `${name} ${weightTypes[name].columns} ${weightTypes[name].bytes}`,
  ),
  KvDtype: kvDtypes,
  Activation: activations,
  Packing: packings,
  OpKind: opKinds,
  OutputKind: outputKinds,
  Pooling: poolings,
  OutputInteger: outputIntegers,
  OutputReal: outputReals,
  RowError: rowErrors,
  KernelKind: kernelKinds,
  KernelPath: kernelPaths,
};

export const weightTypeIndex = (type: WeightType): number => weightTypeNames.indexOf(type);
export const kvDtypeIndex = (dtype: (typeof kvDtypes)[number]): number => kvDtypes.indexOf(dtype);
export const packingIndex = (packing: (typeof packings)[number]): number => packings.indexOf(packing);
