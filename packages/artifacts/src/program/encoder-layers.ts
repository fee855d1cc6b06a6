import type { BufferRef, PlainActivation } from "@octavo/kernels";
import { OctavoError } from "@octavo/protocol/errors";
import type { ModelPlan } from "./model-plan.js";
import type { ProgramBuilder } from "./program-builder.js";
import { ropeSpec } from "./rope.js";

/** Activation buffers of an encoder; every layer uses the same ones. */
export interface EncoderBuffers {
  readonly stream: BufferRef;
  readonly normed: BufferRef;
  readonly update: BufferRef;
  readonly qkv: BufferRef;
  readonly attended: BufferRef;
}

export function encoderBuffers(builder: ProgramBuilder): EncoderBuffers {
  const { hiddenSize } = builder.config;
  return {
    stream: builder.buffer(hiddenSize),
    normed: builder.buffer(hiddenSize),
    update: builder.buffer(hiddenSize),
    qkv: builder.buffer(3 * hiddenSize),
    attended: builder.buffer(hiddenSize),
  };
}

/** A layer norm; `residual` as in the op. */
export function addLayerNorm(
  builder: ProgramBuilder,
  name: string,
  [input, out]: readonly [BufferRef, BufferRef],
  { hasBias, residual }: { readonly hasBias: boolean; readonly residual?: BufferRef },
): void {
  const { hiddenSize, rmsNormEps: eps } = builder.config;
  builder.add({
    op: "layer_norm",
    in: input,
    weight: builder.vector(`${name}.weight`, hiddenSize),
    ...(hasBias && { bias: builder.vector(`${name}.bias`, hiddenSize) }),
    out,
    eps,
    ...(residual !== undefined && { residual }),
  });
}

/**
 * Attention in both directions over the projections in `qkv`. Nothing is kept of a sequence beyond its step, so that all layers use the
 * cache's first one.
 */
export function encoderAttention(
  builder: ProgramBuilder,
  { qkv, attended }: EncoderBuffers,
  layer: number,
  isRotated: boolean,
  scale = 1 / Math.sqrt(builder.config.headDim),
): void {
  const { config } = builder;
  const { numHeads, headDim } = config;
  const width = numHeads * headDim;
  const part = (index: number): BufferRef => ({ ...qkv, column: index * width, width });
  const slidingWindow = config.slidingWindows[layer];
  if (isRotated) {
    const rope = slidingWindow === undefined ? config.rope : (config.localRope ?? config.rope);
    const on = { ...qkv, column: 0, width: 2 * width };
    builder.add({ op: "rope", on, headDim, rope: ropeSpec(rope, config.maxPositionEmbeddings) });
  }
  builder.add({
    op: "attention",
    q: part(0),
    k: part(1),
    v: part(2),
    out: attended,
    layer: 0,
    numHeads,
    numKvHeads: numHeads,
    headDim,
    scale,
    ...sightOf(config.maxPositionEmbeddings, slidingWindow),
  });
}

/** What tokens of an encoder see: as far ahead as back, within the window if the layer has one. */
export function sightOf(
  maxPositions: number,
  slidingWindow: number | undefined,
): { readonly lookAhead: number; readonly slidingWindow?: number } {
  if (slidingWindow === undefined) return { lookAhead: maxPositions };
  return { slidingWindow, lookAhead: slidingWindow - 1 };
}

/** A linear into a buffer of its own, and what follows it. */
export function headLinear(
  builder: ProgramBuilder,
  input: BufferRef,
  linear: { readonly name: string; readonly rows: number; readonly bias: boolean },
  activation?: PlainActivation,
): BufferRef {
  const out = builder.buffer(linear.rows);
  builder.project(input, [linear], input.width ?? 0, out);
  if (activation !== undefined && activation !== "identity")
    builder.add({ op: "activation", on: out, activation });
  return out;
}

/**
 * Ends an encoder: the rows that are asked for, pooled as outputs say, then the classifier where the model has one, else the dense
 * layers behind sentence-transformers' pooling.
 * @param tokens every token's last hidden state, normalised
 */
export function finishEncoder(
  builder: ProgramBuilder,
  tokens: BufferRef,
  classify: (pooled: BufferRef, numLabels: number) => BufferRef,
): ModelPlan {
  const { classifier, embedding } = builder.config;
  const pooled = builder.buffer(tokens.width ?? 0);
  builder.add({ op: "gather", in: tokens, out: pooled });
  if (classifier !== undefined) return builder.finish(classify(pooled, classifier.labels.length));
  const last = (embedding?.dense ?? []).reduce(
    (input, { name, rows, bias, activation }) => headLinear(builder, input, { name, rows, bias }, activation),
    pooled,
  );
  return builder.finish(last);
}

/** The logit of one token less that of another, from their rows of the output head. */
export function logitMargin(
  builder: ProgramBuilder,
  hidden: BufferRef,
  tokens: readonly [yes: number, no: number],
): BufferRef {
  const { hiddenSize, vocabSize, tieWordEmbeddings } = builder.config;
  const head = tieWordEmbeddings ? "model.embed_tokens.weight" : "lm_head.weight";
  const [yes, no] = tokens.map((token) => {
    const runs = { count: 1, sizes: [token, 1, vocabSize - token - 1] };
    const weight = builder.rowsByRun(head, runs, hiddenSize, [1]);
    const out = builder.buffer(1);
    builder.add({ op: "linear", in: hidden, weight, out });
    return out;
  });
  if (yes === undefined || no === undefined)
    throw new OctavoError("internal_error", "A margin of fewer than two tokens was planned.");
  builder.scale(no, -1);
  builder.add({ op: "add", in: no, out: yes });
  return yes;
}
