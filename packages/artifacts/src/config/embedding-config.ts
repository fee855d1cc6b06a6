import { join } from "node:path";
import { z } from "zod";
import { artifactUnsupported } from "@octavo/text/files/artifact-file";
import { parseForm, readJsonFile } from "@octavo/text/files/bounded-json";
import type { EmbeddingConfig } from "../program/model-config.js";

const maxBytes = 1024 * 1024;

/** `modules.json` of sentence-transformers: what the hidden states go through, in order. */
const modulesSchema = z.array(z.looseObject({ type: z.string(), path: z.string().max(100) })).max(16);
const poolingSchema = z.looseObject({ pooling_mode: z.string().nullish() });
const matryoshkaSchema = z.looseObject({
  is_matryoshka: z.boolean().nullish(),
  matryoshka_dimensions: z.array(z.number().int().min(1)).max(256).nullish(),
});

/**
 * What a folder says of embeddings: pooling and normalisation from sentence-transformers' modules, and in config.json whether their
 * first columns are embeddings, too (Matryoshka, arXiv 2205.13147). Undefined for a folder that says nothing.
 * @throws OctavoError `artifact_invalid`, or `artifact_unsupported` for modules that are not applied here
 */
export function readEmbeddingConfig(folder: string, configJson: unknown): EmbeddingConfig | undefined {
  const { is_matryoshka: isCut, matryoshka_dimensions: listed } =
    matryoshkaSchema.safeParse(configJson).data ?? {};
  const dimensions = listed ?? (isCut === true ? ("any" as const) : undefined);
  const path = join(folder, "modules.json");
  const json = readJsonFile(path, maxBytes);
  if (json === undefined) return dimensions && { pooling: "last", normalize: true, dimensions };
  const modules = parseForm(path, json, modulesSchema);
  let pooling: EmbeddingConfig["pooling"] = "last";
  let normalize = false;
  for (const { type, path: place } of modules) {
    const kind = type.split(".").at(-1);
    if (kind === "Pooling") pooling = readPooling(join(folder, place, "config.json"));
    else if (kind === "Normalize") normalize = true;
    else if (kind !== "Transformer") {
      throw artifactUnsupported(
        path,
        `has the module ${JSON.stringify(type.slice(0, 100))}; supported are Transformer, Pooling and Normalize`,
      );
    }
  }
  return { pooling, normalize, ...(dimensions !== undefined && { dimensions }) };
}

/** One mode by name, or since ever a flag for each. */
function readPooling(path: string): EmbeddingConfig["pooling"] {
  const settings = parseForm(path, readJsonFile(path, maxBytes) ?? {}, poolingSchema);
  const flags = Object.entries(settings).flatMap(([key, value]) =>
    key.startsWith("pooling_mode_") && value === true ? [key.slice("pooling_mode_".length)] : [],
  );
  const modes = settings.pooling_mode ? [settings.pooling_mode] : flags;
  const [mode = "mean", second] = modes;
  if (second === undefined && (mode === "mean" || mode === "mean_tokens")) return "mean";
  if (second === undefined && mode === "lasttoken") return "last";
  throw artifactUnsupported(
    path,
    `pools by ${modes.join(" and ").slice(0, 100)}; mean and lasttoken are supported`,
  );
}
