import type { ExpertsConfig, ModelConfig } from "../program/model-config.js";
import { artifactUnsupported } from "@octavo/text/files/artifact-file";
import { checkExperts } from "../config/config-experts.js";
import {
  gptOssLayerNames,
  graniteMoeLayerNames,
  type LayerNames,
  llamaLayerNames,
  mixtralLayerNames,
  phi3LayerNames,
  postNormLayerNames,
  qwenMoeLayerNames,
} from "./gguf-names.js";
import type { GgufValues } from "./gguf-values.js";

/** What every GGUF file says, before the settings of its architecture. */
export type GgufBase = Omit<ModelConfig, "experts">;

/** One of GGUF's architectures, as its converter (llama.cpp's conversion/*.py) and loader (src/models/*.cpp) have it. */
export interface GgufArchitecture {
  /** GGUF's name for it. */
  readonly kind: string;
  /** Registry key. */
  readonly name: string;
  readonly layerNames: LayerNames;
  /**
   * `interleaved` where the converter permutes the rows of q and k so that the rotary pairs lie side by side (`LlamaModel.permute`).
   */
  readonly ropeLayout: "neox" | "interleaved";
  /** Settings that the architecture has beside those of every file, or in place of them. */
  readonly settings?: (values: GgufValues, base: GgufBase) => Partial<ModelConfig>;
}

const architectures: Readonly<Record<string, Omit<GgufArchitecture, "kind">>> = {
  llama: { name: "LlamaForCausalLM", layerNames: llamaLayerNames, ropeLayout: "interleaved" },
  qwen2: { name: "Qwen2ForCausalLM", layerNames: llamaLayerNames, ropeLayout: "neox" },
  qwen2moe: {
    name: "Qwen2MoeForCausalLM",
    layerNames: qwenMoeLayerNames,
    ropeLayout: "neox",
    settings: (values, base) =>
      mixture(values, base, { normalizeWeights: false, ownSize: true, shared: true }),
  },
  qwen3: { name: "Qwen3ForCausalLM", layerNames: llamaLayerNames, ropeLayout: "neox" },
  qwen3moe: {
    name: "Qwen3MoeForCausalLM",
    layerNames: qwenMoeLayerNames,
    ropeLayout: "neox",
    settings: (values, base) => mixture(values, base, { normalizeWeights: true, ownSize: true }),
  },
  gemma2: {
    name: "Gemma2ForCausalLM",
    layerNames: postNormLayerNames,
    ropeLayout: "neox",
    settings: (values, base) => ({
      ...gemma(base, 46),
      slidingWindows: windowsByPattern(
        values,
        base.numLayers,
        values.number("attention.sliding_window") ?? 4_096,
        2,
      ),
      attentionSoftCap: values.number("attn_logit_softcapping") ?? 50,
      logitSoftCap: values.number("final_logit_softcapping") ?? 30,
    }),
  },
  gemma3: {
    name: "Gemma3ForCausalLM",
    layerNames: postNormLayerNames,
    ropeLayout: "neox",
    settings: (values, base) => {
      const logitSoftCap = values.number("final_logit_softcapping") ?? 0;
      return {
        ...gemma(base, 62),
        slidingWindows: windowsByPattern(
          values,
          base.numLayers,
          values.number("attention.sliding_window"),
          6,
        ),
        localRope: {
          ...base.rope,
          theta: values.number("rope.freq_base_swa") ?? 10_000,
          scaling: { kind: "none" },
        },
        ...(logitSoftCap > 0 && { logitSoftCap }),
      };
    },
  },
  phi3: { name: "Phi3ForCausalLM", layerNames: phi3LayerNames, ropeLayout: "neox" },
  olmo2: {
    name: "Olmo2ForCausalLM",
    layerNames: postNormLayerNames,
    ropeLayout: "neox",
    settings: (values) => {
      if ((values.number("attention.sliding_window") ?? 0) === 0) return {};
      throw artifactUnsupported(
        values.path,
        "is an OLMo 3 model (olmo2 with a sliding window); OLMo 2 is supported",
      );
    },
  },
  olmoe: {
    name: "OlmoeForCausalLM",
    layerNames: qwenMoeLayerNames,
    ropeLayout: "neox",
    settings: (values, base) => mixture(values, base, { normalizeWeights: false }),
  },
  granite: {
    name: "GraniteForCausalLM",
    layerNames: llamaLayerNames,
    ropeLayout: "interleaved",
    settings: granite,
  },
  granitemoe: {
    name: "GraniteMoeForCausalLM",
    layerNames: graniteMoeLayerNames,
    ropeLayout: "interleaved",
    settings: (values, base) => {
      if ((values.number("expert_shared_feed_forward_length") ?? 0) > 0) {
        throw artifactUnsupported(
          values.path,
          "has a shared expert beside Granite's others, which is not supported yet",
        );
      }
      return { ...granite(values, base), ...mixture(values, base, { normalizeWeights: true }) };
    },
  },
  "gpt-oss": {
    name: "GptOssForCausalLM",
    layerNames: gptOssLayerNames,
    ropeLayout: "neox",
    settings: (values, base) => ({
      ...mixture(values, base, { normalizeWeights: true, ownSize: true }),
      hiddenActivation: "clamped_swiglu",
      slidingWindows: windowsByPattern(values, base.numLayers, values.number("attention.sliding_window"), 2),
      // The model was trained with unrounded bounds, which a file has no key for.
      ...(base.rope.scaling.kind === "yarn" && {
        rope: { ...base.rope, scaling: { ...base.rope.scaling, truncate: false } },
      }),
    }),
  },
  smollm3: {
    name: "SmolLM3ForCausalLM",
    layerNames: llamaLayerNames,
    ropeLayout: "interleaved",
    settings: (_, { numLayers }) => ({
      layersWithoutRope: Array.from(
        { length: Math.min(numLayers, 1_024) },
        (_layer, index) => (index + 1) % 4 === 0,
      ),
    }),
  },
};

