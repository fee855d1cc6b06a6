import { type ModelDescription } from "@octavo/engine";
import { OctavoError } from "@octavo/protocol";
import { formatBinaryBytes } from "@octavo/protocol/options";
import { type TokenPrice, type Cost, costOf, type Crossing, crossingOf } from "./cost.js";
import {
  kvBytesPerToken,
  kvBytesReserved,
  type KvFormat,
  kvFormats,
  stateBytes,
} from "./formats/kv-formats.js";
import { weightBytes, weightFormats } from "./formats/weight-formats.js";
import type { ComputeType, Hardware } from "./hardware/hardware.js";
import {
  decodeRoofline,
  prefillRoofline,
  type ReadBytes,
  readBytesOf,
  type Roofline,
  type Workload,
} from "./roofline.js";
import { activeParameters, type ModelShape, totalParameters } from "./shape/model-shape.js";
import { shapeOf } from "./shape/read-shape.js";
import { storedWeights } from "./stored.js";

export interface PlanOptions {
  readonly hardware: readonly {
    readonly id: string;
    readonly hardware: Hardware;
    /** Price of all devices of this kind together, instead of the plan's. */
    readonly dollarsPerHour?: number | undefined;
  }[];
  /** Devices that share the model. */
  readonly devices: number;
  /** Prompt and output tokens of a request; default 4096, or as many as the model takes. */
  readonly context: number | undefined;
  /** How many of them are generated; default 512, or half of them. */
  readonly outputTokens: number | undefined;
  /** Sequences that decode at once; undefined takes as many as fit, at most `mostSequences`. */
  readonly concurrency: number | undefined;
  readonly kvFormat: KvFormat;
  /** Share of the memory that weights and cache may take. */
  readonly memoryUtilization: number;
  /** Share of the ceilings that is reached. */
  readonly efficiency: number;
  /** Price of all devices together. */
  readonly dollarsPerHour: number | undefined;
  readonly apiPrice: TokenPrice | undefined;
}

/** With what was left to the model. */
interface PlannedRequest extends Omit<PlanOptions, "hardware"> {
  readonly context: number;
  readonly outputTokens: number;
}

const defaultContext = 4096;
const defaultOutputTokens = 512;

/** vLLM's and Octavo's default number of sequences at once. */
const mostSequences = 256;

export interface FormatPlan {
  readonly format: string;
  readonly note: string;
  readonly weightBytes: number;
  readonly bitsPerWeight: number;
  /** Devices of this kind that hold the weights and one sequence. */
  readonly devicesNeeded: number;
  /** Sequences of `context` tokens that fit beside the weights, by the cache's type. */
  readonly sequences: Readonly<Record<KvFormat, number>>;
  readonly computesIn: ComputeType;
  /** Absent where the weights and one sequence do not fit. */
  readonly speed:
    | {
        readonly concurrency: number;
        readonly decodeOne: Roofline;
        /** `concurrency` sequences, each in the middle of its output. */
        readonly decodeAll: Roofline;
        readonly prefill: Roofline;
        readonly cost: Cost | undefined;
        readonly crossing: Crossing | undefined;
      }
    | undefined;
}

export interface MachinePlan {
  readonly id: string;
  readonly hardware: Hardware;
  readonly devices: number;
  readonly dollarsPerHour: number | undefined;
  readonly formats: readonly FormatPlan[];
}

export interface Plan {
  readonly model: string;
  readonly shape: Omit<ModelShape, "matrices" | "attention" | "vectorElements" | "stateElements">;
  readonly parameters: number;
  readonly activeParameters: number;
  readonly windowedLayers: number;
  readonly kvBytesPerToken: Readonly<Record<KvFormat, number>>;
  readonly kvBytesPerSequence: Readonly<Record<KvFormat, number>>;
  readonly options: PlannedRequest;
  readonly machines: readonly MachinePlan[];
  readonly assumptions: readonly string[];
}

