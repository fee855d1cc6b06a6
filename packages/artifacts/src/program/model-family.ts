import type { ConfigJson } from "../config/config-schema.js";
import type { LayerNames } from "../gguf/names.js";
import type { GgufValues } from "../gguf/values.js";
import type { GgufValue } from "../gguf/write-header.js";
import type { ExpertNames } from "./mixture-of-experts.js";
import type { ExpertsConfig, ModelConfig, Pooling, RopeConfig } from "./model-config.js";
import type { ModelPlan } from "./model-plan.js";
import type { ProgramBuilder } from "./program-builder.js";

/**
 * All that is known of a model family. Reading config.json and GGUF, running, planning and writing GGUF derive from it. Families are
 * listed in `registry.ts`.
 */
export interface ModelFamily {
  /** config.json's name in `architectures`, and `ModelConfig.architecture`. */
  readonly architecture: string;
  /** config.json's `model_type`; of the text part where a model takes more than text. */
  readonly modelType: string;
  /** Of models of other names with the same layers. */
  readonly otherModelTypes?: readonly string[];
  readonly defaults: ConfigDefaults;
  /** Which linear layers have biases: `config` where `attention_bias` and `mlp_bias` decide. Source: modeling_*.py. */
  readonly biases: Readonly<Record<"qkv" | "output" | "mlp", boolean | "config">>;
  /** Whether a layer has a sliding window where `layer_types` is absent; absent for families without windows. */
  readonly hasWindow?: (layer: number, config: ConfigJson) => boolean;
  /** What `layer_types` calls such a layer. Absent: `sliding_attention`. */
  readonly windowType?: string;
  /** Tokens of such a window, its own included, where that is not just what config.json says as `sliding_window`. */
  readonly windowSize?: (config: ConfigJson, given: number | undefined) => number | undefined;
  /** Decoders only: whether some of its models attend in both directions, as `use_bidirectional_attention` says. */
  readonly takesBothDirections?: boolean;
  /**
   * Settings of config.json that only some families have.
   * @throws OctavoError `artifact_invalid` or `artifact_unsupported`, naming `path`
   */
  readonly settings?: (path: string, config: ConfigJson, rope: RopeConfig) => Partial<ModelConfig>;
  /** Mixtures of experts alone. */
  readonly expertNames?: ExpertNames;
  /** Encoders alone. */
  readonly encoder?: EncoderFamily;
  /** Absent for families whose GGUF files are not read. */
  readonly gguf?: GgufFamily;
  /** Records the program. Throws `artifact_invalid` when a tensor is missing or its shape is not what the configuration implies. */
  plan(builder: ProgramBuilder): ModelPlan;
}

interface EncoderFamily {
  /** Before names of tensors in checkpoints that have a head, too. */
  readonly tensorPrefix: string;
  /** What the head that classifies reads. */
  readonly classifierPooling: (config: ConfigJson) => Pooling;
}

export type ExpertRouting = Pick<
  ExpertsConfig,
  "scoring" | "hasSelectionBias" | "groups" | "weightScale" | "weighsInput"
>;

/** What transformers' config class (configuration_*.py) assumes for a field that config.json leaves out. */
export interface ConfigDefaults {
  readonly hiddenSize: number;
  readonly numLayers: number;
  readonly numHeads: number;
  /** Absent: as many as heads. */
  readonly numKvHeads?: number;
  /** Absent: hidden size / heads. */
  readonly headDim?: number;
  readonly intermediateSize: number;
  readonly vocabSize: number;
  readonly maxPositionEmbeddings: number;
  readonly bosTokenId?: number;
  readonly eosTokenId?: number;
  /** Absent: 10 000. */
  readonly ropeTheta?: number;
  /** Absent: 1e-6. */
  readonly rmsNormEps?: number;
  /** Rotated share of each head. Absent: 1. */
  readonly partialRotaryFactor?: number;
  /** Absent: silu. */
  readonly hiddenActivation?: string;
  readonly tieWordEmbeddings?: boolean;
  /** Tokens of the layers that have a window. Absent: 4096; null: no layer has one. */
  readonly slidingWindow?: number | null;
  /** Mixtures of experts alone. */
  readonly experts?: {
    readonly count: number;
    readonly perToken: number;
    /** Absent: `intermediate_size` is the experts'. */
    readonly intermediateSize?: number;
    /** Absent: no expert is shared. */
    readonly sharedIntermediateSize?: number;
    /** Whether a token's weights add up to 1; where `norm_topk_prob` decides, what holds in its absence. */
    readonly normalizeWeights: boolean | { readonly absent: boolean };
    /** Only for families that also have dense models: whether this one has no experts. */
    readonly isAbsent?: (config: ConfigJson) => boolean;
    /** Width of the shared expert, if the configuration does not give it directly. */
    readonly sharedSize?: (config: ConfigJson) => number;
    /** How experts are chosen, where it is not by a softmax alone. */
    readonly routing?: (config: ConfigJson) => ExpertRouting;
    /** Layers before the first with experts. */
    readonly numDenseLayers?: (config: ConfigJson) => number;
  };
}

/** A family with GGUF files. */
export type GgufModelFamily = ModelFamily & { readonly gguf: GgufFamily };

/** What every GGUF file says, before the settings of its architecture. */
export type GgufBase = Omit<ModelConfig, "experts">;

/** A family's GGUF files as llama.cpp's converter (conversion/*.py) writes and its loader (src/models/*.cpp) reads them. */
export interface GgufFamily {
  /** `general.architecture`. Of families that share one, a file is the one's that recognises it, else the first's in the registry. */
  readonly architecture: string;
  /** Others that the same reader serves. */
  readonly otherArchitectures?: readonly string[];
  readonly recognises?: (values: GgufValues) => boolean;
  readonly layerNames: LayerNames;
  /** Before the layer's number in the names of checkpoints. Absent: `model.layers`. */
  readonly layers?: string;
  /** `interleaved` where the converter permutes the rows of q and k so that rotary pairs are neighbours (`LlamaModel.permute`). */
  readonly ropeLayout: "neox" | "interleaved";
  /** Heads of keys and values, and widths of MLPs, may differ between layers: `settings` reads them. */
  readonly layersDiffer?: true;
  /** The rows of q and k are neighbours as trained, and not permuted by the converter. */
  readonly isInterleavedAsTrained?: boolean;
  /** Settings that the architecture has beside those of every file, or in place of them. */
  readonly settings?: (values: GgufValues, base: GgufBase) => Partial<ModelConfig>;
  /** Absent where llama.cpp reads no file that could be written here. */
  readonly writing?: GgufWriting;
}

/** What llama.cpp's loader of an architecture takes; a model that needs more is refused. */
interface GgufWriting {
  /** Biases of the output projection and the MLP; those of q, k and v are taken everywhere. */
  readonly takesOutputBiases?: boolean;
  /** Where the head cannot be either: always a matrix of its own, or always the embedding. */
  readonly head?: "own" | "embedding";
  /** All heads together are as wide as the residual stream. */
  readonly hasWholeHeads?: boolean;
  /** Takes divisors of the inverse frequencies. */
  readonly takesRopeFactors?: boolean;
  /** Metadata that only some architectures have, by the key without the architecture. */
  readonly metadata?: (config: ModelConfig) => Readonly<Record<string, GgufValue>>;
}
