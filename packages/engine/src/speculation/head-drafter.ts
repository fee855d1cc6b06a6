import type { Backend, KvCache, Program, StepPlan, StepResult } from "@octavo/kernels";
import { OctavoError } from "@octavo/protocol/errors";
import type { PlannedStep } from "../scheduler/step-budget.js";
import type { Sequence } from "../scheduler/sequence.js";
import { StepPlanBuilder } from "../step/step-plan-builder.js";
import type { Drafter, DraftRequest } from "./drafter.js";
import { ReadEntries } from "./read-entries.js";
import { ReadSequence } from "./read-sequence.js";

/** A drafting head, compiled. The caller owns it and the backend; both outlive the drafter. */
export interface LoadedHead {
  readonly backend: Backend;
  /** See `DraftHead`. */
  readonly reading: Program;
  readonly drafting: Program;
  /** Columns of each hidden state that the model sends. */
  readonly stateWidth: number;
  readonly targetIds: Int32Array | undefined;
  /** Token ids that the target model knows. */
  readonly targetVocabSize: number;
  readonly blockSize: number;
  readonly maxNumSeqs: number;
  readonly maxNumBatchedTokens: number;
}

/** Hidden states that wait for the next draft of their sequence; more of them are read at once. */
const maxPending = 16;

/** A sequence whose hidden states are read now, with the number of them. */
interface Reading {
  readonly read: ReadSequence;
  readonly request?: DraftRequest;
}

/**
 * Drafts with a head that reads the model's own hidden states: EAGLE-3 (arXiv 2503.01840) or multi-token prediction (arXiv 2412.19437). Its keys
 * and values are one more layer of the model's cache, in the same blocks, so that what holds of blocks holds of them: a cached prefix
 * brings them along, and a preempted sequence computes them again. The entry of a position depends on the token behind it too, which
 * may differ where a prefix ends; drafts are then a little worse and outputs the same.
 */
export class HeadDrafter implements Drafter {
  readonly isCostly = true;
  readonly #head: LoadedHead;
  readonly #cache: KvCache;
  readonly #plans: StepPlanBuilder;
  /** Programs that have run: a first time takes many times as long. */
  readonly #warm = new Set<Program>();
  readonly #read = new Map<Sequence, ReadSequence>();
  readonly #entries: ReadEntries;
  /** Sequences that ended since the last step, whose blocks nobody else has yet. */
  readonly #ended = new Map<Sequence, ReadSequence>();

  /** @param cache the target model's */
  constructor(head: LoadedHead, cache: KvCache) {
    this.#head = head;
    this.#cache = cache;
    this.#entries = new ReadEntries(head.blockSize);
    this.#plans = new StepPlanBuilder(head.maxNumSeqs, head.maxNumBatchedTokens, head.blockSize);
  }

  /** Sequences of which hidden states are kept. */
  get numSequences(): number {
    return this.#read.size;
  }

  async follow({ sequences }: PlannedStep, plan: StepPlan, { sent }: StepResult): Promise<void> {
    if (sent === undefined) throw new OctavoError("internal_error", "the model sent no hidden states");
    const readings: Reading[] = [];
    for (const [index, sequence] of sequences.entries()) {
      const read = this.#take(sequence, plan, index, sent);
      if (read === undefined) continue;
      const isOver = sequence.status !== "running";
      if (!isOver) this.#read.set(sequence, read);
      // The last one waits: the next draft samples from it.
      const kept = isOver ? 0 : 1;
      if (!isOver && read.numPending <= maxPending) continue;
      read.numScheduled = read.numPending - kept;
      readings.push({ read });
    }
    this.#ended.clear();
    await this.#catchUp(readings);
  }

  async draft(requests: readonly DraftRequest[]): Promise<number | undefined> {
    let drafting = requests.flatMap((request) => {
      const { sequence, sampling } = request;
      const read = this.#read.get(sequence);
      if (read?.isReadyFor(sequence) !== true) return [];
      read.follow(sequence);
      read.sample(sampling, sequence.numOutputTokens);
      return [{ read, request }];
    });
    const numPending = drafting.reduce((sum, { read }) => sum + read.numPending, 0);
    if (numPending > this.#head.maxNumBatchedTokens) {
      for (const { read } of drafting) read.numScheduled = read.numPending - 1;
      await this.#catchUp(drafting);
    }
    for (const { read } of drafting) read.numScheduled = read.numPending;
    const isReading = drafting.some(({ read, request }) => read.numScheduled > request.maxTokens + 1);
    const numWarm = this.#warm.size;
    const startMs = performance.now();
    while (drafting.length > 0) drafting = this.#append(drafting, await this.#run(drafting));
    return isReading || this.#warm.size > numWarm ? undefined : performance.now() - startMs;
  }

  release(sequence: Sequence): void {
    const read = this.#read.get(sequence);
    if (read === undefined) return;
    this.#ended.set(sequence, read);
    this.#read.delete(sequence);
  }

  forget(): void {
    this.#read.clear();
    this.#ended.clear();
    this.#entries.clear();
  }