/** @throws OctavoError `artifact_invalid`, `artifact_unsupported`, `invalid_option` */
export function makePlan(model: string, description: ModelDescription, plan: PlanOptions): Plan {
  const { hardware: machines, ...asked } = plan;
  const shape = shapeOf(description);
  const options = plannedRequest(shape, asked);
  const { family, hiddenSize, numLayers, numHeads, numKvHeads, headDim } = shape;
  const { vocabSize, maxPositions, isTied, experts, isLatent, towerElements } = shape;
  return {
    model,
    shape: {
      family,
      hiddenSize,
      numLayers,
      numHeads,
      numKvHeads,
      headDim,
      vocabSize,
      maxPositions,
      isTied,
      experts,
      isLatent,
      towerElements,
    },
    parameters: totalParameters(shape),
    activeParameters: activeParameters(shape),
    windowedLayers: shape.attention.filter(({ window }) => window !== undefined).length,
    kvBytesPerToken: byKvFormat((format) => kvBytesPerToken(shape, format)),
    kvBytesPerSequence: byKvFormat((format) => kvBytesReserved(shape, format, options.context)),
    options,
    machines: machines.map(({ id, hardware, dollarsPerHour = options.dollarsPerHour }) => ({
      id,
      hardware,
      devices: options.devices,
      dollarsPerHour,
      formats: artifactsOf(shape, description).map((artifact) =>
        planFormat(shape, artifact, hardware, { ...options, dollarsPerHour }),
      ),
    })),
    assumptions: assumptionsOf(
      shape,
      options,
      machines.some((machine) => machine.dollarsPerHour !== undefined),
    ),
  };
}

interface Artifact {
  readonly name: string;
  readonly note: string;
  readonly bytes: number;
  /** Parameters that it holds. */
  readonly elements: number;
  readonly read: ReadBytes;
  readonly compute: ComputeType;
}

function artifactsOf(shape: ModelShape, description: ModelDescription): Artifact[] {
  const stored = storedWeights(description);
  const artifacts: Artifact[] = weightFormats.map((format) => ({
    name: format.name,
    note: format.note,
    bytes: weightBytes(shape, format),
    elements: totalParameters(shape) + (format.towerBytes > 0 ? shape.towerElements : 0),
    read: readBytesOf(shape, format),
    compute: format.compute,
  }));
  if (stored !== undefined)
    artifacts.unshift({
      name: "as stored",
      note: "the files' own tensors",
      elements: totalParameters(shape) + shape.towerElements,
      ...stored,
    });
  return artifacts;
}

function planFormat(
  shape: ModelShape,
  artifact: Artifact,
  hardware: Hardware,
  options: PlannedRequest,
): FormatPlan {
  const { context, devices, memoryUtilization, kvFormat } = options;
  const usable = hardware.memoryBytes * memoryUtilization;
  const free = usable * devices - artifact.bytes;
  const sequences = byKvFormat((format) =>
    Math.max(0, Math.floor(free / kvBytesReserved(shape, format, context))),
  );
  return {
    format: artifact.name,
    note: artifact.note,
    weightBytes: artifact.bytes,
    bitsPerWeight: (artifact.bytes * 8) / artifact.elements,
    devicesNeeded: Math.ceil((artifact.bytes + kvBytesReserved(shape, kvFormat, context)) / usable),
    sequences,
    computesIn: hardware.flops[artifact.compute] === undefined ? "bf16" : artifact.compute,
    speed:
      sequences[kvFormat] === 0
        ? undefined
        : speedOf(shape, artifact, hardware, sequences[kvFormat], options),
  };
}

function speedOf(
  shape: ModelShape,
  artifact: Artifact,
  hardware: Hardware,
  fitting: number,
  options: PlannedRequest,
): NonNullable<FormatPlan["speed"]> {
  const { context, outputTokens, devices, efficiency, kvFormat, dollarsPerHour, apiPrice } = options;
  const workload: Workload = { shape, read: artifact.read, compute: artifact.compute, kvFormat };
  const machine = { hardware, devices, efficiency };
  const promptTokens = context - outputTokens;
  const middle = promptTokens + outputTokens / 2;
  const concurrency = Math.min(options.concurrency ?? mostSequences, fitting);
  const decodeAll = decodeRoofline(workload, machine, concurrency, middle);
  const prefill = prefillRoofline(workload, machine, promptTokens);
  const costInput = dollarsPerHour !== undefined && {
    dollarsPerHour,
    promptTokens,
    outputTokens,
    prefillTokensPerSecond: prefill.tokensPerSecond,
    decodeTokensPerSecond: decodeAll.tokensPerSecond,
  };
  const cost = costInput ? costOf(costInput) : undefined;
  return {
    concurrency,
    decodeOne: decodeRoofline(workload, machine, 1, middle),
    decodeAll,
    prefill,
    cost,
    crossing: costInput && cost && apiPrice ? crossingOf(costInput, cost, apiPrice) : undefined,
  };
}

