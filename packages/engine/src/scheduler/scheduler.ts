import { OctavoError } from "@octavo/protocol";
import type { BlockId, BlockPool } from "../kv-cache/block-pool.js";
import { IntList } from "../kv-cache/int-list.js";
import { PrefixCache } from "../kv-cache/prefix-cache.js";
import { PrefixesInFlight } from "./prefixes-in-flight.js";
import { AdapterSlots } from "./adapter-slots.js";
import { type SchedulingPolicyName, type SchedulingPolicy, schedulingPolicies } from "./scheduling-policy.js";
import type { Sequence } from "./sequence.js";
import { WaitingQueue } from "./waiting-queue.js";

export interface SchedulerOptions {
  readonly maxNumSeqs: number;
  /** Tokens a step may process. */
  readonly maxNumBatchedTokens: number;
  readonly enablePrefixCaching: boolean;
  readonly enableChunkedPrefill: boolean;
  /** Prompt tokens one sequence may take of a step while others want some too; 0 is no limit. */
  readonly longPrefillTokenThreshold: number;
  readonly policy: SchedulingPolicyName;
  /** Adapters that may run at a time; default no bound. */
  readonly maxLoras?: number | undefined;
}

/** What the next step runs: `sequences[i]` computes its next `numScheduled` tokens. */
export interface ScheduledStep {
  readonly sequences: readonly Sequence[];
  /** Those of `sequences` that were admitted for the first time. */
  readonly admitted: readonly Sequence[];
  readonly preempted: readonly Sequence[];
  readonly prefillTokens: number;
  readonly decodeTokens: number;
}

/** Waiting sequences that a step passes over at most, so that its cost does not grow with the queue. */
const mostPassedOver = 64;

/**
 * Decides what each step computes, after vLLM V1: there are no phases, each sequence has computed k of its n tokens
 * and gets some of the step's token budget. Sequences that generate come first, since they need one token each and
 * someone is reading; then running prompts, then waiting ones, then what is left of the budget to prompts that were
 * capped. Where blocks run out, the last by policy gives all of its own back and waits, at the place it came from, to
 * be recomputed.
 *
 * Progress: a sequence of the greatest length fits the pool (the engine refuses other sizes), the first by policy is
 * never another's victim, and admission keeps free what running prompts still need.
 */
export class Scheduler {
  readonly #pool: BlockPool;
  readonly #options: SchedulerOptions;
  readonly #policy: SchedulingPolicy;
  readonly #prefixCache: PrefixCache | undefined;
  readonly #inFlight: PrefixesInFlight | undefined;
  readonly #adapterSlots: AdapterSlots;
  readonly #waiting: WaitingQueue;
  #running: Sequence[] = [];
  readonly #hits = new IntList();
  #budget = 0;
  /** Of it, what prompts may take. */
  #promptBudget = 0;
  /** What one prompt may take as long as others want some too. */
  #prefillCap = 0;
  #preempted: Sequence[] = [];

  constructor(pool: BlockPool, options: SchedulerOptions) {
    this.#pool = pool;
    this.#options = options;
    this.#policy = schedulingPolicies[options.policy];
    this.#prefixCache = options.enablePrefixCaching ? new PrefixCache(pool) : undefined;
    this.#inFlight = this.#prefixCache && new PrefixesInFlight(this.#prefixCache, pool.blockSize);
    this.#adapterSlots = new AdapterSlots(options.maxLoras ?? Number.POSITIVE_INFINITY);
    this.#waiting = new WaitingQueue(this.#policy);
  }

  get running(): readonly Sequence[] {
    return this.#running;
  }

  get numWaiting(): number {
    return this.#waiting.size;
  }

