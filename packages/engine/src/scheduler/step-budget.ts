import { OctavoError } from "@octavo/protocol/errors";
import type { BlockPool } from "../kv-cache/block-pool.js";
import type { PrefixCache } from "../kv-cache/prefix-cache.js";
import { AdapterSlots } from "./adapter-slots.js";
import { ComputedPrefix } from "./computed-prefix.js";
import { LongPrefills } from "./long-prefills.js";
import type { Admission, SchedulingPolicy, StepPlanner } from "./policies/scheduling-policy.js";
import type { SchedulerOptions } from "./scheduler-options.js";
import type { SequenceBlocks } from "./sequence-blocks.js";
import type { SequenceStates } from "./sequence-states.js";
import { withoutCutImage } from "./prompt-image.js";
import type { Sequence } from "./sequence.js";

/** What the next step runs: `sequences[i]` computes its next `numScheduled` tokens. */
export interface PlannedStep {
  readonly sequences: readonly Sequence[];
  /** Those of `sequences` that were admitted for the first time. */
  readonly admitted: readonly Sequence[];
  readonly preempted: readonly Sequence[];
  readonly prefillTokens: number;
  readonly decodeTokens: number;
}

/**
 * The running sequences and the token budget of the step being planned: gives tokens and blocks to running sequences, admits
 * waiting ones, preempts the last by policy when blocks run out. One object serves all steps.
 */
export class StepBudget implements StepPlanner {
  readonly #pool: BlockPool;
  readonly #blocks: SequenceBlocks;
  readonly #options: SchedulerOptions;
  readonly #policy: SchedulingPolicy;
  readonly #states: SequenceStates | undefined;
  readonly #prefixCache: PrefixCache | undefined;
  readonly #computedPrefix: ComputedPrefix;
  readonly #adapterSlots: AdapterSlots;
  readonly #longPrefills: LongPrefills;
  readonly #running: Sequence[] = [];
  /** Tokens left in the step. */
  #tokens = 0;
  /** Prompt tokens that the step may still take, beside the bound of `#tokens`. */
  #promptTokens = 0;
  #promptCap = 0;
  #preempted: Sequence[] = [];
  #admitted: Sequence[] = [];
  #isShortOfBlocks = false;

