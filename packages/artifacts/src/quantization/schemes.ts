import { OctavoError } from "@octavo/protocol/errors";
import { z } from "zod";
import { artifactInvalid, artifactUnsupported } from "@octavo/text/files/artifact-file";
import type { StoredTensor, TensorInfo } from "../checkpoint/checkpoint.js";
import { floatTypeOf, plainTensor } from "../safetensors/safetensors-file.js";
import { awq } from "./awq.js";
import { bitsandbytes } from "./bitsandbytes.js";
import { compressedTensors } from "./compressed-tensors.js";
import { fp8 } from "./fp8.js";
import { gptq } from "./gptq.js";
import { hqq } from "./hqq.js";
import { mxfp4 } from "./mxfp4.js";
import { type QuantizationName, quantizationNames } from "./quantization-names.js";
import type { QuantizationScheme } from "./quantization-scheme.js";
import { QuantizedModule } from "./quantized-module.js";

/** A new scheme enters here: one file beside this one, one row and its name. */
const schemes: Readonly<Record<QuantizationName, QuantizationScheme>> = {
  awq,
  gptq,
  fp8,
  "compressed-tensors": compressedTensors,
  bitsandbytes,
  hqq,
  mxfp4,
};

const schemeOf: ReadonlyMap<string, QuantizationScheme> = new Map(
  Object.values(schemes).flatMap((scheme) => scheme.methods.map((method) => [method, scheme] as const)),
);

const methodSchema = z.looseObject({ quant_method: z.string().nullish() });

/** `quantization_config`, not yet validated. */
export interface QuantizationConfig {
  readonly path: string;
  readonly fields: unknown;
}

/**
 * A folder's tensors as the matrices and vectors they stand for.
 * @param config undefined when the checkpoint does not say that it is quantised
 * @param asked scheme that the user named; it must be the checkpoint's, or stands in for a configuration that is missing
 * @throws OctavoError `artifact_invalid` or `artifact_unsupported` naming the tensor; `invalid_option` for `asked`
 */
export function readTensors(
  stored: ReadonlyMap<string, StoredTensor>,
  path: string,
  config: QuantizationConfig | undefined,
  asked: string | undefined,
): ReadonlyMap<string, TensorInfo> {
  const scheme = chooseScheme(config, asked);
  if (scheme === undefined) {
    const hint = `safetensors weights must be F32, F16 or BF16 unless a quantization_config says what they are`;
    return new Map(Array.from(stored, ([name, tensor]) => [name, plainTensor(tensor, hint)]));
  }
  const fields = fieldsOf(config);
  const read = scheme.open({ path: config?.path ?? path, fields });
  const [method = ""] = scheme.methods;
  const tensors = new Map<string, TensorInfo>();
  for (const module of groupByModule(stored, scheme)) {
    if (module instanceof QuantizedModule) {
      const matrix = read(module);
      tensors.set(matrix.name, matrix);
    } else {
      const hint = `a checkpoint quantised with ${method} has no such tensor: does its quantization_config name another scheme?`;
      tensors.set(module.name, plainTensor(module, hint));
    }
  }
  if (![...tensors.values()].some((tensor) => tensor.recipe !== undefined)) {
    throw artifactInvalid(
      path,
      config === undefined
        ? `is to be read as quantised with ${method}, but none of its tensors is: leave out the quantization that was asked for`
        : `says that it is quantised with ${method}, but none of its tensors is`,
    );
  }
  return tensors;
}

function chooseScheme(
  config: QuantizationConfig | undefined,
  asked: string | undefined,
): QuantizationScheme | undefined {
  const wanted = asked === undefined ? undefined : schemeOf.get(asked);
  if (asked !== undefined && wanted === undefined) {
    throw invalidOption(`must be one of auto, ${quantizationNames.join(", ")}, not ${JSON.stringify(asked)}`);
  }
  if (config === undefined) return wanted;
  const method = methodSchema.safeParse(config.fields).data?.quant_method ?? undefined;
  const scheme = method === undefined ? wanted : schemeOf.get(method.toLowerCase());
  if (scheme === undefined) {
    const name = method === undefined ? "unnamed" : JSON.stringify(method.slice(0, 100));
    throw artifactUnsupported(
      config.path,
      `is quantised with ${name}; supported are ${quantizationNames.join(", ")}, unquantised safetensors and GGUF`,
    );
  }
  if (wanted !== undefined && wanted !== scheme) {
    throw invalidOption(`is ${asked}, but ${config.path} says ${method}`);
  }
  return scheme;
}

function invalidOption(problem: string): OctavoError {
  return new OctavoError("invalid_option", `quantization ${problem}.`, { param: "quantization" });
}

function fieldsOf(config: QuantizationConfig | undefined): Readonly<Record<string, unknown>> {
  const { fields } = config ?? {};
  return typeof fields === "object" && fields !== null ? (fields as Record<string, unknown>) : {};
}

/** Quantised layers gathered from their tensors; everything else as it is. */
function groupByModule(
  stored: ReadonlyMap<string, StoredTensor>,
  scheme: QuantizationScheme,
): (QuantizedModule | StoredTensor)[] {
  const { joint = "." } = scheme;
  const modules = new Map<string, Map<string, StoredTensor>>();
  const others: StoredTensor[] = [];
  for (const tensor of stored.values()) {
    const leaf = scheme.leaves.find((candidate) => tensor.name.endsWith(`${joint}${candidate}`));
    if (leaf === undefined) {
      others.push(tensor);
      continue;
    }
    const name = tensor.name.slice(0, -leaf.length - joint.length);
    const leaves = modules.get(name) ?? new Map<string, StoredTensor>();
    leaves.set(leaf, tensor);
    modules.set(name, leaves);
  }
  const grouped: (QuantizedModule | StoredTensor)[] = others;
  for (const [name, leaves] of modules) {
    const { weight, ...scales } = Object.fromEntries(leaves);
    const isLeftAsItWas = weight !== undefined && floatTypeOf(weight.dtype) !== undefined;
    // Scales of inputs or outputs do not make a weight quantised.
    const isScaled = Object.keys(scales).some((leaf) => !/^(?:input|output|activation)_/.test(leaf));
    if (isLeftAsItWas && !isScaled) grouped.push(weight);
    else if (weight !== undefined || isScaled) grouped.push(new QuantizedModule(name, leaves, joint));
  }
  return grouped;
}
