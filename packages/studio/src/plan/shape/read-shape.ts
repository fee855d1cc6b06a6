import { findGgufFamily, readGgufConfig } from "@octavo/artifacts/gguf/config";
import { ggufPlace, huggingFaceName } from "@octavo/artifacts/gguf/names";
import { readConfigJson } from "@octavo/artifacts/config/config-json";
import { textPart } from "@octavo/artifacts/config/container-config";
import type { ModelConfig } from "@octavo/artifacts/program/model-config";
import { towerElements } from "@octavo/artifacts/vision/tower-size";
import { weightsIn } from "@octavo/artifacts/program/model-plan";
import { modelFamilies, modelFamily, planModel } from "@octavo/artifacts/program/registry";
import type { ModelDescription, TensorInfo, TensorSize } from "@octavo/engine";
import { stateWidths } from "@octavo/kernels";
import { isRecord, OctavoError } from "@octavo/protocol";
import { GgufStrings } from "@octavo/text/files/gguf-strings";
import type { LayerAttention, ModelShape, WeightMatrix } from "./model-shape.js";

/** @throws OctavoError `artifact_invalid`, `artifact_unsupported` */
export function shapeOf({ source, tensors }: ModelDescription): ModelShape {
  return source.kind === "config"
    ? readConfigShape(source.path, source.json)
    : readGgufShape(source.path, source.metadata, tensors);
}

/** A config.json (its `text_config` where the model takes more than text), read as the engine reads it. */
export function readConfigShape(path: string, json: unknown): ModelShape {
  if (!isRecord(json)) throw new OctavoError("artifact_invalid", `${path}: is not a JSON object`);
  const { model_type: outerType, text_config: text } = json;
  const part = textPart(json);
  const config = part?.json ?? (isRecord(text) ? { model_type: outerType, ...text } : json);
  const type = config["model_type"];
  if (typeof type !== "string") throw unplanned(path, "names no model_type");
  if (
    !modelFamilies.some(({ modelType, otherModelTypes }) =>
      [modelType, ...(otherModelTypes ?? [])].includes(type),
    )
  ) {
    throw unplanned(path, `is of the family ${JSON.stringify(type.slice(0, 60))}`);
  }
  // The sizes of a model with another head than a text's are those of its family all the same.
  const read = readConfigJson(path, { ...config, architectures: undefined }, "bf16");
  const seen = part === undefined ? 0 : towerElements(path, part.container, json, read);
  return { ...shapeOfConfig(read), towerElements: seen };
}

function unplanned(path: string, problem: string): OctavoError {
  const known = modelFamilies.flatMap(({ modelType, otherModelTypes }) => [
    modelType,
    ...(otherModelTypes ?? []),
  ]);
  return new OctavoError(
    "artifact_unsupported",
    `${path}: ${problem}; plans are made for ${known.join(", ")}`,
  );
}

/** A GGUF header, read as the engine reads it. */
export function readGgufShape(
  path: string,
  metadata: ReadonlyMap<string, unknown>,
  tensors: readonly TensorSize[] | undefined,
): ModelShape {
  const family = findGgufFamily(path, metadata);
  const known = new Map<string, TensorInfo>();
  const add = (name: string, shape: readonly number[]): void => {
    known.set(name, { name, shape, type: "bf16", path, offset: 0, byteLength: 0 });
  };
  const tokens = metadata.get("tokenizer.ggml.tokens");
  const vocabSize =
    metadata.get(`${family.gguf.architecture}.vocab_size`) ??
    (tokens instanceof GgufStrings ? tokens.length : undefined);
  if (typeof vocabSize === "number") add("model.embed_tokens.weight", [vocabSize, 0]);
  // A split file's first part does not list its tensors; its head counts as one of its own.
  if (tensors === undefined) add("lm_head.weight", []);
  for (const { name, shape } of tensors ?? []) {
    const elsewhere = huggingFaceName(name, family.gguf.layerNames);
    if (elsewhere !== undefined) add(elsewhere, shape);
  }
  return shapeOfConfig(
    readGgufConfig({ path, metadata, tensors: known, ropeFactors: {}, family, dtype: "bf16" }),
  );
}

/** The shape that the family's program has under this configuration. */
export function shapeOfConfig(config: ModelConfig): ModelShape {
  const { numLayers, numHeads, numKvHeads, headDim, hiddenSize, vocabSize, experts } = config;
  const family = modelFamily(config.architecture);
  const program = planModel(config);
  const matrices: WeightMatrix[] = [];
  const attention: LayerAttention[] = [];
  let vectorElements = 0;
  const add = (owner: unknown, copies: number, isRouted: boolean): void => {
    for (const weight of weightsIn(owner)) {
      for (const { name: full, shape } of weight.sources) {
        // A part of a tensor counts as the tensor's kind.
        const name = full.replace(/\[[\d:]+\]$/, "");
        const [rows = 0, cols = 1] = shape;
        if (weight.kind === "vector" || rows === 1) {
          vectorElements += shape.reduce((product, size) => product * size, copies);
          continue;
        }
        const place = (family.gguf && ggufPlace(name, family.gguf.layerNames)?.name) ?? name;
        const [, layer, kind = place] = /^(?:blk|encoder\.layer|layers)\.(\d+)\.(.+)$/.exec(place) ?? [];
        const number = layer === undefined ? undefined : Number(layer);
        matrices.push({ kind, layer: number, rows, cols, copies, isRouted });
      }
    }
  };
  for (const op of program.ops) {
    // All experts of a layer have one shape.
    if (op.op === "experts") {
      add(op.experts[0], op.experts.length, true);
      add([op.selectionBias, op.expertScales], 1, false);
    } else if (op.op === "head_linear") add(op.weights[0], op.weights.length, false);
    else add(op, 1, false);
    if (op.op !== "attention") continue;
    // In latent attention a value is a part of its key.
    const stored = op.valueDim === undefined ? 2 : 1;
    // An encoder's layers take turns in the cache; some layers read what another keeps.
    const isKept = op.k !== undefined && (config.encoder === undefined || attention.length === 0);
    attention.push({
      kvElements: isKept ? stored * op.numKvHeads * op.headDim : 0,
      kvVectors: isKept ? stored * op.numKvHeads : 0,
      flopsPerContextToken: 2 * op.numHeads * (op.headDim + (op.valueDim ?? op.headDim)),
      window: op.slidingWindow ?? op.chunk,
    });
  }
  if (!config.tieWordEmbeddings) add(program.head?.weight, 1, false);
  return {
    family: family.modelType,
    hiddenSize,
    numLayers,
    numHeads,
    numKvHeads,
    headDim,
    vocabSize,
    maxPositions: config.maxPositionEmbeddings,
    isTied: config.tieWordEmbeddings,
    experts: experts && { count: experts.count, perToken: experts.perToken },
    isLatent: config.latent !== undefined,
    matrices,
    vectorElements,
    attention,
    towerElements: 0,
    stateElements: stateWidths(program.ops, program.buffers, 0).reduce((sum, width) => sum + width, 0),
  };
}
