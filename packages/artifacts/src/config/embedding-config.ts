import { join } from "node:path";
import { z } from "zod";
import { artifactUnsupported } from "@octavo/text/files/artifact-file";
import { parseForm, readJsonFile } from "@octavo/text/files/bounded-json";
import type { StoredTensor } from "../checkpoint/checkpoint.js";
import type { EmbeddingConfig, ModelConfig, Pooling } from "../program/model-config.js";
import { readDense } from "./dense-modules.js";
import { readTextPrompts } from "./embedding-prompts.js";

const maxBytes = 1024 * 1024;

/** `modules.json` of sentence-transformers: what the hidden states go through, in order. */
const modulesSchema = z.array(z.looseObject({ type: z.string(), path: z.string().max(100) })).max(16);
const poolingSchema = z.looseObject({
  pooling_mode: z.string().nullish(),
  include_prompt: z.boolean().nullish(),
});
const matryoshkaSchema = z.looseObject({
  is_matryoshka: z.boolean().nullish(),
  matryoshka_dimensions: z.array(z.number().int().min(1)).max(256).nullish(),
});

/** With the tensors of its dense layers, which lie in folders of their own. */
interface EmbeddingModules {
  readonly embedding: EmbeddingConfig;
  readonly tensors: readonly StoredTensor[];
}

/**
 * What a folder says of embeddings: pooling and normalisation from sentence-transformers' modules, and in config.json whether their
 * first columns are embeddings, too (Matryoshka, arXiv 2205.13147). Undefined for a folder that says nothing.
 * @throws OctavoError `artifact_invalid`, or `artifact_unsupported` for modules that are not applied here
 */
export function readEmbeddingConfig(
  folder: string,
  configJson: unknown,
  { encoder, hiddenSize }: Pick<ModelConfig, "encoder" | "hiddenSize">,
): EmbeddingModules | undefined {
  const { is_matryoshka: isCut, matryoshka_dimensions: listed } =
    matryoshkaSchema.safeParse(configJson).data ?? {};
  const dimensions = listed ?? (isCut === true ? ("any" as const) : undefined);
  const path = join(folder, "modules.json");
  const json = readJsonFile(path, maxBytes);
  // sentence-transformers takes the mean where nothing says otherwise.
  let pooling: Pooling = encoder === undefined ? "last" : "mean";
  if (json === undefined) {
    if (dimensions === undefined && encoder === undefined) return undefined;
    const embedding = { pooling, normalize: true, ...(dimensions !== undefined && { dimensions }) };
    return { embedding, tensors: [] };
  }
  const modules = parseForm(path, json, modulesSchema);
  let normalize = false;
  const dense: ReturnType<typeof readDense>[] = [];
  for (const { type, path: place } of modules) {
    const kind = type.split(".").at(-1);
    if (kind === "Pooling") pooling = readPooling(join(folder, place, "config.json"));
    else if (kind === "Normalize") normalize = true;
    else if (kind === "Dense" && encoder !== undefined)
      dense.push(readDense(folder, place, dense.at(-1)?.layer.rows ?? hiddenSize));
    else if (kind !== "Transformer") {
      const known = `Transformer, Pooling and Normalize${encoder === undefined ? "" : " and Dense"}`;
      throw artifactUnsupported(
        path,
        `has the module ${JSON.stringify(type.slice(0, 100))}; supported are ${known}`,
      );
    }
  }
  const embedding = {
    pooling,
    normalize,
    ...(dimensions !== undefined && { dimensions }),
    ...(dense.length > 0 && { dense: dense.map(({ layer }) => layer) }),
    ...readTextPrompts(folder),
  };
  return { embedding, tensors: dense.flatMap(({ tensors }) => tensors) };
}

/** One mode by name, or since ever a flag for each. */
function readPooling(path: string): Pooling {
  const settings = parseForm(path, readJsonFile(path, maxBytes) ?? {}, poolingSchema);
  const flags = Object.entries(settings).flatMap(([key, value]) =>
    key.startsWith("pooling_mode_") && value === true ? [key.slice("pooling_mode_".length)] : [],
  );
  if (settings.include_prompt === false)
    throw artifactUnsupported(path, "leaves prompts out of the pooling, which is not supported");
  const modes = settings.pooling_mode ? [settings.pooling_mode] : flags;
  const [mode = "mean", second] = modes;
  if (second === undefined && (mode === "mean" || mode === "mean_tokens")) return "mean";
  if (second === undefined && mode === "lasttoken") return "last";
  if (second === undefined && (mode === "cls" || mode === "cls_token")) return "cls";
  if (second === undefined && (mode === "max" || mode === "max_tokens")) return "max";
  throw artifactUnsupported(
    path,
    `pools by ${modes.join(" and ").slice(0, 100)}; cls, mean, max and lasttoken are supported`,
  );
}
