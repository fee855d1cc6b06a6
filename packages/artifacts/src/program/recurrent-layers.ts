import type { BufferRef } from "@octavo/kernels";
import { OctavoError } from "@octavo/protocol/errors";
import type { ModelConfig, RecurrenceConfig } from "./model-config.js";
import type { ProgramBuilder } from "./program-builder.js";

/** Whether each layer has attention, and so keys and values in the cache. */
export function hasAttention({ recurrence }: ModelConfig, layer: number): boolean {
  return recurrence?.layers[layer] !== true;
}

/** Layers of the cache. An encoder's all use one, since nothing is kept of a sequence. */
export function numAttentionLayers(config: ModelConfig): number {
  if (config.encoder !== undefined) return 1;
  return Array.from({ length: config.numLayers }, (_, layer) => layer).filter((layer) =>
    hasAttention(config, layer),
  ).length;
}

/** Throws `internal_error` when the model has no recurrence of this kind: its family's config reader sets it. */
function recurrenceOf<K extends RecurrenceConfig["kind"]>(
  { recurrence }: ModelConfig,
  kind: K,
): Extract<RecurrenceConfig, { kind: K }> {
  if (recurrence?.kind !== kind)
    throw new OctavoError("internal_error", `The model was planned without its ${kind} layers.`);
  return recurrence as Extract<RecurrenceConfig, { kind: K }>;
}

/** A layer's mixer, recorded into `out`. */
export type LayerMixer = (input: BufferRef, out: BufferRef, layer: number) => void;

/**
 * Gated DeltaNet (arXiv 2412.06464) as Qwen3.5 has it: q, k and v of one projection pass a short convolution, the delta rule updates a
 * matrix per head, and each head's output is normalised and gated.
 */
export function gatedDeltaNet(builder: ProgramBuilder): LayerMixer {
  const { hiddenSize } = builder.config;
  const sizes = recurrenceOf(builder.config, "gated_delta_rule");
  const { numKeyHeads, numHeads, keyDim, valueDim } = sizes;
  const keyWidth = numKeyHeads * keyDim;
  const valueWidth = numHeads * valueDim;
  const projected = builder.buffer(2 * keyWidth + valueWidth);
  const convolved = builder.buffer(2 * keyWidth + valueWidth);
  const gate = builder.buffer(valueWidth);
  const gates = builder.buffer(2 * numHeads);
  const out = builder.buffer(valueWidth);
  const { buffer } = convolved;
  return (input, update, layer) => {
    const name = `model.layers.${layer}.linear_attn`;
    builder.project(
      input,
      [{ name: `${name}.in_proj_qkv`, rows: 2 * keyWidth + valueWidth }],
      hiddenSize,
      projected,
    );
    builder.project(input, [{ name: `${name}.in_proj_z`, rows: valueWidth }], hiddenSize, gate);
    builder.project(
      input,
      [
        { name: `${name}.in_proj_b`, rows: numHeads },
        { name: `${name}.in_proj_a`, rows: numHeads },
      ],
      hiddenSize,
      gates,
    );
    builder.addRecurrent({
      op: "convolution",
      in: projected,
      out: convolved,
      weight: builder.convolution(`${name}.conv1d.weight`, 2 * keyWidth + valueWidth, sizes.taps),
      activation: "silu",
    });
    builder.addRecurrent({
      op: "gated_delta_rule",
      q: { buffer, column: 0, width: keyWidth },
      k: { buffer, column: keyWidth, width: keyWidth },
      v: { buffer, column: 2 * keyWidth, width: valueWidth },
      strength: { buffer: gates.buffer, column: 0, width: numHeads },
      decay: { buffer: gates.buffer, column: numHeads, width: numHeads },
      out,
      numHeads,
      numKeyHeads,
      keyDim,
      valueDim,
      keyHeads: sizes.keyHeads,
      decayRate: builder.vector(`${name}.A_log`, numHeads),
      rateForm: sizes.rateForm,
      stepBias: builder.vector(`${name}.dt_bias`, numHeads),
    });
    // Multiplied by its weight as it is, also where the layers' norms multiply by 1 + weight.
    builder.norm(`${name}.norm.weight`, out, out, { groupSize: valueDim, weightOffset: 0 });
    builder.add({ op: "gate", in: gate, on: out, activation: "silu" });
    builder.project(out, [{ name: `${name}.out_proj`, rows: hiddenSize }], valueWidth, update);
  };
}