  constructor(
    pool: BlockPool,
    blocks: SequenceBlocks,
    prefixCache: PrefixCache | undefined,
    policy: SchedulingPolicy,
    options: SchedulerOptions,
    states?: SequenceStates,
  ) {
    this.#pool = pool;
    this.#states = states;
    this.#blocks = blocks;
    this.#prefixCache = prefixCache;
    this.#policy = policy;
    this.#options = options;
    this.#computedPrefix = new ComputedPrefix(pool, prefixCache, states);
    this.#adapterSlots = new AdapterSlots(options.maxLoras ?? Number.POSITIVE_INFINITY);
    this.#longPrefills = new LongPrefills(
      options.enableChunkedPrefill ? options.longPrefillTokenThreshold : 0,
      options.maxLongPartialPrefills,
    );
  }

  get running(): readonly Sequence[] {
    return this.#running;
  }

  get maxNumSeqs(): number {
    return this.#options.maxNumSeqs;
  }

  get isChunked(): boolean {
    return this.#options.enableChunkedPrefill;
  }

  get promptRoom(): number {
    // An image may have taken more.
    return Math.max(0, Math.min(this.#tokens, this.#promptTokens));
  }

  get promptCap(): number {
    return this.#promptCap;
  }

  get isShortOfBlocks(): boolean {
    return this.#isShortOfBlocks;
  }

  begin(): void {
    this.#tokens = this.#options.maxNumBatchedTokens;
    this.#limitPrompts(Number.POSITIVE_INFINITY);
    this.#isShortOfBlocks = false;
  }

  /** Gives a generating sequence its one token. */
  decode(sequence: Sequence): void {
    this.#give(sequence, 1);
  }

  /** Goes on to prompts, which get at most `maxTokens` of the step if any sequence generates in it. */
  beginPrompts(maxTokens: number): void {
    // Without chunked prefill, a prompt longer than the limit could never run.
    if (this.isChunked && this.#tokens < this.#options.maxNumBatchedTokens) this.#limitPrompts(maxTokens);
    this.#longPrefills.begin();
  }

  end(): PlannedStep {
    const preempted = this.#preempted;
    const admitted = this.#admitted;
    this.#preempted = [];
    this.#admitted = [];
    const sequences = this.#running.filter((sequence) => sequence.numScheduled > 0);
    let prefillTokens = 0;
    let decodeTokens = 0;
    for (const sequence of sequences) {
      if (sequence.isDecoding) decodeTokens += 1;
      else prefillTokens += sequence.numScheduled;
    }
    return { sequences, admitted, preempted, prefillTokens, decodeTokens };
  }

  /** Takes a sequence that is over off the running list. */
  remove(sequence: Sequence): void {
    if (sequence.status === "running") this.#running.splice(this.#running.indexOf(sequence), 1);
    if (this.#preempted.length > 0) this.#preempted = this.#preempted.filter((other) => other !== sequence);
  }

  preempt(sequence: Sequence, by?: Sequence): void {
    this.#tokens += sequence.numScheduled;
    if (!sequence.isDecoding) this.#promptTokens += sequence.numScheduled;
    sequence.numScheduled = 0;
    this.#running.splice(this.#running.indexOf(sequence), 1);
    const admission = this.#admitted.indexOf(sequence);
    if (admission === -1) {
      sequence.numLost = sequence.numComputed;
      sequence.numPreemptions += 1;
      sequence.preemptedBy = by?.group.order;
      this.#preempted.push(sequence);
    } else {
      // Admitted for the first time by this very step: it has computed nothing yet.
      this.#admitted.splice(admission, 1);
      sequence.cachedTokens = undefined;
    }
    this.#blocks.release(sequence);
    sequence.status = "waiting";
    this.#policy.waiting.add(sequence);
  }

  /**
   * Reserves room for `count` draft tokens behind the last token of a sequence that the step computes to its end. Drafts only
   * take what is left of the budget and of the pool. Returns how many fit.
   */
  reserveDraft(sequence: Sequence, count: number): number {
    const { blockSize, numAvailable } = this.#pool;
    const end = sequence.numComputed + sequence.numScheduled;
    const room = (sequence.blocks.length + numAvailable) * blockSize - end;
    const granted = Math.max(0, Math.min(count, this.#tokens, room));
    if (granted > 0) this.#blocks.grow(sequence, end + granted);
    this.#tokens -= granted;
    return granted;
  }

  beginAdmission(): void {
    this.#computedPrefix.begin(this.#running);
    this.#adapterSlots.begin(this.#running);
  }

  admit(sequence: Sequence, cap: number): Admission {
    const maxTokens = this.#computedPrefix.find(sequence);
    const stepTokens = this.#options.maxNumBatchedTokens - this.#tokens;
    if (
      !this.#adapterSlots.hasSlotFor(sequence) ||
      this.#computedPrefix.isWorthAwaiting(sequence, maxTokens, stepTokens)
    )
      return "later";
    const numLeft = sequence.numTokens - this.#computedPrefix.hits.length * this.#pool.blockSize;
    if (this.#longPrefills.mustWait(numLeft)) return "later";
    if (this.#running.length >= this.maxNumSeqs || !this.#start(sequence, cap)) return "full";
    this.#longPrefills.count(numLeft);
    this.#computedPrefix.add(sequence);
    this.#adapterSlots.admitted(sequence);
    if (sequence.cachedTokens === undefined) {
      // output that came with the request may be cached too, and is no part of the prompt
      sequence.cachedTokens = Math.min(sequence.numComputed, sequence.numPromptTokens);
      sequence.evictedPrefixTokens =
        this.#prefixCache?.countEvicted(sequence.prefix, sequence.numComputed, maxTokens) ?? 0;
      const { adapter, account, cacheSalt, images } = sequence.group;
      // another replica knows adapters by other ids, and has no images
      if (adapter === undefined && images === undefined)
        this.#prefixCache?.noteFound(sequence.prefix, sequence.cachedTokens, {
          cacheScope: account?.cacheScope,
          cacheSalt,
        });
      this.#admitted.push(sequence);
    }
    return "admitted";
  }

  give(sequence: Sequence, cap: number): number {
    const numLeft = sequence.numTokens - sequence.numComputed;
    if (!sequence.isDecoding && this.#longPrefills.mustWait(numLeft)) return 0;
    const given = this.#give(sequence, cap);
    if (given > 0) this.#longPrefills.count(numLeft);
    return given;
  }

  extend(sequence: Sequence, cap: number): number {
    if (sequence.status !== "running") return 0;
    const { numTokens, numComputed, numScheduled } = sequence;
    const end = numComputed + numScheduled;
    const more = this.#withoutCutImage(sequence, end, Math.min(cap, this.promptRoom, numTokens - end));
    if (more === 0 || !this.#blocks.grow(sequence, end + more)) return 0;
    this.#policy.given(sequence, more);
    sequence.numScheduled += more;
    this.#tokens -= more;
    this.#promptTokens -= more;
    return more;
  }

  liftLongCap(): boolean {
    return this.#longPrefills.lift();
  }

  missingBlocks(sequence: Sequence): number {
    this.#computedPrefix.find(sequence);
    return Math.max(0, this.#blocks.missingFor(sequence, this.#computedPrefix.hits, this.#running));
  }

  blocksFreedBy(sequence: Sequence): number {
    return this.#blocks.freedBy(sequence);
  }

  /** An image may take more than prompts should, of what the step has left. */
  #withoutCutImage({ group }: Sequence, from: number, count: number): number {
    return withoutCutImage(group.images, from, count, this.#tokens);
  }

  /** Limits the step's prompt tokens, and those of a single prompt in proportion. */
  #limitPrompts(maxTokens: number): void {
    const { longPrefillTokenThreshold, maxNumBatchedTokens } = this.#options;
    this.#promptTokens = maxTokens;
    this.#promptCap =
      this.isChunked && longPrefillTokenThreshold > 0
        ? Math.ceil(longPrefillTokenThreshold * Math.min(1, maxTokens / maxNumBatchedTokens))
        : Number.POSITIVE_INFINITY;
  }

  #give(sequence: Sequence, cap: number): number {
    if (sequence.status !== "running") return 0;
    const wanted = sequence.numTokens - sequence.numComputed;
    const isPrompt = !sequence.isDecoding;
    const numTokens = this.#withoutCutImage(
      sequence,
      sequence.numComputed,
      Math.min(wanted, cap, isPrompt ? this.promptRoom : this.#tokens),
    );
    if (numTokens === 0 || (numTokens < wanted && !this.isChunked)) return 0;
    while (!this.#blocks.grow(sequence, sequence.numComputed + numTokens)) {
      this.#isShortOfBlocks = true;
      const victim = this.#running.reduce((last, other) => (this.#policy.before(last, other) ? other : last));
      this.preempt(victim, sequence);
      if (victim === sequence) return 0;
    }
    this.#policy.given(sequence, numTokens);
    sequence.numScheduled = numTokens;
    this.#tokens -= numTokens;
    if (isPrompt) this.#promptTokens -= numTokens;
    return numTokens;
  }

  /**
   * Starts the waiting sequence that `#computedPrefix` looked up last, if its whole input fits beside what running sequences
   * still need for theirs (vLLM's `scheduler_reserve_full_isl`).
   */
  #start(sequence: Sequence, cap: number): boolean {
    const { hits, cached } = this.#computedPrefix;
    if (this.#states?.hasSlotFor(cached) === false) return false;
    const numHitTokens = hits.length * this.#pool.blockSize;
    const wanted = sequence.numTokens - numHitTokens;
    const room = Math.min(wanted, cap, this.promptRoom);
    const numTokens = this.#withoutCutImage(sequence, numHitTokens, room);
    if ((numTokens < wanted && !this.isChunked) || (numTokens === 0 && room > 0)) return false;
    if (this.#blocks.missingFor(sequence, hits, this.#running) > 0) return false;

    this.#blocks.share(sequence, hits, cached);
    sequence.numRecomputed += Math.max(0, sequence.numLost - numHitTokens);
    sequence.numLost = 0;
    if (!this.#blocks.grow(sequence, numHitTokens + numTokens)) {
      throw new OctavoError("internal_error", "scheduler: an admitted sequence does not fit");
    }
    this.#policy.waiting.remove(sequence);
    sequence.status = "running";
    sequence.numCharged = Math.max(sequence.numCharged, numHitTokens);
    this.#policy.given(sequence, numTokens);
    sequence.numScheduled = numTokens;
    this.#running.push(sequence);
    this.#tokens -= numTokens;
    this.#promptTokens -= numTokens;
    return true;
  }
}