  vacate(): void {
    this.forget();
  }

  [Symbol.dispose](): void {}

  /**
   * Adds the hidden states of what the step computed of a sequence, as far as the tokens behind are known. Behind text that was not read it
   * begins with the next block; undefined where the step does not get there.
   */
  #take(sequence: Sequence, plan: StepPlan, index: number, sent: Float32Array): ReadSequence | undefined {
    const width = sent.length / plan.numTokens;
    const first = plan.queryStarts[index] ?? 0;
    const position = plan.positions[first] ?? 0;
    const end = Math.min(sequence.numComputed, sequence.numTokens - 1);
    const blocks = plan.blockTables.slice(plan.blockTableStarts[index], plan.blockTableStarts[index + 1]);
    this.#entries.truncate(blocks, position);
    const known = this.#read.get(sequence) ?? this.#ended.get(sequence);
    const { blockSize } = this.#head;
    const isNext = known?.end === position;
    const isWhole = this.#entries.reach(blocks, position);
    const begin = isNext || isWhole ? position : Math.ceil(position / blockSize) * blockSize;
    const read =
      known !== undefined && (isNext || (isWhole && known.isWhole))
        ? known
        : new ReadSequence(width, blockSize, isWhole ? 0 : begin);
    if (!isNext && !isWhole && end <= begin) {
      this.#read.delete(sequence);
      return undefined;
    }
    read.follow(sequence, blocks);
    if (end > begin)
      read.add(begin, this.#rowsOf(sent, plan.numTokens, first + begin - position, end - begin));
    return read;
  }

  /** What was sent state by state, of some tokens, token by token. */
  #rowsOf(sent: Float32Array, numTokens: number, first: number, count: number): Float32Array {
    const { stateWidth: width } = this.#head;
    const numStates = sent.length / (numTokens * width);
    const rows = new Float32Array(count * numStates * width);
    for (let state = 0; state < numStates; state += 1)
      for (let row = 0; row < count; row += 1) {
        const from = (state * numTokens + first + row) * width;
        rows.set(sent.subarray(from, from + width), (row * numStates + state) * width);
      }
    return rows;
  }

  /** Reads what is scheduled, in as many steps as that takes. */
  async #catchUp(readings: readonly Reading[]): Promise<void> {
    let left = readings.filter(({ read }) => read.numScheduled > 0);
    while (left.length > 0) {
      let budget = this.#head.maxNumBatchedTokens;
      const wanted = left.map(({ read }) => read.numScheduled);
      const now = left.filter(({ read }) => {
        read.numScheduled = Math.min(read.numScheduled, budget);
        budget -= read.numScheduled;
        return read.numScheduled > 0;
      });
      const taken = left.map(({ read }) => read.numScheduled);
      await this.#run(now);
      left = left.filter(({ read }, index) => {
        read.numScheduled = (wanted[index] ?? 0) - (taken[index] ?? 0);
        return read.numScheduled > 0;
      });
    }
  }

  /** One step of the head, whose last hidden state of a sequence becomes what is pending where none is left. */
  async #run(readings: readonly Reading[]): Promise<StepResult> {
    const { backend, reading, drafting } = this.#head;
    const reads = readings.map(({ read }) => read);
    const plan = this.#plans.build(reads, (read) => read);
    const program = reads[0]?.isDrafting === true ? drafting : reading;
    const received = joined(reads.map((read) => read.scheduledStates));
    const result = await backend.execute(program, this.#cache, { ...plan, received });
    this.#warm.add(program);
    const { sent } = result;
    if (sent === undefined) throw new OctavoError("internal_error", "the head sent no hidden states");
    const width = sent.length / plan.numTokens;
    for (const [index, read] of reads.entries()) {
      if (!read.isDrafting && read.isWhole)
        this.#entries.extend(read.blocks, read.numComputed, read.numScheduled);
      const end = (plan.queryStarts[index + 1] ?? 0) * width;
      read.advance(sent.slice(end - width, end));
    }
    return result;
  }

  /** Appends the sampled tokens; returns the drafts that go on. Rows come in the order of `drafting`, one each. */
  #append(drafting: readonly Required<Reading>[], { rows }: StepResult): Required<Reading>[] {
    const { targetIds, targetVocabSize } = this.#head;
    return drafting.filter(({ request, read }, index) => {
      const sampled = rows[index]?.token ?? -1;
      const token = targetIds === undefined ? sampled : (targetIds[sampled] ?? -1);
      const { draft, numOutputTokens } = request.sequence;
      // A failed row, or padding of the vocabulary.
      const isKnown = token >= 0 && token < targetVocabSize;
      if (isKnown) draft.push(token);
      if (!isKnown || draft.length >= request.maxTokens) {
        read.endDraft();
        return false;
      }
      read.goOn(token, numOutputTokens + draft.length);
      return true;
    });
  }
}

function joined(parts: readonly Float32Array[]): Float32Array {
  const [first] = parts;
  if (first !== undefined && parts.length === 1) return first;
  const all = new Float32Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}
