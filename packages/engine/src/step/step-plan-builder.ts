import type { Adapter, OutputRow, StepPlan, StepStates } from "@octavo/kernels";
import { OctavoError } from "@octavo/protocol/errors";
import type { IntList } from "../kv-cache/int-list.js";
import type { PromptImage } from "../scheduler/prompt-image.js";
import { imageAxesOf } from "./image-axes.js";
import { StepImages } from "./step-images.js";
import type { RowSink } from "../requests/active-request.js";

/** What a step computes of a sequence: its next `numScheduled` tokens and the draft behind them. */
export interface PlannedSequence {
  readonly tokens: { readonly values: Int32Array };
  readonly draft: IntList;
  readonly blocks: IntList;
  readonly numComputed: number;
  readonly numScheduled: number;
  readonly state?: PlannedState | undefined;
}

/** See `StepStates`; a source of undefined stands for nothing. */
export interface PlannedState {
  readonly slot: number;
  readonly source: number | undefined;
  readonly start: number;
  readonly snapshots: readonly { readonly position: number; readonly slot: number }[];
}

/** See `PromptImage`. */
type PlannedImage = Omit<PromptImage, "digest">;

/** The request of a planned sequence. */
export interface PlannedRequest<S> {
  readonly adapter?: { readonly handle: Adapter } | undefined;
  /** Where tokens of type 1 begin; undefined: all are of type 0. */
  readonly secondFrom?: number | undefined;
  /** What of its tokens stands for images. */
  readonly images?: readonly PlannedImage[] | undefined;
  addRows(sequence: S, rows: RowSink): void;
}

/** What every step is to tell beside its rows. */
type WantedOfSteps = Pick<StepPlan, "wantLogits" | "wantOpTimes">;

/** Builds the plan of each step in the same arrays, which only grow for longer block tables. */
export class StepPlanBuilder implements RowSink {
  readonly #blockSize: number;
  readonly #wants: WantedOfSteps;
  readonly #tokenIds: Int32Array;
  readonly #positions: Int32Array;
  readonly #tokenTypes: Int32Array;
  readonly #slots: Int32Array;
  readonly #given = new StepImages();
  readonly #queryStarts: Int32Array;
  readonly #contextLengths: Int32Array;
  readonly #blockTableStarts: Int32Array;
  readonly #outputTokens: Int32Array;
  readonly #outputs: OutputRow[] = [];
  readonly #adapters: (Adapter | undefined)[] = [];
  /** Index of each sequence's first output row, and the number of rows at the end. */
  readonly rowStarts: number[] = [];
  #blockTables: Int32Array;
  #tokenOfPosition = 0;

  constructor(maxNumSeqs: number, maxNumBatchedTokens: number, blockSize: number, wants: WantedOfSteps = {}) {
    this.#blockSize = blockSize;
    this.#wants = wants;
    this.#tokenIds = new Int32Array(maxNumBatchedTokens);
    this.#positions = new Int32Array(maxNumBatchedTokens);
    this.#tokenTypes = new Int32Array(maxNumBatchedTokens);
    this.#slots = new Int32Array(maxNumBatchedTokens);
    this.#outputTokens = new Int32Array(maxNumBatchedTokens);
    this.#queryStarts = new Int32Array(maxNumSeqs + 1);
    this.#contextLengths = new Int32Array(maxNumSeqs);
    this.#blockTableStarts = new Int32Array(maxNumSeqs + 1);
    this.#blockTables = new Int32Array(1024);
  }

