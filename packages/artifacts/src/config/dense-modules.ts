import { join } from "node:path";
import type { PlainActivation } from "@octavo/kernels";
import { z } from "zod";
import { artifactInvalid, artifactUnsupported } from "@octavo/text/files/artifact-file";
import { parseForm, readJsonFile } from "@octavo/text/files/bounded-json";
import type { StoredTensor } from "../checkpoint/checkpoint.js";
import type { DenseModule } from "../program/model-config.js";
import { readSafetensorsFolder } from "../safetensors/safetensors-folder.js";

const maxBytes = 1024 * 1024;
const width = z.number().int().min(1).max(262_144);
const denseSchema = z.looseObject({
  in_features: width,
  out_features: width,
  bias: z.boolean().nullish(),
  activation_function: z.string().nullish(),
});

const activations: Readonly<Record<string, PlainActivation>> = {
  Identity: "identity",
  Tanh: "tanh",
  ReLU: "relu",
  GELU: "gelu",
  Sigmoid: "sigmoid",
  SiLU: "silu",
};

/** A module `Dense` of sentence-transformers, whose tensors get the folder's name in front; `inputs`: columns of what it reads. */
export function readDense(
  folder: string,
  place: string,
  inputs: number,
): { readonly layer: DenseModule; readonly tensors: readonly StoredTensor[] } {
  // The place comes from a file.
  if (!/^[\w.-]{1,100}$/.test(place) || place.startsWith("."))
    throw artifactInvalid(join(folder, "modules.json"), `places a module in ${JSON.stringify(place)}`);
  const path = join(folder, place, "config.json");
  const settings = parseForm(path, readJsonFile(path, maxBytes) ?? {}, denseSchema);
  if (settings.in_features !== inputs)
    throw artifactInvalid(
      path,
      `has in_features ${settings.in_features}, but what comes before it gives ${inputs}`,
    );
  const kind = settings.activation_function?.split(".").at(-1) ?? "Tanh";
  const activation = Object.hasOwn(activations, kind) ? activations[kind] : undefined;
  if (activation === undefined)
    throw artifactUnsupported(path, `has the activation ${JSON.stringify(kind.slice(0, 100))}`);
  const stored = readSafetensorsFolder(join(folder, place));
  if (stored === undefined) throw artifactUnsupported(join(folder, place), "holds no weights as safetensors");
  return {
    layer: { name: `${place}.linear`, rows: settings.out_features, bias: settings.bias ?? true, activation },
    tensors: Array.from(stored.values(), (tensor) => ({ ...tensor, name: `${place}.${tensor.name}` })),
  };
}
