import type { BufferRef } from "@octavo/kernels";
import type { ModelConfig } from "./model-config.js";
import type { ProgramBuilder } from "./program-builder.js";

/** Activation buffers of a decoder-only transformer; every layer uses the same ones. */
export interface DecoderBuffers {
  /** The residual stream. */
  readonly residual: BufferRef;
  /** Normalised input of a block. */
  readonly normed: BufferRef;
  /** What a block adds to the stream. */
  readonly update: BufferRef;
  /** q, k and v side by side. */
  readonly qkv: BufferRef;
  readonly attended: BufferRef;
  /** Buffers for gated heads: query and gate interleaved per head, and the gates alone. */
  readonly gatedQuery?: { readonly both: BufferRef; readonly gate: BufferRef };
  /** gate and up side by side. */
  readonly gateUp: BufferRef;
  readonly activated: BufferRef;
}

/** What tensors are called, where it is not as in Llama. */
export const llamaNames = {
  finalNorm: "model.norm",
  /** Within the layer: norms of the first and of the second block's input. */
  firstNorm: "input_layernorm",
  secondNorm: "post_attention_layernorm",
  /** Within the layer, and what stands within it. */
  attention: "self_attn",
  queryNorm: "q_norm",
  keyNorm: "k_norm",
  output: "o_proj",
  /** Within the layer. */
  gateUp: "mlp.gate_up_proj",
  gate: "mlp.gate_proj",
  up: "mlp.up_proj",
  down: "mlp.down_proj",
} as const;

export type DecoderNames = Readonly<Record<keyof typeof llamaNames, string>>;

/** Names, within the layer, of the norms of a block's input and of what it adds to the residual stream. */
export interface BlockNorms {
  readonly before?: string | undefined;
  readonly after?: string | undefined;
}

/** Keys and values of one layer. */
export interface LayerHeads {
  readonly numKvHeads: number;
  readonly headDim: number;
  /** k_proj gives the values, too; undefined where the tensors decide. */
  readonly valuesAreKeys: boolean | undefined;
  /** The earlier layer whose keys and values this one attends to, having none. */
  readonly sharesWith: number | undefined;
}

export function headsOfLayer(config: ModelConfig, layer: number): LayerHeads {
  const { numLayers, numKvHeads, headDim, globalHeads, numSharedKvLayers = 0, slidingWindows } = config;
  const isGlobal = slidingWindows[layer] === undefined;
  const firstShared = numLayers - numSharedKvLayers;
  const isLike = (window: number | undefined): boolean => (window === undefined) === isGlobal;
  const sharesWith =
    layer < firstShared ? undefined : slidingWindows.slice(0, firstShared).findLastIndex(isLike);
  const own = isGlobal ? globalHeads : undefined;
  return { numKvHeads, headDim, valuesAreKeys: false, ...own, sharesWith };
}

/** Inner width of a layer's MLP. */
export function innerSizeOf({ intermediateSizes, intermediateSize }: ModelConfig, layer: number): number {
  return intermediateSizes?.[layer] ?? intermediateSize;
}

/** The buffers of each layer: one set for all that have the same widths. */
export function layerBuffers(
  builder: ProgramBuilder,
  hasGatedHeads: boolean,
): (layer: number) => DecoderBuffers {
  const { config } = builder;
  const { hiddenSize, numHeads } = config;
  const shared = {
    residual: builder.buffer(hiddenSize),
    normed: builder.buffer(hiddenSize),
    update: builder.buffer(hiddenSize),
  };
  const heads = memoized((numKvHeads: number, headDim: number) => ({
    qkv: builder.buffer((numHeads + 2 * numKvHeads) * headDim),
    attended: builder.buffer(numHeads * headDim),
    ...(hasGatedHeads && {
      gatedQuery: { both: builder.buffer(2 * numHeads * headDim), gate: builder.buffer(numHeads * headDim) },
    }),
  }));
  const mlp = memoized((inner: number) => ({
    gateUp: builder.buffer(2 * inner),
    activated: builder.buffer(inner),
  }));
  return (layer) => {
    const { numKvHeads, headDim } = headsOfLayer(config, layer);
    return { ...shared, ...heads(numKvHeads, headDim), ...mlp(innerSizeOf(config, layer)) };
  };
}

function memoized<T>(make: (...sizes: number[]) => T): (...sizes: number[]) => T {
  const made = new Map<string, T>();
  return (...sizes) => {
    const key = sizes.join();
    const known = made.get(key) ?? make(...sizes);
    made.set(key, known);
    return known;
  };
}
