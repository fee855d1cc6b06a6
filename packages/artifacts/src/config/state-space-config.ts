import { artifactInvalid } from "@octavo/text/files/artifact-file";
import type { LayerNames } from "../gguf/names.js";
import type { GgufValues } from "../gguf/values.js";
import type { StateSpaceConfig } from "../program/model-config.js";
import { checkTaps } from "../program/recurrent-layers.js";
import type { ConfigJson } from "./config-schema.js";

type Sizes = Omit<StateSpaceConfig, "kind" | "taps" | "headDim"> & {
  readonly taps: number;
  /** Columns of all heads. */
  readonly inner: number;
};

/**
 * Mamba-2's settings in the words of Bamba, Granite 4 and Falcon-H1.
 * @throws OctavoError `artifact_invalid`
 */
export function readStateSpace(
  path: string,
  config: ConfigJson,
  hiddenSize: number,
  layers: readonly boolean[],
  norm: StateSpaceConfig["norm"],
): StateSpaceConfig {
  const numHeads = config.mamba_n_heads ?? 128;
  const inner = config.mamba_d_ssm ?? (config.mamba_expand ?? 2) * hiddenSize;
  const given = config.mamba_d_head;
  if (typeof given === "number" && given * numHeads !== inner)
    throw artifactInvalid(path, `has ${numHeads} state-space heads of ${given} in ${inner} columns`);
  return checkStateSpace(path, {
    layers,
    taps: config.mamba_d_conv ?? 4,
    numGroups: config.mamba_n_groups ?? 1,
    numHeads,
    inner,
    stateSize: config.mamba_d_state ?? 256,
    hasConvolutionBias: config.mamba_conv_bias ?? true,
    hasProjectionBias: config.mamba_proj_bias ?? false,
    norm,
    ...stepBounds(path, config),
    rateForm: "log",
  });
}

/** Bounds of the step; the upper one may be infinite, which JSON cannot say. */
export function stepBounds(
  path: string,
  { time_step_limit: limit }: ConfigJson,
): Pick<StateSpaceConfig, "leastStep" | "mostStep"> {
  const [least, most] = limit ?? [];
  const bound = (value: number | string | null | undefined): number | undefined =>
    value === null || value === undefined || value === "Infinity" || value === "inf"
      ? undefined
      : Number(value);
  const [leastStep = 0, mostStep] = [bound(least), bound(most)];
  if (!(leastStep >= 0 && leastStep < (mostStep ?? Infinity)))
    throw artifactInvalid(path, `has the time_step_limit ${JSON.stringify(limit)}`);
  return { ...(leastStep > 0 && { leastStep }), ...(mostStep !== undefined && { mostStep }) };
}

/** @throws OctavoError `artifact_invalid` */
export function readStateSpaceGguf(
  values: GgufValues,
  layers: readonly boolean[],
  norm: StateSpaceConfig["norm"],
): StateSpaceConfig {
  return checkStateSpace(values.path, {
    layers,
    taps: values.needNumber("ssm.conv_kernel"),
    numGroups: values.needNumber("ssm.group_count"),
    numHeads: values.needNumber("ssm.time_step_rank"),
    inner: values.needNumber("ssm.inner_size"),
    stateSize: values.needNumber("ssm.state_size"),
    hasConvolutionBias: true,
    hasProjectionBias: false,
    norm,
    rateForm: "negative",
  });
}

/** What the kernels and a slot's size take for granted. */
export function checkStateSpace(path: string, { inner, taps, ...sizes }: Sizes): StateSpaceConfig {
  const { numHeads, numGroups, stateSize } = sizes;
  const headDim = inner / numHeads;
  const isSize = (value: number, most: number): boolean =>
    Number.isSafeInteger(value) && value >= 1 && value <= most;
  if (!isSize(numHeads, 4_096) || !isSize(numGroups, 4_096) || numHeads % numGroups !== 0)
    throw artifactInvalid(
      path,
      `has ${numHeads} state-space heads in ${numGroups} groups, which must divide them`,
    );
  if (!isSize(headDim, 1_024) || !isSize(stateSize, 1_024) || stateSize % 4 !== 0)
    throw artifactInvalid(path, `has ${numHeads} state-space heads of ${headDim} by ${stateSize}`);
  return { kind: "state_space", ...sizes, headDim, taps: checkTaps(path, taps) };
}

/** Tensor names of a layer whose mixer is called `module`. */
export function stateSpaceLayerNames(module: string): LayerNames {
  return {
    ssm_in: `${module}.in_proj`,
    ssm_conv1d: `${module}.conv1d`,
    "=ssm_dt.bias": `${module}.dt_bias`,
    "=ssm_a": `${module}.A_log`,
    "=ssm_d": `${module}.D`,
    ssm_norm: `${module}.norm`,
    ssm_out: `${module}.out_proj`,
  };
}
