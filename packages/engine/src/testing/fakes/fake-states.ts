import assert from "node:assert/strict";
import type { StateSpec, StepPlan } from "@octavo/kernels";

interface FakeState {
  /** All tokens that were folded into it, drafts included. */
  readonly tokens: readonly number[];
  /** Tokens that it stands for. */
  readonly end: number;
}

/** Slots of state that remember the tokens they stand for. Plans are checked; a state of other tokens than its sequence's fails. */
export class FakeStates {
  readonly #spec: StateSpec;
  readonly #states = new Map<number, FakeState>();

  constructor(spec: StateSpec) {
    this.#spec = spec;
  }

  run({ states, numSequences, queryStarts, contextLengths, tokenIds }: StepPlan): void {
    assert(states !== undefined, "a step without slots of state");
    const { numSlots, maxDraftTokens } = this.#spec;
    const written = new Map<number, FakeState>();
    const write = (slot: number, state: FakeState): void => {
      assert(slot >= 0 && slot < numSlots, `state slot ${slot} is out of range`);
      assert(!written.has(slot), `state slot ${slot} is written twice`);
      written.set(slot, state);
    };
    for (let sequence = 0; sequence < numSequences; sequence += 1) {
      const [firstRow, endRow] = [queryStarts[sequence]!, queryStarts[sequence + 1]!];
      const first = contextLengths[sequence]! - (endRow - firstRow);
      const slot = states.slots[sequence]!;
      const source: number = states.sources[sequence]!;
      const start: number = states.starts[sequence]!;
      const end: number = states.ends[sequence]!;
      const before: FakeState | undefined = source === -1 ? { tokens: [], end: 0 } : this.#states.get(source);
      assert(before !== undefined, `state slot ${source} was never written`);
      assert.equal(before.end, start, `state slot ${source} stands for ${before.end} tokens, not ${start}`);
      assert(before.tokens.length >= first && first - start <= maxDraftTokens, "a state without its tokens");
      assert(source === slot || start === first, "a snapshot with tokens behind it");
      const tokens = [...before.tokens.slice(0, first), ...tokenIds.subarray(firstRow, endRow)];
      assert(end > first && end <= tokens.length && tokens.length - end <= maxDraftTokens);
      write(slot, { tokens, end });
      let previous = start;
      for (let at = states.snapshotStarts[sequence]!; at < states.snapshotStarts[sequence + 1]!; at += 1) {
        const position = states.snapshotPositions[at]!;
        assert(position > previous && position <= end, "a snapshot out of order");
        previous = position;
        write(states.snapshotSlots[at]!, { tokens: tokens.slice(0, position), end: position });
      }
    }
    for (let sequence = 0; sequence < numSequences; sequence += 1) {
      const source = states.sources[sequence]!;
      assert(source === states.slots[sequence] || !written.has(source), "a source is written");
    }
    for (const [slot, state] of written) this.#states.set(slot, state);
  }

  /** `context` is what the blocks of a sequence hold up to one of its tokens. */
  checkContext(slot: number, context: readonly number[]): void {
    const known = this.#states.get(slot)?.tokens.slice(0, context.length);
    assert.deepEqual(known, context, "the state stands for other tokens");
  }
}
