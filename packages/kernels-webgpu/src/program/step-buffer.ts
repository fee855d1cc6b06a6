import type { RopeSpec, StepPlan } from "@octavo/kernels";
import type { Adapter } from "@octavo/kernels";
import { segmentPositions } from "../wgsl/attention.js";
import { headerWords, mostRopes, type StepField, stepIndex } from "../wgsl/shader.js";
import type { StepCounts } from "./dispatch.js";
import { RopeTable } from "./rope-table.js";

type WrittenCounts = Omit<StepCounts, "candidates">;

/** Writes a step's plan as the words that kernels read. */
export class StepWriter {
  readonly #ropes: readonly RopeTable[];
  readonly #rowsPerTile: number;
  readonly #headRows: number;
  readonly #logitRows: number;
  #words = new Uint32Array(1 << 14);
  #end = 0;

  constructor(ropes: readonly RopeSpec[], rowsPerTile: number, logitRows: number, maxTokens: number) {
    this.#ropes = ropes.map((rope) => new RopeTable(rope));
    this.#rowsPerTile = rowsPerTile;
    this.#logitRows = logitRows;
    this.#headRows = Math.ceil(maxTokens / logitRows);
  }

  /** Where the rows of each part of the logits are counted. */
  get headRowsAt(): number {
    return headerWords + mostRopes;
  }

  /** The words stay good until the next call. */
  write(
    plan: StepPlan,
    rowAdapters: Int32Array | undefined,
  ): { readonly words: Uint32Array; readonly counts: WrittenCounts } {
    const { numTokens, numSequences, outputs } = plan;
    this.#end = headerWords + mostRopes + this.#headRows;
    this.#reserve(0);
    const tiles = this.#tiles(plan);
    let longest = 0;
    for (let s = 0; s < numSequences; s++) longest = Math.max(longest, plan.contextLengths[s] ?? 0);
    const counts: WrittenCounts = {
      tokens: numTokens,
      outputs: outputs.length,
      sequences: numSequences,
      tiles: tiles.length / 4,
      segments: Math.ceil(longest / segmentPositions),
    };
    this.#set("numTokens", numTokens);
    this.#set("numOutputs", outputs.length);
    this.#set("numSequences", numSequences);
    this.#set("numTiles", counts.tiles);
    this.#set("numSegments", counts.segments);
    this.#array("tokenIds", plan.tokenIds, numTokens);
    this.#array("positions", plan.positions, numTokens);
    this.#array("slots", plan.slots, numTokens);
    this.#array("outputTokens", plan.outputTokens, outputs.length);
    this.#array("tokenTypes", plan.tokenTypes ?? new Int32Array(numTokens), numTokens);
    const pools = outputs.map((output) => (output.kind === "hidden" ? output.pool : undefined));
    this.#array(
      "poolTokens",
      Int32Array.from(pools, (pool) => pool?.tokens ?? 1),
      outputs.length,
    );
    this.#array(
      "poolsMost",
      Int32Array.from(pools, (pool) => Number(pool?.kind === "max")),
      outputs.length,
    );
    this.#array("queryStarts", plan.queryStarts, numSequences + 1);
    this.#array("contextLengths", plan.contextLengths, numSequences);
    this.#array("blockTableStarts", plan.blockTableStarts, numSequences + 1);
    this.#array("blockTables", plan.blockTables, plan.blockTableStarts[numSequences] ?? 0);
    this.#array("tiles", tiles, tiles.length);
    if (rowAdapters !== undefined) this.#array("rowAdapters", rowAdapters, numTokens);
    const { states } = plan;
    if (states !== undefined) {
      const numSnapshots = states.snapshotStarts[numSequences] ?? 0;
      this.#array("stateSlots", states.slots, numSequences);
      this.#array("stateSources", states.sources, numSequences);
      this.#array("stateStarts", states.starts, numSequences);
      this.#array("stateEnds", states.ends, numSequences);
      this.#array("snapshotStarts", states.snapshotStarts, numSequences + 1);
      this.#array("snapshotPositions", states.snapshotPositions, numSnapshots);
      this.#array("snapshotSlots", states.snapshotSlots, numSnapshots);
    }
    for (const [index, rope] of this.#ropes.entries()) {
      const floats = 2 * rope.pairs * numTokens;
      this.#reserve(floats);
      this.#words[headerWords + index] = this.#end;
      rope.write(plan.positions, numTokens, new Float32Array(this.#words.buffer, this.#end * 4, floats));
      this.#end += floats;
    }
    for (let part = 0; part < this.#headRows; part++) {
      const left = outputs.length - part * this.#logitRows;
      this.#words[this.headRowsAt + part] = Math.max(0, Math.min(this.#logitRows, left));
    }
    return { words: this.#words.subarray(0, this.#end), counts };
  }

  /** Runs of rows of one sequence: first row, number of rows, sequence. */
  #tiles({ numSequences, queryStarts }: StepPlan): Int32Array {
    const tiles: number[] = [];
    for (let sequence = 0; sequence < numSequences; sequence++) {
      const end = queryStarts[sequence + 1] ?? 0;
      for (let row = queryStarts[sequence] ?? 0; row < end; row += this.#rowsPerTile)
        tiles.push(row, Math.min(this.#rowsPerTile, end - row), sequence, 0);
    }
    return Int32Array.from(tiles);
  }

  #set(field: StepField, value: number): void {
    this.#words[stepIndex(field)] = value;
  }

  #array(field: StepField, values: Int32Array, length: number): void {
    this.#reserve(length);
    this.#set(field, this.#end);
    this.#words.set(values.subarray(0, length), this.#end);
    this.#end += length;
  }

  #reserve(words: number): void {
    if (this.#end + words <= this.#words.length) return;
    const larger = new Uint32Array(2 ** Math.ceil(Math.log2(this.#end + words)));
    larger.set(this.#words);
    this.#words = larger;
  }
}

/** The number of each row's adapter among the step's, -1 for none. */
export function rowAdaptersOf(plan: StepPlan, indexOf: (adapter: Adapter) => number): Int32Array | undefined {
  const { adapters, numSequences, numTokens, queryStarts } = plan;
  if (adapters === undefined || !adapters.slice(0, numSequences).some((adapter) => adapter !== undefined))
    return undefined;
  const rows = new Int32Array(numTokens).fill(-1);
  for (let sequence = 0; sequence < numSequences; sequence++) {
    const adapter = adapters[sequence];
    if (adapter !== undefined) rows.fill(indexOf(adapter), queryStarts[sequence], queryStarts[sequence + 1]);
  }
  return rows;
}
