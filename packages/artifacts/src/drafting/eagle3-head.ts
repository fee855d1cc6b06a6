import { join } from "node:path";
import { OctavoError } from "@octavo/protocol/errors";
import { artifactInvalid, artifactUnsupported } from "@octavo/text/files/artifact-file";
import { parseForm, readJsonFile } from "@octavo/text/files/bounded-json";
import { z } from "zod";
import type { Checkpoint, StoredTensor, TensorInfo } from "../checkpoint/checkpoint.js";
import { readTensorNow } from "../checkpoint/read-tensor.js";
import { storageOf } from "../checkpoint/tensor-storage.js";
import { readConfigJson } from "../config/config-json.js";
import type { ModelConfig } from "../program/model-config.js";
import type { ModelPlan } from "../program/model-plan.js";
import { readTensors } from "../quantization/schemes.js";
import { readSafetensorsFolder } from "../safetensors/safetensors-folder.js";
import type { DraftHead } from "./draft-head.js";
import { eagle3Layer } from "./eagle3-layer.js";
import { tapLayers } from "./hidden-taps.js";

const maxConfigBytes = 4 * 1024 * 1024;
const architectures = ["LlamaForCausalLMEagle3", "Eagle3LlamaForCausalLM"];

/** What an EAGLE-3 head's config.json has beside a Llama's. */
const headSchema = z.looseObject({
  architectures: z.array(z.string()).nullish(),
  vocab_size: z.number().int().positive(),
  hidden_size: z.number().int().positive(),
  target_hidden_size: z.number().int().positive().nullish(),
  draft_vocab_size: z.number().int().positive().nullish(),
  num_hidden_layers: z.number().nullish(),
  norm_before_residual: z.boolean().nullish(),
  eagle_config: z
    .looseObject({
      eagle_aux_hidden_state_layer_ids: z.array(z.number().int().min(0)).max(16).nullish(),
      use_aux_hidden_state: z.boolean().nullish(),
    })
    .nullish(),
});

/**
 * An EAGLE-3 head (arXiv 2503.01840) in the layout of SafeAILab's and SpecForge's checkpoints, whose tensors and settings are as vLLM's
 * llama_eagle3.py reads them. What it shares with its model is taken from there.
 * @param kvLayer its layer in the KV cache
 * @throws OctavoError `invalid_option` when it was trained for another model, `artifact_unsupported` when it is not such a head
 */
export function openEagle3Head(folder: string, target: Checkpoint, kvLayer: number): DraftHead {
  const path = join(folder, "config.json");
  const json = readJsonFile(path, maxConfigBytes);
  if (json === undefined) throw new OctavoError("artifact_not_found", `${folder}: holds no config.json`);
  const head = parseForm(path, json, headSchema);
  const [architecture = "none"] = head.architectures ?? [];
  if (!architectures.includes(architecture))
    throw artifactUnsupported(
      path,
      `asks for the architecture ${JSON.stringify(architecture.slice(0, 100))}; an EAGLE-3 head has ${architectures[0]}`,
    );
  if ((head.num_hidden_layers ?? 1) !== 1)
    throw artifactUnsupported(path, `has ${head.num_hidden_layers} layers; heads of one layer are supported`);
  if (head.eagle_config?.use_aux_hidden_state === false)
    throw artifactUnsupported(path, "reads one hidden state of its model; EAGLE-3 reads three");
  checkTarget(folder, head, target);
  const all = readSafetensorsFolder(folder);
  if (all === undefined)
    throw new OctavoError(
      "artifact_not_found",
      `${folder}: holds no .safetensors file; convert pickled weights`,
    );
  const { tensors, maps } = split(all, folder);
  const embedding = target.tensors.get("model.embed_tokens.weight");
  const output = target.config.tieWordEmbeddings ? embedding : target.tensors.get("lm_head.weight");
  for (const [name, shared] of Object.entries({ "embed_tokens.weight": embedding, "lm_head.weight": output }))
    if (!tensors.has(name) && shared !== undefined) tensors.set(name, shared);
  const config: ModelConfig = {
    ...readConfigJson(
      path,
      { ...(json as object), architectures: ["LlamaForCausalLM"] },
      storageOf(tensors.values()),
    ),
    maxPositionEmbeddings: target.config.maxPositionEmbeddings,
  };
  const draftVocabSize = head.draft_vocab_size ?? head.vocab_size;
  const layer = (fusedWidth: number | undefined): ModelPlan =>
    eagle3Layer(config, tensors, {
      draftVocabSize,
      isNormedFirst: head.norm_before_residual ?? false,
      kvLayer,
      fusedWidth,
    });
  const layers = layersOf(folder, head.eagle_config?.eagle_aux_hidden_state_layer_ids, target.config);
  return {
    name: folder,
    ownPrefix: undefined,
    tap: (plan) => tapLayers(plan, layers),
    reading: layer(layers.length * target.config.hiddenSize),
    drafting: layer(undefined),
    targetIds: targetIds(folder, maps.get("d2t"), draftVocabSize, target.config.vocabSize),
  };
}

