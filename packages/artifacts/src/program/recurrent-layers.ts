import type { BufferRef } from "@octavo/kernels";
import { OctavoError } from "@octavo/protocol/errors";
import { artifactInvalid } from "@octavo/text/files/artifact-file";
import type { ModelConfig, RecurrenceConfig } from "./model-config.js";
import type { MatrixPlan } from "./model-plan.js";
import type { ProgramBuilder } from "./program-builder.js";

/** Whether each layer has attention, and so keys and values in the cache. */
export function hasAttention({ recurrence }: ModelConfig, layer: number): boolean {
  return recurrence?.layers[layer] !== true;
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

/** Throws `artifact_invalid` for a convolution that the kernels do not have. */
export function checkTaps(path: string, taps: number): number {
  if (Number.isSafeInteger(taps) && taps >= 2 && taps <= 8) return taps;
  throw artifactInvalid(path, `has a convolution over ${taps} tokens; 2 to 8 are possible`);
}

/** A layer's mixer, recorded into `out`. */
export type LayerMixer = (input: BufferRef, out: BufferRef, layer: number) => void;

/** A convolution between two gates, all three of one projection (LFM2). */
export function shortConvolution(builder: ProgramBuilder): LayerMixer {
  const { hiddenSize } = builder.config;
  const { taps, hasBias: bias } = recurrenceOf(builder.config, "short_convolution");
  const inputs = builder.buffer(3 * hiddenSize);
  const convolved = builder.buffer(hiddenSize);
  const [before, after, value] = [0, 1, 2].map((part) => ({
    ...inputs,
    column: part * hiddenSize,
    width: hiddenSize,
  })) as [BufferRef, BufferRef, BufferRef];
  return (input, update, layer) => {
    const name = `model.layers.${layer}.conv`;
    builder.project(input, [{ name: `${name}.in_proj`, rows: 3 * hiddenSize, bias }], hiddenSize, inputs);
    builder.add({ op: "gate", in: before, on: value, activation: "identity" });
    builder.addRecurrent({
      op: "convolution",
      in: value,
      out: convolved,
      weight: builder.convolution(`${name}.conv.weight`, hiddenSize, taps),
      ...(bias && { bias: builder.vector(`${name}.conv.bias`, hiddenSize) }),
    });
    builder.add({ op: "gate", in: after, on: convolved, activation: "identity" });
    builder.project(convolved, [{ name: `${name}.out_proj`, rows: hiddenSize, bias }], hiddenSize, update);
  };
}

/**
 * Mamba-2 (arXiv 2405.21060): x, b and c of one projection pass a short convolution, the state space updates a matrix per head, and what
 * it gives is gated and normalised. `module` is the mixer's name within the layer. With `isNormOptional`, the checkpoint's tensors decide whether
 * there is a norm.
 */
export function stateSpace(
  builder: ProgramBuilder,
  module: string,
  { isNormOptional = false }: { readonly isNormOptional?: boolean } = {},
): LayerMixer {
  const { hiddenSize } = builder.config;
  const sizes = recurrenceOf(builder.config, "state_space");
  const { numGroups, numHeads, headDim, stateSize, taps, norm, leastStep, mostStep } = sizes;
  const inner = numHeads * headDim;
  const states = numGroups * stateSize;
  const projected = builder.buffer(2 * inner + 2 * states + numHeads);
  const convolved = builder.buffer(inner + 2 * states);
  const out = builder.buffer(inner);
  const parts = [inner, inner, states, states, numHeads].map((width, index, widths) => ({
    ...projected,
    column: widths.slice(0, index).reduce((sum, of) => sum + of, 0),
    width,
  })) as [BufferRef, BufferRef, BufferRef, BufferRef, BufferRef];
  const [gate, , , , step] = parts;
  const { buffer } = convolved;
  return (input, update, layer) => {
    const name = `model.layers.${layer}.${module}`;
    const rows = projected.width ?? 0;
    builder.project(
      input,
      [{ name: `${name}.in_proj`, rows, bias: sizes.hasProjectionBias }],
      hiddenSize,
      projected,
    );
    for (const [index, part] of parts.entries()) builder.scale(part, sizes.inputScales?.[index]);
    builder.addRecurrent({
      op: "convolution",
      in: { ...projected, column: inner, width: inner + 2 * states },
      out: convolved,
      weight: builder.convolution(`${name}.conv1d.weight`, inner + 2 * states, taps),
      ...(sizes.hasConvolutionBias && { bias: builder.vector(`${name}.conv1d.bias`, inner + 2 * states) }),
      activation: "silu",
    });
    builder.addRecurrent({
      op: "state_space",
      x: { buffer, column: 0, width: inner },
      b: { buffer, column: inner, width: states },
      c: { buffer, column: inner + states, width: states },
      step,
      skip: builder.flatVector(`${name}.D`, numHeads),
      out,
      numHeads,
      numKeyHeads: numGroups,
      keyDim: stateSize,
      valueDim: headDim,
      decayRate: builder.flatVector(`${name}.A_log`, numHeads),
      rateForm: sizes.rateForm,
      stepBias: builder.vector(`${name}.dt_bias`, numHeads),
      ...(leastStep !== undefined && { leastStep }),
      ...(mostStep !== undefined && { mostStep }),
    });
    const hasNorm = !isNormOptional || builder.has(`${name}.norm.weight`);
    const normalise = (): void => {
      if (!hasNorm) return;
      builder.norm(`${name}.norm.weight`, out, out, {
        groupSize: inner / numGroups,
        isWhole: true,
        weightOffset: 0,
      });
    };
    if (norm === "before_gate") normalise();
    builder.add({ op: "gate", in: gate, on: out, activation: "silu" });
    if (norm === "after_gate") normalise();
    builder.project(
      out,
      [{ name: `${name}.out_proj`, rows: hiddenSize, bias: sizes.hasProjectionBias }],
      inner,
      update,
    );
    builder.scale(update, sizes.outputScale);
  };
}

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
  const interleaved = sizes.isByKeyHead ? builder.buffer(2 * numHeads) : gates;
  const out = builder.buffer(valueWidth);
  const { buffer } = convolved;
  return (input, update, layer) => {
    const name = `model.layers.${layer}.linear_attn`;
    const strength = { ...gates, width: numHeads };
    const decay = { ...gates, column: numHeads, width: numHeads };
    const fused = `${name}.in_proj_qkvz.weight`;
    if (sizes.isByKeyHead && (builder.has(fused) || !builder.has(`${name}.in_proj_qkv.weight`))) {
      const values = valueWidth / numKeyHeads;
      const runs = { count: numKeyHeads, sizes: [keyDim, keyDim, values, values] };
      const rows = (...part: number[]): MatrixPlan => builder.rowsByRun(fused, runs, hiddenSize, part);
      builder.add({ op: "linear", in: input, weight: rows(0, 1, 2), out: projected });
      builder.add({ op: "linear", in: input, weight: rows(3), out: gate });
    } else {
      builder.project(
        input,
        [{ name: `${name}.in_proj_qkv`, rows: 2 * keyWidth + valueWidth }],
        hiddenSize,
        projected,
      );
      builder.project(input, [{ name: `${name}.in_proj_z`, rows: valueWidth }], hiddenSize, gate);
    }
    if (sizes.isByKeyHead) {
      builder.project(input, [{ name: `${name}.in_proj_ba`, rows: 2 * numHeads }], hiddenSize, interleaved);
      builder.add({
        op: "split",
        in: interleaved,
        first: strength,
        second: decay,
        run: numHeads / numKeyHeads,
      });
    } else {
      builder.project(
        input,
        [
          { name: `${name}.in_proj_b`, rows: numHeads },
          { name: `${name}.in_proj_a`, rows: numHeads },
        ],
        hiddenSize,
        gates,
      );
    }
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
      strength,
      decay,
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
