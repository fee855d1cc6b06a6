import type { StepPlan } from "../backend.js";
import type { SeededRandom } from "./seeded-random.js";

interface ScheduledStep {
  readonly plan: StepPlan;
  /** Sequence and position behind each output row; every token of the step has one. */
  readonly rows: readonly { readonly sequence: number; readonly position: number }[];
}

/** Feeds sequences in random chunks, several a step, over blocks dealt at random. Token ids number all tokens in order. */
export class RandomSchedule {
  readonly numBlocks: number;
  readonly #random: SeededRandom;
  readonly #lengths: readonly number[];
  readonly #blockSize: number;
  readonly #tables: readonly (readonly number[])[];
  readonly #done: number[];
  readonly #firstId: number;
  readonly #mostPerStep: number;

  constructor(
    random: SeededRandom,
    lengths: readonly number[],
    blockSize: number,
    options: { readonly firstId?: number; readonly mostPerStep?: number } = {},
  ) {
    this.#firstId = options.firstId ?? 0;
    this.#mostPerStep = options.mostPerStep ?? Infinity;
    this.#random = random;
    this.#lengths = lengths;
    this.#blockSize = blockSize;
    this.#done = lengths.map(() => 0);
    const needed = lengths.map((length) => Math.ceil(length / blockSize));
    this.numBlocks = needed.reduce((sum, count) => sum + count, 3);
    const dealt = random.shuffle(Array.from({ length: this.numBlocks }, (_, block) => block));
    this.#tables = needed.map((count) => dealt.splice(0, count));
  }

  next(): ScheduledStep | undefined {
    const waiting = this.#lengths.flatMap((length, sequence) =>
      (this.#done[sequence] ?? 0) < length ? [sequence] : [],
    );
    if (waiting.length === 0) return undefined;
    const chosen = this.#random.shuffle(waiting).slice(0, this.#random.integer(1, waiting.length));
    const [tokenIds, positions, slots, contextLengths, blockTables]: number[][] = [[], [], [], [], []];
    const [queryStarts, blockTableStarts] = [[0], [0]];
    const rows: { sequence: number; position: number }[] = [];
    for (const sequence of chosen) {
      const from = this.#done[sequence] ?? 0;
      const left = Math.min((this.#lengths[sequence] ?? 0) - from, this.#mostPerStep);
      const count = this.#random.next() < 0.3 ? 1 : this.#random.integer(1, left);
      const table = this.#tables[sequence] ?? [];
      const firstId = this.#lengths.slice(0, sequence).reduce((sum, length) => sum + length, this.#firstId);
      for (let position = from; position < from + count; position++) {
        tokenIds?.push(firstId + position);
        positions?.push(position);
        slots?.push(
          (table[Math.floor(position / this.#blockSize)] ?? 0) * this.#blockSize +
            (position % this.#blockSize),
        );
        rows.push({ sequence, position });
      }
      this.#done[sequence] = from + count;
      queryStarts.push(rows.length);
      contextLengths?.push(from + count);
      blockTables?.push(...table);
      blockTableStarts.push(blockTables?.length ?? 0);
    }
    const plan: StepPlan = {
      numTokens: rows.length,
      numSequences: chosen.length,
      tokenIds: Int32Array.from(tokenIds ?? []),
      positions: Int32Array.from(positions ?? []),
      slots: Int32Array.from(slots ?? []),
      queryStarts: Int32Array.from(queryStarts),
      contextLengths: Int32Array.from(contextLengths ?? []),
      blockTables: Int32Array.from(blockTables ?? []),
      blockTableStarts: Int32Array.from(blockTableStarts),
      outputTokens: Int32Array.from(rows, (_, row) => row),
      outputs: rows.map(() => ({ kind: "hidden" })),
    };
    return { plan, rows };
  }
}
