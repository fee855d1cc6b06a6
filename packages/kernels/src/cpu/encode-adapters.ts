import type { Adapter, StepPlan } from "../backend.js";
import type { NativeObject, NativeStepAdapters } from "./addon.js";

/** The step's adapters, each once, and which sequence has which; undefined when none has one. */
export function encodeAdapters(
  { adapters, numSequences }: StepPlan,
  objectOf: (adapter: Adapter) => NativeObject<"adapter">,
): NativeStepAdapters | undefined {
  if (adapters === undefined) return undefined;
  const indices = new Map<Adapter, number>();
  const ofSequence = new Int32Array(numSequences).fill(-1);
  for (let sequence = 0; sequence < numSequences; sequence++) {
    const adapter = adapters[sequence];
    if (adapter === undefined) continue;
    const index = indices.get(adapter) ?? indices.size;
    indices.set(adapter, index);
    ofSequence[sequence] = index;
  }
  if (indices.size === 0) return undefined;
  return { handles: Array.from(indices.keys(), objectOf), ofSequence };
}
