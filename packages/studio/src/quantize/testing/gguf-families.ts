import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { editSafetensors } from "@octavo/artifacts/testing/edit-safetensors";

/** A family with a tiny checkpoint, and settings for it that a GGUF file of the family can hold. */
export interface FamilyCheckpoint {
  /** Folder of the engine's fixtures. */
  readonly checkpoint: string;
  /** `general.architecture`. */
  readonly kind: string;
  /** Changes of its config.json. */
  readonly config?: Readonly<Record<string, unknown>>;
  /** Layers that are kept; absent for all. */
  readonly numLayers?: number;
}

const gemma = { tie_word_embeddings: true, query_pre_attn_scalar: 16 } as const;

export const ggufFamilies: readonly FamilyCheckpoint[] = [
  { checkpoint: "llama3", kind: "llama" },
  { checkpoint: "mistral", kind: "llama", config: { sliding_window: null } },
  { checkpoint: "mixtral", kind: "llama" },
  { checkpoint: "qwen2", kind: "qwen2" },
  { checkpoint: "qwen2-moe", kind: "qwen2moe" },
  { checkpoint: "qwen3", kind: "qwen3" },
  // Its second layer is a plain MLP, which llama.cpp's loader does not take.
  { checkpoint: "qwen3-moe", kind: "qwen3moe", config: { mlp_only_layers: [] }, numLayers: 1 },
  { checkpoint: "olmoe", kind: "olmoe" },
  { checkpoint: "olmo2", kind: "olmo2" },
  { checkpoint: "granite", kind: "granite" },
  { checkpoint: "granite-moe", kind: "granitemoe" },
  { checkpoint: "smollm3", kind: "smollm3", config: { no_rope_layers: [1, 1] } },
  { checkpoint: "phi3", kind: "phi3", config: { sliding_window: null } },
  { checkpoint: "seed-oss", kind: "seed_oss" },
  // Only a model of 64 layers has windows.
  { checkpoint: "exaone4-full", kind: "exaone4" },
  { checkpoint: "ernie4-5", kind: "ernie4_5" },
  { checkpoint: "glm4", kind: "glm4" },
  { checkpoint: "olmo3", kind: "olmo2" },
  { checkpoint: "gemma", kind: "gemma", config: { tie_word_embeddings: true } },
  { checkpoint: "gemma2", kind: "gemma2", config: gemma },
  {
    checkpoint: "gemma3",
    kind: "gemma3",
    config: { ...gemma, rope_local_base_freq: 10_000, sliding_window_pattern: 6 },
  },
];

const checkpoints = fileURLToPath(
  new URL("../../../../artifacts/fixtures/models/checkpoints/", import.meta.url),
);

/**
 * A copy of the family's checkpoint in `parent`.
 * @param more - more changes of its config.json
 * @returns its folder, named so that llama.cpp, which knows some models by their names, knows none
 */
export function writeFamily(
  { checkpoint, kind, config, numLayers }: FamilyCheckpoint,
  parent: string,
  more: Readonly<Record<string, unknown>> = {},
): string {
  const folder = join(parent, `tiny-${kind.replace("phi3", "phi")}-${checkpoint.length}`);
  mkdirSync(parent, { recursive: true });
  cpSync(join(checkpoints, checkpoint), folder, { recursive: true });
  const path = join(folder, "config.json");
  const original = JSON.parse(readFileSync(path, "utf8")) as Record<string, unknown>;
  const changed = {
    ...original,
    ...config,
    ...more,
    ...(numLayers !== undefined && { num_hidden_layers: numLayers }),
  };
  writeFileSync(path, JSON.stringify(changed));
  if (numLayers !== undefined) {
    editSafetensors(join(folder, "model.safetensors"), (tensors) => {
      for (const name of tensors.keys()) {
        if (Number(/^model\.layers\.(\d+)\./.exec(name)?.[1] ?? 0) >= numLayers) tensors.delete(name);
      }
    });
  }
  return folder;
}
