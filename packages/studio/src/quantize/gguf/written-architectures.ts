import { artifactUnsupported } from "@octavo/text/files/artifact-file";
import type { Checkpoint } from "@octavo/engine";

/** How llama.cpp has one of its architectures, as far as writers differ (conversion/*.py, src/models/*.cpp). */
export interface WrittenArchitecture {
  /** GGUF's name for it. */
  readonly kind: string;
  /** Biases of q, k and v are taken everywhere; of the output projection and the MLP only by some loaders. */
  readonly takesOutputBiases: boolean;
  /** Whether the output head may be the embedding, or must be. */
  readonly head: "either" | "own" | "embedding";
  /** All heads together are as wide as the residual stream. */
  readonly hasWholeHeads: boolean;
  /** Takes divisors of the inverse frequencies. */
  readonly takesRopeFactors: boolean;
  /** Added to the weights of norms. */
  readonly normOffset: number;
}

const plain: WrittenArchitecture = {
  kind: "llama",
  takesOutputBiases: false,
  head: "either",
  hasWholeHeads: false,
  takesRopeFactors: false,
  normOffset: 0,
};
const llama: WrittenArchitecture = { ...plain, takesOutputBiases: true, takesRopeFactors: true };

/** By registry key; llama.cpp's converter writes Mistral and Mixtral as llama. */
const architectures: Readonly<Record<string, WrittenArchitecture>> = {
  LlamaForCausalLM: llama,
  MistralForCausalLM: llama,
  MixtralForCausalLM: { ...llama, takesOutputBiases: false },
  Qwen2ForCausalLM: { ...plain, kind: "qwen2", hasWholeHeads: true },
  Qwen2MoeForCausalLM: { ...plain, kind: "qwen2moe", head: "own", hasWholeHeads: true },
  Qwen3ForCausalLM: { ...plain, kind: "qwen3" },
  Qwen3MoeForCausalLM: { ...plain, kind: "qwen3moe" },
  Gemma2ForCausalLM: { ...plain, kind: "gemma2", head: "embedding", normOffset: 1 },
  Gemma3ForCausalLM: { ...plain, kind: "gemma3", normOffset: 1 },
  Phi3ForCausalLM: { ...plain, kind: "phi3", hasWholeHeads: true, takesRopeFactors: true },
  Olmo2ForCausalLM: { ...plain, kind: "olmo2", head: "own", hasWholeHeads: true },
  OlmoeForCausalLM: { ...plain, kind: "olmoe", head: "own", hasWholeHeads: true },
  GraniteForCausalLM: { ...llama, kind: "granite" },
  GraniteMoeForCausalLM: { ...llama, kind: "granitemoe" },
  SmolLM3ForCausalLM: { ...plain, kind: "smollm3" },
};

/** @throws OctavoError `artifact_unsupported` for models that llama.cpp has no such architecture for */
export function writtenArchitecture({ path, config, tensors }: Checkpoint): WrittenArchitecture {
  const found = Object.hasOwn(architectures, config.architecture)
    ? architectures[config.architecture]
    : undefined;
  if (found === undefined) {
    const known = Object.keys(architectures).join(", ");
    throw artifactUnsupported(path, `is a ${config.architecture}; GGUF files are written for ${known}`);
  }
  const refuse = (problem: string): never => {
    throw artifactUnsupported(path, `${problem}, which llama.cpp's ${found.kind} models cannot have`);
  };
  if (found.head === "own" && config.tieWordEmbeddings) refuse("has the embedding for an output head");
  if (found.head === "embedding" && !config.tieWordEmbeddings) refuse("has an output head of its own");
  if (found.hasWholeHeads && config.numHeads * config.headDim !== config.hiddenSize) {
    refuse(`has ${config.numHeads} heads of ${config.headDim} beside a hidden size of ${config.hiddenSize}`);
  }
  const bias = [...tensors.keys()].find((name) => /\.(?:o_proj|mlp\..+)\.bias$/.test(name));
  if (!found.takesOutputBiases && bias !== undefined) refuse(`has the bias ${JSON.stringify(bias)}`);
  return found;
}