  /** The plan is valid until the next call. */
  build<S extends PlannedSequence>(
    sequences: readonly S[],
    requestOf: (sequence: S) => PlannedRequest<S>,
  ): StepPlan {
    this.#outputs.length = 0;
    this.#adapters.length = 0;
    this.#given.clear();
    let isAdapted = false;
    let hasTypes = false;
    const hasAxes = sequences.some((sequence) =>
      requestOf(sequence).images?.some(({ grid }) => grid !== undefined),
    );
    const axes = hasAxes ? new Int32Array(3 * this.#positions.length) : undefined;
    this.rowStarts.length = 0;
    let numTokens = 0;
    let numBlocks = 0;
    for (let index = 0; index < sequences.length; index += 1) {
      const sequence = sequences[index]!;
      const { numComputed, numScheduled, draft } = sequence;
      const tokens = sequence.tokens.values;
      const blocks = sequence.blocks.values;
      const endOfTokens = numComputed + numScheduled;
      const end = endOfTokens + draft.length;
      const numSequenceBlocks = Math.ceil(end / this.#blockSize);
      this.#queryStarts[index] = numTokens;
      this.#contextLengths[index] = end;
      this.#blockTableStarts[index] = numBlocks;
      this.#reserveBlocks(numBlocks + numSequenceBlocks);
      for (let block = 0; block < numSequenceBlocks; block += 1) {
        this.#blockTables[numBlocks + block] = blocks[block] ?? 0;
      }
      numBlocks += numSequenceBlocks;

      this.#tokenOfPosition = numTokens - numComputed;
      this.rowStarts.push(this.#outputs.length);
      const request = requestOf(sequence);
      request.addRows(sequence, this);
      this.#adapters.push(request.adapter?.handle);
      isAdapted ||= request.adapter !== undefined;
      const { secondFrom = Number.POSITIVE_INFINITY } = request;
      hasTypes ||= request.secondFrom !== undefined;
      for (const image of request.images ?? []) this.#given.add(image, numTokens, numComputed, end);

      for (let position = numComputed; position < end; position += 1) {
        const block = blocks[Math.floor(position / this.#blockSize)] ?? 0;
        const token = position < endOfTokens ? tokens[position] : draft.values[position - endOfTokens];
        this.#tokenIds[numTokens] = token ?? 0;
        this.#positions[numTokens] = position;
        axes?.set(imageAxesOf(request.images ?? [], position), 3 * numTokens);
        this.#tokenTypes[numTokens] = position < secondFrom ? 0 : 1;
        this.#slots[numTokens] = block * this.#blockSize + (position % this.#blockSize);
        numTokens += 1;
      }
    }
    this.rowStarts.push(this.#outputs.length);
    this.#queryStarts[sequences.length] = numTokens;
    this.#blockTableStarts[sequences.length] = numBlocks;
    this.#given.putIds(this.#tokenIds);
    return {
      numTokens,
      numSequences: sequences.length,
      tokenIds: this.#tokenIds,
      positions: this.#positions,
      ...(hasTypes && { tokenTypes: this.#tokenTypes }),
      ...(axes !== undefined && { axes }),
      ...this.#given.parts(this.#positions, numTokens),
      slots: this.#slots,
      queryStarts: this.#queryStarts,
      contextLengths: this.#contextLengths,
      blockTables: this.#blockTables,
      blockTableStarts: this.#blockTableStarts,
      outputTokens: this.#outputTokens,
      outputs: this.#outputs,
      ...(sequences[0]?.state !== undefined && { states: planStates(sequences) }),
      ...(isAdapted && { adapters: this.#adapters }),
      ...this.#wants,
    };
  }

  addRow(position: number, row: OutputRow): void {
    this.#outputTokens[this.#outputs.length] = this.#tokenOfPosition + position;
    this.#outputs.push(row);
  }

  /** Position, in its sequence, of the token of an output row of the latest plan. */
  positionOfRow(row: number): number {
    return this.#positions[this.#outputTokens[row] ?? 0] ?? 0;
  }

  #reserveBlocks(numBlocks: number): void {
    if (numBlocks <= this.#blockTables.length) return;
    const grown = new Int32Array(Math.max(numBlocks, this.#blockTables.length * 2));
    grown.set(this.#blockTables);
    this.#blockTables = grown;
  }
}

function planStates(sequences: readonly PlannedSequence[]): StepStates {
  const states = sequences.map(({ state }) => state ?? missingState());
  const snapshots = states.flatMap((state) => state.snapshots);
  const snapshotStarts = new Int32Array(states.length + 1);
  for (const [index, state] of states.entries())
    snapshotStarts[index + 1] = snapshotStarts[index]! + state.snapshots.length;
  return {
    slots: Int32Array.from(states, ({ slot }) => slot),
    sources: Int32Array.from(states, ({ source }) => source ?? -1),
    starts: Int32Array.from(states, ({ start }) => start),
    ends: Int32Array.from(sequences, ({ numComputed, numScheduled }) => numComputed + numScheduled),
    snapshotStarts,
    snapshotPositions: Int32Array.from(snapshots, ({ position }) => position),
    snapshotSlots: Int32Array.from(snapshots, ({ slot }) => slot),
  };
}

function missingState(): never {
  throw new OctavoError("internal_error", "A sequence runs without a slot of state.");
}
