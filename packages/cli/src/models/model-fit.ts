import { describeModel, type ModelDescription } from "@octavo/engine";
import { availableMemoryBytes } from "@octavo/kernels";
import { OctavoError } from "@octavo/protocol/errors";
import { formatBinaryBytes } from "@octavo/protocol/options";
import { makePlan, type Plan } from "@octavo/studio/plan";

/** What a model is, and whether this machine has memory for it and one conversation. */
export interface ModelFit {
  readonly family?: string;
  readonly parameters?: number;
  readonly weights?: string;
  readonly weightBytes?: number;
  readonly context?: number;
  readonly kvBytesPerToken?: number;
  /** With a sequence of up to 4,096 tokens. */
  readonly neededBytes?: number;
  readonly freeBytes: number;
  /** Why nothing is known. */
  readonly problem?: OctavoError;
}

/** Never rejects: what cannot be read says so in `problem`. */
export async function fitOf(model: string | OctavoError): Promise<ModelFit> {
  const freeBytes = availableMemoryBytes();
  try {
    if (typeof model !== "string") throw model;
    const description = await describeModel(model);
    const plan = memoryPlan(model, description, freeBytes);
    const format = plan.machines[0]?.formats[0];
    const weightBytes = format?.weightBytes ?? 0;
    return {
      family: plan.shape.family,
      parameters: plan.parameters,
      weights: weightsName(description),
      weightBytes,
      ...(plan.shape.maxPositions !== undefined && { context: plan.shape.maxPositions }),
      kvBytesPerToken: plan.kvBytesPerToken.bf16,
      neededBytes: weightBytes + plan.kvBytesPerSequence.bf16,
      freeBytes,
    };
  } catch (thrown) {
    return { freeBytes, problem: OctavoError.from(thrown) };
  }
}

/** What a model takes of a machine with so much memory; speeds are not planned. */
export function memoryPlan(
  model: string,
  description: ModelDescription,
  memoryBytes: number,
  context?: number,
): Plan {
  const hardware = { name: "this machine", memoryBytes, bandwidth: 1, flops: { bf16: 1 }, source: "" };
  return makePlan(model, description, {
    hardware: [{ id: "cpu", hardware }],
    devices: 1,
    context,
    outputTokens: undefined,
    concurrency: 1,
    kvFormat: "bf16",
    memoryUtilization: 1,
    efficiency: 1,
    dollarsPerHour: undefined,
    apiPrice: undefined,
  });
}

export function fitText({ neededBytes, freeBytes, problem }: ModelFit): string {
  if (problem !== undefined) return problem.code === "artifact_not_found" ? "not whole" : "not readable";
  if (neededBytes === undefined) return "unknown";
  const needed = formatBinaryBytes(neededBytes);
  return neededBytes <= freeBytes
    ? `fits, ${needed}`
    : `needs ${needed}, free are ${formatBinaryBytes(freeBytes)}`;
}

/** The quantisation of the most bytes, or the type that config.json names. */
function weightsName({ source }: ModelDescription): string {
  if (source.kind === "gguf") {
    const [, quantization] = /[-._](I?Q\d\w*|F16|F32|BF16|MXFP4\w*)\.gguf$/i.exec(source.path) ?? [];
    return quantization === undefined ? "GGUF" : `GGUF ${quantization.toUpperCase()}`;
  }
  const config = source.json as Readonly<Record<string, unknown>> | null;
  const quantization = config?.["quantization_config"] as { quant_method?: unknown } | undefined;
  const type = config?.["torch_dtype"] ?? config?.["dtype"];
  if (typeof quantization?.quant_method === "string") return quantization.quant_method;
  return typeof type === "string" ? type : "safetensors";
}
