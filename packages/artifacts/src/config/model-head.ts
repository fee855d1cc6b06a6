import { artifactInvalid, artifactUnsupported } from "@octavo/text/files/artifact-file";
import type { ClassifierConfig } from "../program/model-config.js";
import type { ModelFamily } from "../program/model-family.js";
import type { ConfigJson } from "./config-schema.js";

/** Endings of the names of transformers' classes, by what stands above the layers. */
const endings = /(?:ForSequenceClassification|ForMaskedLM|ForCausalLM|TextModel|Model)$/;

/** The name of a class without what stands above its layers; "Llama" of all that LlamaModel is part of. */
export function classStem(name: string): string {
  return name.replace(endings, "");
}

/** Whether the family's layers carry a head of this class. */
export function carries({ encoder }: ModelFamily, name: string): boolean {
  return encoder === undefined ? !name.endsWith("ForMaskedLM") : !name.endsWith("ForCausalLM");
}

/**
 * The head that classifies, of the class ...ForSequenceClassification; undefined for other classes. A score becomes a probability as in
 * sentence-transformers' CrossEncoder and vLLM.
 * @throws OctavoError `artifact_invalid` or `artifact_unsupported`
 */
export function readClassifier(
  path: string,
  config: ConfigJson,
  { encoder }: ModelFamily,
): ClassifierConfig | undefined {
  if (config.architectures?.[0]?.endsWith("ForSequenceClassification") !== true) return undefined;
  const labels = readLabels(path, config);
  return {
    labels,
    pooling: encoder?.classifierPooling(config) ?? "last",
    activation: readActivation(path, config, labels.length),
  };
}

function readLabels(path: string, { id2label: named, num_labels: count }: ConfigJson): string[] {
  const size = named ? Object.keys(named).length : (count ?? 2);
  if (size < 1 || size > 4_096) throw artifactInvalid(path, `has ${size} labels; from 1 to 4096 can be`);
  return Array.from({ length: size }, (_, id) => {
    const label = named ? named[id] : `LABEL_${id}`;
    if (label === undefined)
      throw artifactInvalid(path, `has ${size} labels in id2label, but none for ${id}`);
    return label;
  });
}

function readActivation(path: string, config: ConfigJson, numLabels: number): ClassifierConfig["activation"] {
  const named =
    config.sentence_transformers?.activation_fn ?? config.sbert_ce_default_activation_function ?? undefined;
  const kind = named?.split(".").at(-1);
  if (kind === "Identity") return "identity";
  if (kind === "Sigmoid") return "sigmoid";
  if (kind !== undefined)
    throw artifactUnsupported(path, `has the classifier's activation ${JSON.stringify(kind.slice(0, 100))}`);
  if (config.problem_type === "regression") return "identity";
  return numLabels === 1 || config.problem_type === "multi_label_classification" ? "sigmoid" : "softmax";
}