function byKvFormat(of: (format: KvFormat) => number): Record<KvFormat, number> {
  return Object.fromEntries(kvFormats.map((format) => [format, of(format)])) as Record<KvFormat, number>;
}

function plannedRequest(
  { maxPositions }: ModelShape,
  options: Omit<PlanOptions, "hardware">,
): PlannedRequest {
  const context = options.context ?? Math.min(defaultContext, maxPositions ?? defaultContext);
  const outputTokens = options.outputTokens ?? Math.min(defaultOutputTokens, Math.floor(context / 2));
  if (maxPositions !== undefined && context > maxPositions) {
    throw new OctavoError(
      "invalid_option",
      `--context is ${context} tokens, but the model was made for at most ${maxPositions}.`,
      { param: "context" },
    );
  }
  if (outputTokens >= context) {
    throw new OctavoError(
      "invalid_option",
      `--output-tokens (${outputTokens}) must leave room for a prompt within --context (${context}).`,
      { param: "output_tokens" },
    );
  }
  return { ...options, context, outputTokens };
}

function assumptionsOf(shape: ModelShape, options: PlannedRequest, hasRates: boolean): string[] {
  const { context, outputTokens, devices, memoryUtilization, efficiency, kvFormat, concurrency } = options;
  const percent = (share: number): string => `${Number((100 * share).toFixed(1))} %`;
  const lines = [
    `A request has ${context - outputTokens} prompt tokens and ${outputTokens} output tokens; nothing is shared between requests.`,
    `${percent(memoryUtilization)} of the memory is for weights and KV cache, the rest for activations and the runtime.`,
    `Speeds are ${efficiency === 1 ? "ceilings (roofline)" : `${percent(efficiency)} of the ceilings (roofline)`}: a step takes the longer of its bytes / bandwidth and its operations / peak. ` +
      "Engines reach a part of it; give a measured part with --efficiency.",
    `Decoding at N: ${concurrency === undefined ? `as many sequences as fit, at most ${mostSequences}` : `${concurrency} sequences, or as many as fit`}, each in the middle of its output, with a ${kvFormat} KV cache.`,
    "Formats of fewer bits than the hardware multiplies are computed in bf16: they save bytes, not operations. int4 and GGUF always are.",
    "Embedding, output head and routers stay in bf16 except in GGUF; GGUF's mixes follow llama.cpp's rules.",
  ];
  if (devices > 1)
    lines.push(
      `${devices} devices add up in memory, bandwidth and operations; what they tell each other costs nothing.`,
    );
  if (shape.experts !== undefined) {
    lines.push(
      `Tokens are sent to experts evenly: a decode step of B tokens reads 1 - (1 - ${shape.experts.perToken}/${shape.experts.count})^B of the experts' bytes.`,
    );
  }
  if (shape.attention.some(({ window }) => window !== undefined)) {
    lines.push(
      "Layers with a sliding window keep no more than the window, as vLLM's do; Octavo keeps the whole context of every layer.",
    );
  }
  if (shape.stateElements > 0) {
    lines.push(
      `Recurrent layers keep ${formatBinaryBytes(stateBytes(shape))} of each sequence, however long it is; copies for shared prefixes come on top.`,
    );
  }
  if (shape.isLatent) {
    lines.push(
      "Latent attention keeps one latent per token and folds its up-projections into queries and outputs.",
    );
  }
  if (hasRates || options.dollarsPerHour !== undefined) {
    lines.push(
      "Money: the machine is always busy, prompts and outputs take turns at their own speeds; a month has 730.5 hours, rented whole.",
    );
  }
  return lines;
}
