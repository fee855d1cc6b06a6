import { existsSync } from "node:fs";
import { join } from "node:path";
import type { AdaptableModule } from "../program/model-plan.js";
import { artifactInvalid, artifactUnsupported } from "@octavo/text/files/artifact-file";
import type { StoredTensor, TensorInfo } from "../checkpoint/checkpoint.js";
import { plainTensor, readSafetensorsHeader } from "../safetensors/safetensors-file.js";
import { noAdapterWeights, readAdapterConfig } from "./adapter-config.js";

const adapterWeightsName = "adapter_model.safetensors";

/** What an adapter adds to one module. */
export interface AdapterModule {
  readonly name: string;
  readonly target: AdaptableModule;
  readonly rank: number;
  readonly scale: number;
  /** `[rank, cols]` */
  readonly down: TensorInfo;
  /** `[rows, rank]` */
  readonly up: TensorInfo;
}

/**
 * Opens an adapter as PEFT saves it and fits it to a model's modules. Names and shapes are checked; weights are not read.
 * @throws OctavoError `artifact_not_found`, `artifact_invalid` or `artifact_unsupported`
 */
export function readAdapter(
  folder: string,
  adaptable: ReadonlyMap<string, AdaptableModule>,
  maxRank: number,
): readonly AdapterModule[] {
  const scales = readAdapterConfig(folder);
  const path = join(folder, adapterWeightsName);
  if (!existsSync(path)) throw noAdapterWeights(folder, existsSync(join(folder, "adapter_model.bin")));
  const pairs = new Map<string, { down?: StoredTensor; up?: StoredTensor }>();
  for (const tensor of readSafetensorsHeader(path).tensors) {
    const { module, side } = parseName(path, tensor.name);
    const pair = pairs.get(module) ?? {};
    if (pair[side] !== undefined) throw artifactInvalid(path, `holds two ${side} projections of ${module}`);
    pair[side] = tensor;
    pairs.set(module, pair);
  }
  if (pairs.size === 0) throw artifactInvalid(path, "holds no tensors");
  return Array.from(pairs, ([name, { down, up }]) => {
    const target = adaptable.get(name);
    if (target === undefined) throw unknownModule(path, name, adaptable);
    if (down === undefined || up === undefined)
      throw artifactInvalid(path, `has only one of lora_A and lora_B for ${name}`);
    const rank = down.shape[0] ?? 0;
    checkShape(path, down, [rank, target.cols], name);
    checkShape(path, up, [target.rows, rank], name);
    if (rank < 1) throw artifactInvalid(path, `has rank 0 for ${name}`);
    if (rank > maxRank) {
      throw artifactUnsupported(
        path,
        `has rank ${rank} for ${name}, and at most ${maxRank} is allowed here; raise --max-lora-rank`,
      );
    }
    const hint = "adapters must be f32, f16 or bf16";
    const scale = scales.of(name, rank);
    return { name, target, rank, scale, down: plainTensor(down, hint), up: plainTensor(up, hint) };
  });
}

/** "base_model.model.model.layers.0.mlp.up_proj.lora_A.weight", older ones with the adapter's name before `weight`. */
function parseName(path: string, name: string): { readonly module: string; readonly side: "down" | "up" } {
  const [, module, letter] =
    /^base_model\.model\.([\w.-]+)\.lora_([AB])(?:\.[\w-]+)?\.weight$/.exec(name) ?? [];
  if (module !== undefined) return { module, side: letter === "A" ? "down" : "up" };
  const shown = JSON.stringify(name.slice(0, 200));
  if (name.includes("lora_magnitude_vector"))
    throw artifactUnsupported(path, `holds ${shown}: DoRA is not supported`);
  if (name.includes("lora_embedding") || name.includes("embed_tokens") || name.includes("lm_head"))
    throw artifactUnsupported(path, `holds ${shown}: trained embeddings and output heads are not supported`);
  if (name.endsWith(".bias"))
    throw artifactUnsupported(path, `holds ${shown}: trained biases are not supported`);
  throw artifactUnsupported(
    path,
    `holds ${shown}, which is no LoRA projection; modules trained in full (modules_to_save) are not supported`,
  );
}

function unknownModule(path: string, name: string, adaptable: ReadonlyMap<string, AdaptableModule>): Error {
  if (/(?:^|\.)(?:lm_head|embed_tokens)$/.test(name)) {
    return artifactUnsupported(path, `adapts ${name}; the embedding and the output head cannot be adapted`);
  }
  const kinds = new Set(Array.from(adaptable.keys(), (known) => known.slice(known.lastIndexOf(".") + 1)));
  return artifactInvalid(
    path,
    `adapts ${name}, which the model lacks; of its ${adaptable.size} modules adapters can reach ${[...kinds].join(", ")}. Is it for another model?`,
  );
}

function checkShape(path: string, tensor: StoredTensor, shape: readonly number[], module: string): void {
  if (tensor.shape.length === 2 && tensor.shape.every((size, axis) => size === shape[axis])) return;
  throw artifactInvalid(
    path,
    `tensor ${JSON.stringify(tensor.name)} has the shape [${tensor.shape.join(", ")}]; for the model's ${module} it must be [${shape.join(", ")}]`,
  );
}