  /** Names of the adapters of sequences that run, and of sequences that wait. */
  get adapters(): { readonly running: readonly string[]; readonly waiting: readonly string[] } {
    return { running: adapterNames(this.#running), waiting: adapterNames(this.#waiting) };
  }

  add(sequence: Sequence): void {
    this.#waiting.add(sequence);
  }

  /** Ends a sequence wherever it stands and gives its blocks back. Not while a step computes it. */
  remove(sequence: Sequence): void {
    if (sequence.status === "finished") return;
    if (sequence.status === "waiting") this.#waiting.remove(sequence);
    else this.#running.splice(this.#running.indexOf(sequence), 1);
    sequence.status = "finished";
    this.#releaseBlocks(sequence);
  }

  /** Makes a running sequence give its blocks back and wait for recomputation. Not while a step computes it. */
  preempt(sequence: Sequence, by?: Sequence): void {
    this.#budget += sequence.numScheduled;
    if (!sequence.isDecoding) this.#promptBudget += sequence.numScheduled;
    sequence.numScheduled = 0;
    this.#running.splice(this.#running.indexOf(sequence), 1);
    sequence.numLost = sequence.numComputed;
    this.#releaseBlocks(sequence);
    sequence.numPreemptions += 1;
    sequence.preemptedBy = by?.group.order;
    sequence.status = "waiting";
    this.#waiting.add(sequence);
    this.#preempted.push(sequence);
  }

  /** With `maxPromptTokens` prompts get no more tokens than that of a step in which others generate. */
  schedule(maxPromptTokens = Number.POSITIVE_INFINITY): ScheduledStep {
    this.#budget = this.#options.maxNumBatchedTokens;
    this.#limitPrompts(Number.POSITIVE_INFINITY);
    const preempted = this.#preempted;
    const numForced = preempted.length;
    for (const sequence of this.#running.slice()) if (sequence.isDecoding) this.#scheduleRunning(sequence, 1);
    // Without chunks a bound would keep out for ever what does not fit it.
    if (this.#options.enableChunkedPrefill && this.#budget < this.#options.maxNumBatchedTokens)
      this.#limitPrompts(maxPromptTokens);
    for (const sequence of this.#running.slice()) {
      if (sequence.numScheduled === 0) this.#scheduleRunning(sequence, this.#prefillCap);
    }
    const admitted = preempted.length === numForced ? this.#admitWaiting() : [];
    this.#spendRest();
    this.#preempted = [];

    const sequences = this.#running.filter((sequence) => sequence.numScheduled > 0);
    let prefillTokens = 0;
    let decodeTokens = 0;
    for (const sequence of sequences) {
      if (sequence.isDecoding) decodeTokens += 1;
      else prefillTokens += sequence.numScheduled;
    }
    return { sequences, admitted, preempted, prefillTokens, decodeTokens };
  }

  /** Takes note that a step computed what it was given of a sequence, and offers blocks it filled to the prefix cache. */
  commit(sequence: Sequence): void {
    sequence.numComputed += sequence.numScheduled;
    sequence.numScheduled = 0;
    this.#offerBlocks(sequence);
  }

  /**
   * Gives a sequence that the step computes to its last token room for `count` guesses behind it, out of what is left of
   * the step's budget and of the pool: nobody gives anything up for a guess. Returns for how many there is room.
   */
  reserveDraft(sequence: Sequence, count: number): number {
    const { blockSize, numAvailable } = this.#pool;
    const end = sequence.numComputed + sequence.numScheduled;
    const room = (sequence.blocks.length + numAvailable) * blockSize - end;
    const granted = Math.max(0, Math.min(count, this.#budget, room));
    if (granted > 0) this.#grow(sequence, end + granted);
    this.#budget -= granted;
    return granted;
  }

  /**
   * After `commit`, and after the tokens that the step gave were appended: what was computed for guesses is good as far as
   * the tokens are what was guessed. Blocks behind that go back. Returns how many guesses were right.
   */
  settleDraft(sequence: Sequence): number {
    const { draft, tokens, blocks, numComputed } = sequence;
    const most = Math.min(draft.length, tokens.length - numComputed);
    let numRight = 0;
    while (numRight < most && tokens.at(numComputed + numRight) === draft.at(numRight)) numRight += 1;
    draft.truncate(0);
    sequence.numComputed += numRight;
    this.#offerBlocks(sequence);
    const needed = this.#pool.blocksFor(sequence.numComputed);
    for (let index = blocks.length - 1; index >= needed; index -= 1)
      this.#pool.release(blocks.at(index) as BlockId);
    sequence.numBlocksAllocated -= blocks.length - needed;
    blocks.truncate(needed);
    return numRight;
  }

  #offerBlocks(sequence: Sequence): void {
    if (this.#prefixCache === undefined) return;
    while ((sequence.numRegistered + 1) * this.#pool.blockSize <= sequence.numComputed) {
      this.#prefixCache.register(sequence.prefix, sequence.blocks, sequence.numRegistered);
      sequence.numRegistered += 1;
    }
  }

  /** Makes what a sequence computed unfindable: it is not to be trusted. */
  forget(sequence: Sequence): void {
    for (let index = 0; index < sequence.blocks.length; index += 1) {
      this.#pool.forget(sequence.blocks.at(index) as BlockId);
    }
  }

  /** Throws `internal_error` unless queues, block tables and pool agree. */
  checkIntegrity(): void {
    this.#waiting.checkIntegrity();
    for (const sequence of this.#waiting) {
      if (sequence.blocks.length > 0)
        throw new OctavoError("internal_error", "scheduler: a waiting sequence holds blocks");
    }
    if (
      new Set(this.#running).size !== this.#running.length ||
      this.#running.length > this.#options.maxNumSeqs
    ) {
      throw new OctavoError("internal_error", "scheduler: the running list is wrong");
    }
    for (const sequence of this.#running) {
      const held = sequence.blocks.length * this.#pool.blockSize;
      if (
        sequence.status !== "running" ||
        sequence.numComputed >= sequence.numTokens ||
        held < sequence.numComputed
      ) {
        throw new OctavoError(
          "internal_error",
          `scheduler: a sequence of ${sequence.group.requestId} is in a wrong state`,
        );
      }
    }
    this.#pool.checkIntegrity(this.#running.map((sequence) => sequence.blocks.slice()));
  }

  /** Sets what prompts may take of the step, and a single one of them: the same share of less. */
  #limitPrompts(maxPromptTokens: number): void {
    const { enableChunkedPrefill, longPrefillTokenThreshold, maxNumBatchedTokens } = this.#options;
    this.#promptBudget = maxPromptTokens;
    this.#prefillCap =
      enableChunkedPrefill && longPrefillTokenThreshold > 0
        ? Math.ceil(longPrefillTokenThreshold * Math.min(1, maxPromptTokens / maxNumBatchedTokens))
        : Number.POSITIVE_INFINITY;
  }

  /** Tokens that a prompt may still have of this step. */
  get #promptRoom(): number {
    return Math.min(this.#budget, this.#promptBudget);
  }

  #scheduleRunning(sequence: Sequence, cap: number): void {
    if (sequence.status !== "running") return;
    const wanted = sequence.numTokens - sequence.numComputed;
    const isPrompt = !sequence.isDecoding;
    const numTokens = Math.min(wanted, cap, isPrompt ? this.#promptRoom : this.#budget);
    if (numTokens === 0 || (numTokens < wanted && !this.#options.enableChunkedPrefill)) return;
    while (!this.#grow(sequence, sequence.numComputed + numTokens)) {
      const victim = this.#running.reduce((last, other) => (this.#policy.before(last, other) ? other : last));
      this.preempt(victim, sequence);
      if (victim === sequence) return;
    }
    sequence.numScheduled = numTokens;
    this.#budget -= numTokens;
    if (isPrompt) this.#promptBudget -= numTokens;
  }

  #admitWaiting(): Sequence[] {
    const admitted: Sequence[] = [];
    const skipped: Sequence[] = [];
    this.#inFlight?.begin(this.#running);
    this.#adapterSlots.begin(this.#running);
    while (this.#promptRoom > 0 && this.#running.length < this.#options.maxNumSeqs) {
      const sequence = this.#waiting.peek();
      if (sequence === undefined) break;
      const maxTokens = this.#findComputed(sequence);
      if (
        !this.#adapterSlots.hasPlaceFor(sequence) ||
        this.#awaitsSharedPrompt(sequence) ||
        this.#awaitsPrefix(sequence, maxTokens)
      ) {
        if (skipped.length === mostPassedOver) break;
        this.#waiting.remove(sequence);
        skipped.push(sequence);
        continue;
      }
      if (!this.#admit(sequence)) break;
      this.#inFlight?.add(sequence);
      this.#adapterSlots.admitted(sequence);
      if (sequence.cachedTokens === undefined) {
        sequence.cachedTokens = sequence.numComputed;
        sequence.evictedPrefixTokens =
          this.#prefixCache?.countEvicted(sequence.prefix, sequence.numComputed, maxTokens) ?? 0;
        admitted.push(sequence);
      }
    }
    for (const sequence of skipped) this.#waiting.add(sequence);
    return admitted;
  }

  /** While another sequence computes the prefix that this one would compute too, it waits to find it in the cache. */
  #awaitsPrefix(sequence: Sequence, maxTokens: number): boolean {
    const stepTokens = this.#options.maxNumBatchedTokens - this.#budget;
    return this.#inFlight?.isWorthAwaiting(sequence, this.#hits.length, maxTokens, stepTokens) ?? false;
  }

  /**
   * Admits a sequence, whose computed blocks are in `#hits`, if its whole input fits beside what running sequences still
   * need for theirs (vLLM's `scheduler_reserve_full_isl`). While others run, a hundredth of the pool stays free for them to
   * grow into, since a sequence admitted into the last block would be preempted with its prompt just computed.
   */
  #admit(sequence: Sequence): boolean {
    const { blockSize, numBlocks } = this.#pool;
    const hits = this.#hits;
    const numHitTokens = hits.length * blockSize;
    const wanted = sequence.numTokens - numHitTokens;
    const numTokens = Math.min(wanted, this.#prefillCap, this.#promptRoom);
    if (numTokens < wanted && !this.#options.enableChunkedPrefill) return false;
    let available = this.#pool.numAvailable;
    for (let index = 0; index < hits.length; index += 1) {
      if (this.#pool.referenceCount(hits.at(index) as BlockId) === 0) available -= 1;
    }
    for (const running of this.#running) {
      available -= this.#pool.blocksFor(running.numTokens) - running.blocks.length;
    }
    if (this.#running.length > 0) available -= Math.ceil(numBlocks / 100);
    if (this.#pool.blocksFor(sequence.numTokens) - hits.length > available) return false;

    for (let index = 0; index < hits.length; index += 1) {
      const block = hits.at(index) as BlockId;
      this.#pool.retain(block);
      sequence.blocks.push(block);
    }
    sequence.numComputed = numHitTokens;
    sequence.numRecomputed += Math.max(0, sequence.numLost - numHitTokens);
    sequence.numLost = 0;
    sequence.numRegistered = hits.length;
    if (!this.#grow(sequence, numHitTokens + numTokens)) {
      throw new OctavoError("internal_error", "scheduler: an admitted sequence does not fit");
    }
    this.#waiting.remove(sequence);
    sequence.status = "running";
    sequence.numScheduled = numTokens;
    this.#running.push(sequence);
    this.#budget -= numTokens;
    this.#promptBudget -= numTokens;
    return true;
  }

  /** Gives the budget that nobody else wanted to prompts that were capped, where blocks are at hand. */
  #spendRest(): void {
    if (!this.#options.enableChunkedPrefill) return;
    for (const sequence of this.#running) {
      if (this.#promptRoom === 0) return;
      const more = Math.min(
        this.#promptRoom,
        sequence.numTokens - sequence.numComputed - sequence.numScheduled,
      );
      if (more === 0 || !this.#grow(sequence, sequence.numComputed + sequence.numScheduled + more)) continue;
      sequence.numScheduled += more;
      this.#budget -= more;
      this.#promptBudget -= more;
    }
  }

  /**
   * Fills `#hits` with blocks that already hold the start of a sequence, all but at least one token of it. Returns how many
   * tokens may be taken from blocks.
   */
  #findComputed(sequence: Sequence): number {
    this.#hits.truncate(0);
    const maxTokens = Math.min(sequence.numTokens - 1, sequence.firstWantedRow);
    this.#prefixCache?.find(sequence.prefix, maxTokens, this.#hits);
    const sibling = this.#siblingWithPrompt(sequence);
    if (sibling === undefined) return maxTokens;
    const shared = Math.floor(Math.min(maxTokens, sequence.numPromptTokens - 1) / this.#pool.blockSize);
    if (shared <= this.#hits.length) return maxTokens;
    this.#hits.truncate(0);
    for (let index = 0; index < shared; index += 1) this.#hits.push(sibling.blocks.at(index));
    return maxTokens;
  }

  /** A running sequence of the same request whose blocks hold the full blocks of the prompt. */
  #siblingWithPrompt(sequence: Sequence): Sequence | undefined {
    const shareable = this.#shareableTokens(sequence);
    return sequence.group.sequences.find(
      (other) => other !== sequence && other.status === "running" && other.numComputed >= shareable,
    );
  }

  /** While one sequence of a request computes the prompt, the others wait to share its blocks. */
  #awaitsSharedPrompt(sequence: Sequence): boolean {
    const { sequences } = sequence.group;
    if (sequences.length === 1 || this.#shareableTokens(sequence) === 0) return false;
    return (
      sequences.some((other) => other.status === "running") && this.#siblingWithPrompt(sequence) === undefined
    );
  }

  #shareableTokens(sequence: Sequence): number {
    const { blockSize } = this.#pool;
    return Math.floor((sequence.numPromptTokens - 1) / blockSize) * blockSize;
  }

  /** Gives a sequence the blocks for `numTokens` positions, all or none. */
  #grow(sequence: Sequence, numTokens: number): boolean {
    const missing = this.#pool.blocksFor(numTokens) - sequence.blocks.length;
    if (missing > this.#pool.numAvailable) return false;
    const evictionsBefore = this.#pool.numEvictions;
    for (let count = 0; count < missing; count += 1) {
      const block = this.#pool.allocate();
      if (block === undefined)
        throw new OctavoError("internal_error", "block pool: fewer blocks than counted");
      sequence.blocks.push(block);
    }
    if (missing > 0) {
      sequence.numBlocksAllocated += missing;
      sequence.numBlocksEvicted += this.#pool.numEvictions - evictionsBefore;
    }
    return true;
  }

  /** Last block first, so that a cached prefix outlives what follows it. */
  #releaseBlocks(sequence: Sequence): void {
    for (let index = sequence.blocks.length - 1; index >= 0; index -= 1) {
      this.#pool.release(sequence.blocks.at(index) as BlockId);
    }
    sequence.blocks.truncate(0);
    sequence.draft.truncate(0);
    sequence.numComputed = 0;
    sequence.numRegistered = 0;
  }
}

function adapterNames(sequences: Iterable<Sequence>): readonly string[] {
  const names = new Set<string>();
  for (const { group } of sequences) if (group.adapter !== undefined) names.add(group.adapter.name);
  return [...names];
}