function checkTarget(
  folder: string,
  head: z.infer<typeof headSchema>,
  { name, config }: Pick<Checkpoint, "name" | "config">,
): void {
  const hiddenSize = head.target_hidden_size ?? head.hidden_size;
  if (hiddenSize !== config.hiddenSize)
    throw other(folder, name, `it reads hidden states of ${hiddenSize} columns, not ${config.hiddenSize}`);
  if (head.vocab_size !== config.vocabSize)
    throw other(folder, name, `its vocabulary has ${head.vocab_size} tokens, not ${config.vocabSize}`);
}

/** Weights by their published names; `model.` and `layers.0.` are other spellings. Maps of ids are not weights. */
function split(
  all: ReadonlyMap<string, StoredTensor>,
  folder: string,
): { readonly tensors: Map<string, TensorInfo>; readonly maps: ReadonlyMap<string, StoredTensor> } {
  const [weights, maps] = [new Map<string, StoredTensor>(), new Map<string, StoredTensor>()];
  for (const tensor of all.values()) {
    const name = tensor.name.replace(/^model\./, "").replace(/^layers\.0\./, "midlayer.");
    (name === "d2t" || name === "t2d" ? maps : weights).set(name, { ...tensor, name });
  }
  return { tensors: new Map(readTensors(weights, folder, undefined, undefined)), maps };
}

/** Layers whose input the head reads: a low, a middle and a high one, by vLLM's rule where the head does not say. */
function layersOf(
  folder: string,
  given: readonly number[] | null | undefined,
  { numLayers }: ModelConfig,
): readonly number[] {
  const layers = [...new Set(given ?? [2, Math.trunc(numLayers / 2), numLayers - 3])].toSorted(
    (a, b) => a - b,
  );
  if (layers.length === 3 && layers.every((layer) => layer >= 1 && layer < numLayers)) return layers;
  throw new OctavoError(
    "invalid_option",
    `${folder}: reads the layers ${layers.join(", ")}; three are needed, from 1 to ${numLayers - 1}.`,
    { param: "speculative_config" },
  );
}

/** `d2t` has, for each id of the draft vocabulary, what is to be added for the model's id. */
function targetIds(
  folder: string,
  stored: StoredTensor | undefined,
  draftVocabSize: number,
  vocabSize: number,
): Int32Array | undefined {
  if (stored === undefined) {
    if (draftVocabSize === vocabSize) return undefined;
    throw artifactInvalid(
      folder,
      `has a draft vocabulary of ${draftVocabSize} tokens but no d2t that maps it`,
    );
  }
  if (stored.dtype !== "I64" || stored.shape.length !== 1 || stored.shape[0] !== draftVocabSize)
    throw artifactInvalid(
      folder,
      `has a d2t of ${stored.dtype} [${stored.shape.join(", ")}], not I64 [${draftVocabSize}]`,
    );
  const offsets = new BigInt64Array(readTensorNow(stored).buffer);
  return Int32Array.from(offsets, (offset, id) => {
    const mapped = Number(offset) + id;
    if (mapped >= 0 && mapped < vocabSize) return mapped;
    throw artifactInvalid(
      folder,
      `maps the draft token ${id} to ${mapped}; the model has ${vocabSize} tokens`,
    );
  });
}

function other(folder: string, target: string, difference: string): OctavoError {
  return new OctavoError(
    "invalid_option",
    `The EAGLE-3 head ${folder} was trained for another model than ${target}: ${difference}.`,
    { param: "speculative_config" },
  );
}
