import type { WeightType } from "@octavo/kernels";
import type { TokenizerSource } from "@octavo/text/tokenizer/source";
import type { ModelConfig } from "../program/model-config.js";
import type { BudgetProcessing, Gemma4VisionConfig } from "../vision/gemma4-vision.js";
import type { ImageProcessing, ShapedProcessing } from "../vision/image-processing.js";
import type { Qwen25VisionConfig } from "../vision/qwen25-vision.js";
import type { Qwen3VisionConfig } from "../vision/qwen3-vision.js";
import type { VisionConfig } from "../vision/vision-config.js";

/** One tensor as it lies on disk. `shape` is row-major, outermost first (GGUF's order reversed). */
export interface TensorInfo {
  /** Hugging Face's name, e.g. "model.layers.0.self_attn.q_proj.weight"; GGUF names are mapped. */
  readonly name: string;
  readonly type: WeightType;
  readonly shape: readonly number[];
  readonly path: string;
  readonly offset: number;
  readonly byteLength: number;
  /** Bytes in memory, if unpacking makes them more than the file has. */
  readonly loadedBytes?: number;
  /** How a quantised matrix is put together; absent where the bytes at `offset` are the matrix. */
  readonly recipe?: MatrixRecipe;
  /** How the checkpoint wants what it is multiplied with to be rounded first. */
  readonly activations?: DeclaredActivations;
  /** Which of the elements at `offset` a vector takes; absent where it takes all. */
  readonly step?: VectorStep;
}

/** FP8 of the E4M3 kind, with scales of the file (`static`) or of each token's own values, for all of them or for each `groupSize`. */
export interface DeclaredActivations {
  readonly scales: "dynamic" | "static";
  readonly groupSize?: number;
}

/** A strided view of a vector that interleaves several. */
export interface VectorStep {
  readonly first: number;
  readonly every: number;
  readonly elementBytes: number;
}

/** A tensor as a safetensors file lists it, of any dtype that the format knows. */
export interface StoredTensor {
  readonly name: string;
  /** As the file spells it, e.g. "BF16". */
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly path: string;
  readonly offset: number;
  readonly byteLength: number;
}

/** A matrix that a quantised checkpoint spreads over several tensors, or stores in another order than the kernels take. */
export interface MatrixRecipe {
  /** Matrices with equal layouts may be stacked. */
  readonly layout: string;
  /** Reads the tensors, one matrix's worth of memory at a time. */
  assemble(): Promise<MatrixParts>;
  /** Recipes of `count` equal parts along the outermost dimension; absent if parts cannot be read on their own. */
  slices?(count: number): readonly MatrixRecipe[];
}

/** What a `MatrixSource` of the backend is made of, see there. */
export interface MatrixParts {
  /** A tensor whose bytes are used as they lie in the file, or new bytes. */
  readonly values: StoredTensor | Uint8Array;
  /** Only for types with separate scales. */
  readonly scales?: Float32Array;
  readonly zeros?: Float32Array;
  readonly groupSize?: number;
  readonly columnOrder?: Int32Array;
  readonly table?: Float32Array;
  readonly scaleRows?: number;
}

/** Sampling defaults from generation_config.json. */
export interface GenerationDefaults {
  readonly temperature?: number;
  readonly topP?: number;
  readonly topK?: number;
  readonly minP?: number;
  readonly repetitionPenalty?: number;
  readonly maxNewTokens?: number;
}

/** What a model sees with: its vision tower, and what becomes of images before it. */
export type VisionPart = SiglipPart | Gemma4VisionPart | Qwen3VisionPart | Qwen25VisionPart;

export interface SiglipPart extends TowerTensors {
  readonly kind: "siglip";
  readonly config: VisionConfig;
  readonly processing: ImageProcessing;
}

export interface Gemma4VisionPart extends TowerTensors {
  readonly kind: "gemma4";
  readonly config: Gemma4VisionConfig;
  readonly processing: BudgetProcessing;
}

export interface Qwen3VisionPart extends TowerTensors {
  readonly kind: "qwen3-vl";
  readonly config: Qwen3VisionConfig;
  readonly processing: ShapedProcessing;
}

export interface Qwen25VisionPart extends TowerTensors {
  readonly kind: "qwen2.5-vl";
  readonly config: Qwen25VisionConfig;
  readonly processing: ShapedProcessing;
}

interface TowerTensors {
  /** By their names within the tower. */
  readonly tensors: ReadonlyMap<string, TensorInfo>;
}

/** A model's files, opened and checked: header bounds, shapes and types, but no weights read yet. */
export interface Checkpoint {
  readonly format: "safetensors" | "gguf";
  /** As the user named it; what `--served-model-name` defaults to. */
  readonly name: string;
  readonly path: string;
  readonly config: ModelConfig;
  readonly generation: GenerationDefaults;
  readonly tensors: ReadonlyMap<string, TensorInfo>;
  readonly tokenizer: TokenizerSource;
  /** Only for multimodal models: the architecture, and how many tensors are not part of its text model. */
  readonly container?: {
    readonly name: string;
    readonly skippedTensors: number;
    /** Or why it sees nothing. */
    readonly vision: VisionPart | { readonly refusal: string };
  };
}
