import type { RecurrentOp, StepPlan } from "@octavo/kernels";
import { convolve, scan, type ScanInputs } from "@octavo/kernels/testing/reference-recurrence";
import { OctavoError } from "@octavo/protocol/errors";
import type { BufferRef } from "@octavo/kernels";

/** Reads and writes a step's activation buffers. */
type RowOf = (ref: BufferRef, row: number) => Float32Array;

/** Keeps the inputs of all tokens so far for each slot and op, and recomputes states from the first one. */
export class ReferenceStates {
  readonly #inputs = new Map<string, readonly ScanInputs[]>();

  /** Runs a recurrent op over the step's tokens. */
  run(op: RecurrentOp, plan: StepPlan, rowOf: RowOf, valuesOf: (vector: unknown) => Float32Array): void {
    const { states } = plan;
    if (states === undefined) throw new OctavoError("internal_error", "The plan has no slots of state.");
    for (let sequence = 0; sequence < plan.numSequences; sequence++) {
      const [firstRow = 0, endRow = 0] = plan.queryStarts.subarray(sequence, sequence + 2);
      const first = (plan.contextLengths[sequence] ?? 0) - (endRow - firstRow);
      const known = this.#inputs.get(`${states.sources[sequence]}:${op.state}`) ?? [];
      const inputs = known.slice(0, first);
      for (let row = firstRow; row < endRow; row++)
        inputs.push(inputsOf(op, (ref) => rowOf(ref, row).slice()));
      const outputs = computed(op, inputs, valuesOf);
      for (let row = firstRow; row < endRow; row++)
        rowOf(op.out, row).set(outputs[first + row - firstRow] ?? []);
      this.#inputs.set(`${states.slots[sequence]}:${op.state}`, inputs);
      const [from = 0, to = 0] = states.snapshotStarts.subarray(sequence, sequence + 2);
      for (let at = from; at < to; at++) {
        const kept = inputs.slice(0, states.snapshotPositions[at]);
        this.#inputs.set(`${states.snapshotSlots[at]}:${op.state}`, kept);
      }
    }
  }
}

function inputsOf(op: RecurrentOp, read: (ref: BufferRef) => Float32Array): ScanInputs {
  const none = new Float32Array();
  if (op.op === "convolution") return { query: none, key: none, value: read(op.in), step: none };
  if (op.op === "state_space")
    return { query: read(op.c), key: read(op.b), value: read(op.x), step: read(op.step) };
  return {
    query: read(op.q),
    key: read(op.k),
    value: read(op.v),
    step: read(op.decay),
    strength: read(op.strength),
  };
}

function computed(
  op: RecurrentOp,
  inputs: readonly ScanInputs[],
  valuesOf: (vector: unknown) => Float32Array,
): number[][] {
  if (op.op !== "convolution") {
    const skip = op.op === "state_space" ? { skip: valuesOf(op.skip) } : {};
    return scan(op, { decayRate: valuesOf(op.decayRate), stepBias: valuesOf(op.stepBias), ...skip }, inputs);
  }
  const weight = valuesOf(op.weight);
  return convolve(
    inputs.map(({ value }) => value),
    weight,
    {
      taps: weight.length / (inputs[0]?.value.length ?? 1),
      ...(op.bias !== undefined && { bias: valuesOf(op.bias) }),
      ...(op.activation !== undefined && { activation: op.activation }),
    },
  );
}