/** llama.cpp's converter writes Mistral and Mixtral as `llama`, the latter with a count of experts. */
const mixtral: GgufArchitecture = {
  kind: "llama",
  name: "MixtralForCausalLM",
  layerNames: mixtralLayerNames,
  ropeLayout: "interleaved",
  settings: (values, base) => mixture(values, base, { normalizeWeights: true }),
};

/** Undefined for architectures that Octavo does not know. */
export function ggufArchitecture(kind: string, values: GgufValues): GgufArchitecture | undefined {
  if (kind === "llama" && (values.number("expert_count") ?? 0) > 0) return mixtral;
  const row = Object.hasOwn(architectures, kind) ? architectures[kind] : undefined;
  return row && { kind, ...row };
}

/** GGUF's words for the architectures among `supported`, which are registry keys. */
export function ggufArchitectureNames(supported: readonly string[]): string[] {
  return Object.entries(architectures).flatMap(([kind, { name }]) =>
    supported.includes(name) ? [kind] : [],
  );
}

/**
 * The converter adds 1 to the norms' weights. Scores are scaled by the head size, but by hidden size / heads in the 27B models, which
 * are told by their number of layers.
 */
function gemma(
  { hiddenSize, numHeads, headDim, numLayers }: GgufBase,
  layersOf27B: number,
): Partial<ModelConfig> {
  return {
    hiddenActivation: "gelu_tanh",
    embeddingScale: Math.sqrt(hiddenSize),
    attentionScale: 1 / Math.sqrt(numLayers === layersOf27B ? Math.trunc(hiddenSize / numHeads) : headDim),
  };
}

/** Every `pattern`-th layer has full attention, unless the file says which. */
function windowsByPattern(
  values: GgufValues,
  numLayers: number,
  window: number | undefined,
  pattern: number,
): (number | undefined)[] {
  const length = Math.min(numLayers, 1_024);
  const layers = Array.from({ length }, (_, layer) => layer);
  if (window === undefined || window === 0) return layers.map(() => undefined);
  const listed = values.booleans("attention.sliding_window_pattern");
  if (listed !== undefined) return layers.map((layer) => (listed[layer] === true ? window : undefined));
  const every = values.number("attention.sliding_window_pattern") ?? pattern;
  return layers.map((layer) => (every > 0 && (layer + 1) % every === 0 ? undefined : window));
}

function granite(values: GgufValues, { numLayers }: GgufBase): Partial<ModelConfig> {
  const scaled = (key: string): number => values.number(key) ?? 0;
  const [attentionScale, embeddingScale, residualScale, logitScale] = [
    scaled("attention.scale"),
    scaled("embedding_scale"),
    scaled("residual_scale"),
    scaled("logit_scale"),
  ];
  // Granite 4 says in this way that no layer rotates.
  const rotates = values.boolean("rope.scaling.finetuned") ?? true;
  return {
    ...(attentionScale !== 0 && { attentionScale }),
    ...(embeddingScale !== 0 && { embeddingScale }),
    ...(residualScale !== 0 && { residualScale }),
    ...(logitScale !== 0 && { logitScale: 1 / logitScale }),
    ...(!rotates && { layersWithoutRope: Array.from({ length: Math.min(numLayers, 1_024) }, () => true) }),
  };
}

function mixture(
  values: GgufValues,
  { intermediateSize, numLayers }: GgufBase,
  kind: { readonly normalizeWeights: boolean; readonly ownSize?: boolean; readonly shared?: boolean },
): { readonly experts: ExpertsConfig } {
  const scale = values.number("expert_weights_scale") ?? 0;
  const gating = values.number("expert_gating_func") ?? 0;
  if ((scale !== 0 && scale !== 1) || gating > 1) {
    throw artifactUnsupported(
      values.path,
      `has experts whose weights are ${gating > 1 ? `not a softmax (expert_gating_func ${gating})` : `scaled by ${scale}`}, which is not supported yet`,
    );
  }
  const key = (name: string): string => values.keyOf(name);
  const perToken = values.needNumber("expert_used_count");
  const ownSize = values.uniform("expert_feed_forward_length") ?? Math.trunc(intermediateSize / perToken);
  const sharedIntermediateSize = values.number("expert_shared_feed_forward_length") ?? intermediateSize;
  const experts: ExpertsConfig = {
    count: values.needNumber("expert_count"),
    perToken,
    intermediateSize: kind.ownSize === true ? ownSize : intermediateSize,
    normalizeWeights: kind.normalizeWeights,
    ...(kind.shared === true && { sharedIntermediateSize }),
    denseLayers: Array.from({ length: Math.min(numLayers, 1_024) }, () => false),
  };
  return {
    experts: checkExperts(values.path, experts, {
      count: key("expert_count"),
      perToken: key("expert_used_count"),
      intermediateSize: key(kind.ownSize === true ? "expert_feed_forward_length" : "feed_forward_length"),
      sharedIntermediateSize: key("expert_shared_feed_forward_length"),
    }),
  };
}
