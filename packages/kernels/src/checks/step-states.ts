import type { StateSpec, StepPlan, StepStates } from "../backend.js";
import { fail } from "./numbers.js";
import type { CheckedProgram } from "./program.js";
import type { StateNeed } from "./recurrent-ops.js";

/** Refuses slots that do not exist, that a step would write twice or read while it writes them, and tokens that no slot stands for. */
export function checkStepStates(plan: StepPlan, program: CheckedProgram, spec: StateSpec | undefined): void {
  const { states: needs } = program;
  if (needs.length === 0) return;
  if (spec === undefined || !fits(needs, spec)) {
    fail("The cache's slots of state are not those that the program needs.");
  }
  const { states, numSequences } = plan;
  if (states === undefined) return fail("states is missing; the program keeps recurrent state.");
  checkArrays(states, numSequences);
  const written = new Set<number>();
  const write = (name: string, slot: number | undefined): void => {
    if (slot === undefined || slot < 0 || slot >= spec.numSlots)
      fail(`${name} is ${slot}; the cache has slots 0 to ${spec.numSlots - 1}.`);
    if (written.has(slot)) fail(`${name} is ${slot}, which the step writes already.`);
    written.add(slot);
  };
  for (let sequence = 0; sequence < numSequences; sequence++) {
    write(`states.slots[${sequence}]`, states.slots[sequence]);
    checkSpan(plan, states, sequence, spec.maxDraftTokens);
    checkSnapshots(states, sequence, (at) => write(`states.snapshotSlots[${at}]`, states.snapshotSlots[at]));
  }
  for (let sequence = 0; sequence < numSequences; sequence++) {
    const source = states.sources[sequence] ?? -1;
    if (source < -1 || source >= spec.numSlots) fail(`states.sources[${sequence}] is ${source}.`);
    if (source !== states.slots[sequence] && written.has(source))
      fail(`states.sources[${sequence}] is slot ${source}, which the step writes.`);
  }
}

function fits(needs: readonly StateNeed[], { widths, maxDraftTokens }: StateSpec): boolean {
  return (
    widths.length === needs.length &&
    needs.every(({ base, perDraft }, index) => widths[index] === base + perDraft * maxDraftTokens)
  );
}

function checkArrays(states: StepStates, numSequences: number): void {
  const numSnapshots = states.snapshotStarts[numSequences] ?? 0;
  const lengths = {
    slots: numSequences,
    sources: numSequences,
    starts: numSequences,
    ends: numSequences,
    snapshotStarts: numSequences + 1,
    snapshotPositions: numSnapshots,
    snapshotSlots: numSnapshots,
  };
  for (const [name, least] of Object.entries(lengths)) {
    const array = states[name as keyof StepStates];
    if (!(array instanceof Int32Array) || array.length < least)
      fail(`states.${name} must be an Int32Array of at least ${least} elements.`);
  }
}

function checkSpan(plan: StepPlan, states: StepStates, sequence: number, maxDraftTokens: number): void {
  const { queryStarts, contextLengths } = plan;
  const context = contextLengths[sequence] ?? 0;
  const first = context - (queryStarts[sequence + 1] ?? 0) + (queryStarts[sequence] ?? 0);
  const start = states.starts[sequence] ?? -1;
  const end = states.ends[sequence] ?? -1;
  const source = states.sources[sequence];
  const isOwn = source === states.slots[sequence];
  if (start < 0 || start > first || first - start > (isOwn ? maxDraftTokens : 0))
    fail(`states.starts[${sequence}] is ${start}; the sequence's first query is at ${first}.`);
  if (source === -1 ? first !== 0 : start === 0)
    fail(`states.sources[${sequence}] is ${source}, with ${start} tokens before the first query.`);
  if (end <= first || end > context || context - end > maxDraftTokens)
    fail(`states.ends[${sequence}] is ${end}; the sequence's queries are ${first} to ${context}.`);
}

function checkSnapshots(states: StepStates, sequence: number, write: (at: number) => void): void {
  const [from = 0, to = -1] = states.snapshotStarts.subarray(sequence, sequence + 2);
  if (from > to || (sequence === 0 && from !== 0))
    fail(`states.snapshotStarts[${sequence}] is ${from}, before ${to}.`);
  let previous = states.starts[sequence] ?? 0;
  for (let at = from; at < to; at++) {
    const position = states.snapshotPositions[at] ?? 0;
    if (position <= previous || position > (states.ends[sequence] ?? 0))
      fail(`states.snapshotPositions[${at}] is ${position}, behind ${previous} of sequence ${sequence}.`);
    previous = position;
    write(at);
  }
}
