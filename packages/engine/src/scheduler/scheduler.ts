import { OctavoError } from "@octavo/protocol/errors";
import type { BlockPool } from "../kv-cache/block-pool.js";
import { PrefixCache, type PrefixChain } from "../kv-cache/prefix-cache.js";
import { AdapterSlots } from "./adapter-slots.js";
import { adapterNames, countByTenant, type TenantCount } from "./census.js";
import { ComputedPrefix } from "./computed-prefix.js";
import { LongPrefills } from "./long-prefills.js";
import { createSchedulingPolicy } from "./policies/create-scheduling-policy.js";
import type {
  Admission,
  SchedulingPolicy,
  SchedulingPolicyName,
  StepPlanner,
  StepSize,
} from "./policies/scheduling-policy.js";
import { SequenceBlocks } from "./sequence-blocks.js";
import type { Sequence } from "./sequence.js";

export interface SchedulerOptions {
  readonly maxNumSeqs: number;
  /** Tokens a step may process. */
  readonly maxNumBatchedTokens: number;
  readonly enablePrefixCaching: boolean;
  readonly enableChunkedPrefill: boolean;
  /** Prompt tokens one sequence may take of a step while others want some too; 0 is no limit. */
  readonly longPrefillTokenThreshold: number;
  /** Prompts longer than that which are computed at a time while others want some of the budget too; default no bound. */
  readonly maxLongPartialPrefills?: number | undefined;
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

/**
 * Decides what each step computes, after vLLM V1: there are no phases, each sequence has computed k of its n tokens
 * and gets some of the step's token budget. Sequences that generate come first, since they need one token each and
 * someone is reading; the rest goes to prompts, by policy. Where blocks run out, the last by policy gives all of its own
 * back and waits, at the place it came from, to be recomputed.
 *
 * Progress: a sequence of the greatest length fits the pool (the engine refuses other sizes), the first by policy is
 * never another's victim, and admission keeps free what running prompts still need.
 */
export class Scheduler {
  readonly #pool: BlockPool;
  readonly #blocks: SequenceBlocks;
  readonly #options: SchedulerOptions;
  readonly #policy: SchedulingPolicy;
  readonly #prefixCache: PrefixCache | undefined;
  readonly #computedPrefix: ComputedPrefix;
  readonly #adapterSlots: AdapterSlots;
  readonly #longPrefills: LongPrefills;
  readonly #planner: StepPlanner;
  #running: Sequence[] = [];
  #budget = 0;
  /** Of it, what prompts may take. */
  #promptBudget = 0;
  /** What one prompt may take as long as others want some too. */
  #prefillCap = 0;
  #preempted: Sequence[] = [];
  /** Admitted for the first time, in the step being planned. */
  #admitted: Sequence[] = [];
  /** A running sequence found no blocks in the step being planned. */
  #isShortOfBlocks = false;

  constructor(pool: BlockPool, options: SchedulerOptions) {
    this.#pool = pool;
    this.#options = options;
    this.#policy = createSchedulingPolicy(options.policy, options.maxNumSeqs);
    this.#prefixCache = options.enablePrefixCaching ? new PrefixCache(pool) : undefined;
    this.#blocks = new SequenceBlocks(pool, this.#prefixCache);
    this.#computedPrefix = new ComputedPrefix(pool, this.#prefixCache);
    this.#adapterSlots = new AdapterSlots(options.maxLoras ?? Number.POSITIVE_INFINITY);
    this.#longPrefills = new LongPrefills(
      options.enableChunkedPrefill ? options.longPrefillTokenThreshold : 0,
      options.maxLongPartialPrefills,
    );
    this.#planner = this.#createPlanner();
  }

  get running(): readonly Sequence[] {
    return this.#running;
  }

  get waiting(): Iterable<Sequence> {
    return this.#policy.waiting;
  }

  get numWaiting(): number {
    return this.#policy.waiting.size;
  }

  /** Names of the adapters of sequences that run, and of sequences that wait. */
  get adapters(): { readonly running: readonly string[]; readonly waiting: readonly string[] } {
    return { running: adapterNames(this.#running), waiting: adapterNames(this.#policy.waiting) };
  }

  /** Sequences that run and that wait, by tenant. */
  get tenants(): ReadonlyMap<string, TenantCount> {
    return countByTenant(this.#running, this.#policy.waiting);
  }

  add(sequence: Sequence): void {
    this.#policy.enter(sequence);
    this.#policy.waiting.add(sequence);
  }

  /** Ends a sequence wherever it stands and gives its blocks back. Not while a step computes it. */
  remove(sequence: Sequence): void {
    if (sequence.status === "finished") return;
    if (sequence.status === "waiting") this.#policy.waiting.remove(sequence);
    else this.#running.splice(this.#running.indexOf(sequence), 1);
    if (this.#preempted.length > 0) this.#preempted = this.#preempted.filter((other) => other !== sequence);
    sequence.status = "finished";
    this.#blocks.release(sequence);
    this.#policy.leave(sequence);
  }

  /** Makes a running sequence give its blocks back and wait for recomputation. Not while a step computes it. */
  preempt(sequence: Sequence, by?: Sequence): void {
    this.#budget += sequence.numScheduled;
    if (!sequence.isDecoding) this.#promptBudget += sequence.numScheduled;
    sequence.numScheduled = 0;
    this.#running.splice(this.#running.indexOf(sequence), 1);
    const admission = this.#admitted.indexOf(sequence);
    if (admission === -1) {
      sequence.numLost = sequence.numComputed;
      sequence.numPreemptions += 1;
      sequence.preemptedBy = by?.group.order;
      this.#preempted.push(sequence);
    } else {
      // Admitted for the first time by this very step: it has not begun.
      this.#admitted.splice(admission, 1);
      sequence.cachedTokens = undefined;
    }
    this.#blocks.release(sequence);
    sequence.status = "waiting";
    this.#policy.waiting.add(sequence);
  }

  /**
   * With `maxPromptTokens` prompts get no more tokens than that of a step in which others generate. `plan` says who runs, if
   * not the policy.
   */
  schedule(
    maxPromptTokens = Number.POSITIVE_INFINITY,
    plan: Pick<SchedulingPolicy, "decodes" | "planPrompts"> = this.#policy,
  ): ScheduledStep {
    this.#budget = this.#options.maxNumBatchedTokens;
    this.#limitPrompts(Number.POSITIVE_INFINITY);
    this.#isShortOfBlocks = false;
    const generating = plan.decodes(this.#running, this.#budget, maxPromptTokens);
    for (const sequence of generating) this.#give(sequence, 1);
    // Without chunks a bound would keep out for ever what does not fit it.
    if (this.#options.enableChunkedPrefill && this.#budget < this.#options.maxNumBatchedTokens)
      this.#limitPrompts(maxPromptTokens);
    this.#longPrefills.begin();
    plan.planPrompts(this.#planner);
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

  /** Takes note of what a step cost: the time from its planning until its results were applied. */
  observe(step: StepSize, wallMs: number): void {
    this.#policy.observe(step, wallMs);
  }

  /** Takes note that a step computed what it was given of a sequence, and offers blocks it filled to the prefix cache. */
  commit(sequence: Sequence): void {
    sequence.numComputed += sequence.numScheduled;
    sequence.numScheduled = 0;
    this.#blocks.offer(sequence);
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
    if (granted > 0) this.#blocks.grow(sequence, end + granted);
    this.#budget -= granted;
    return granted;
  }

  /**
   * After `commit`, and after the tokens that the step gave were appended: what was computed for guesses is good as far as
   * the tokens are what was guessed. Blocks behind that go back. Returns how many guesses were right.
   */
  settleDraft(sequence: Sequence): number {
    const { draft, tokens, numComputed } = sequence;
    const most = Math.min(draft.length, tokens.length - numComputed);
    let numRight = 0;
    while (numRight < most && tokens.at(numComputed + numRight) === draft.at(numRight)) numRight += 1;
    draft.truncate(0);
    sequence.numComputed += numRight;
    this.#blocks.offer(sequence);
    this.#blocks.trim(sequence);
    return numRight;
  }

  /** Evicts what is cached of a prefix, or with none given all that nobody uses. */
  evict(prefix?: PrefixChain): void {
    if (prefix === undefined) this.#pool.evictCached();
    else this.#prefixCache?.evict(prefix, prefix.tokens.length);
  }

  /** Makes what a sequence computed unfindable: it is not to be trusted. */
  forget(sequence: Sequence): void {
    this.#blocks.forget(sequence);
  }

  /** Throws `internal_error` unless queues, block tables and pool agree. */
  checkIntegrity(): void {
    this.#policy.waiting.checkIntegrity();
    for (const sequence of this.#policy.waiting) {
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

  #createPlanner(): StepPlanner {
    const getters = {
      running: () => this.#running,
      promptRoom: () => this.#promptRoom,
      promptCap: () => this.#prefillCap,
      isShortOfBlocks: () => this.#isShortOfBlocks,
    };
    return {
      get running() {
        return getters.running();
      },
      maxNumSeqs: this.#options.maxNumSeqs,
      isChunked: this.#options.enableChunkedPrefill,
      get promptRoom() {
        return getters.promptRoom();
      },
      get promptCap() {
        return getters.promptCap();
      },
      get isShortOfBlocks() {
        return getters.isShortOfBlocks();
      },
      beginAdmission: () => {
        this.#computedPrefix.begin(this.#running);
        this.#adapterSlots.begin(this.#running);
      },
      admit: (sequence, cap) => this.#admit(sequence, cap),
      give: (sequence, cap) => this.#giveFirst(sequence, cap),
      extend: (sequence, cap) => this.#extend(sequence, cap),
      liftLongCap: () => this.#longPrefills.lift(),
      preempt: (sequence, by) => this.preempt(sequence, by),
      missingBlocks: (sequence) => this.#missingBlocks(sequence),
      blocksFreedBy: (sequence) => this.#blocks.freedBy(sequence),
    };
  }

  /** As `#give`, in the first pass over the budget, which only so many long prompts take part in. */
  #giveFirst(sequence: Sequence, cap: number): number {
    const numLeft = sequence.numTokens - sequence.numComputed;
    if (!sequence.isDecoding && this.#longPrefills.mustWait(numLeft)) return 0;
    const given = this.#give(sequence, cap);
    if (given > 0) this.#longPrefills.count(numLeft);
    return given;
  }

  /** Gives a running sequence that has nothing of the step yet up to `cap` tokens, and others' blocks if need be. */
  #give(sequence: Sequence, cap: number): number {
    if (sequence.status !== "running") return 0;
    const wanted = sequence.numTokens - sequence.numComputed;
    const isPrompt = !sequence.isDecoding;
    const numTokens = Math.min(wanted, cap, isPrompt ? this.#promptRoom : this.#budget);
    if (numTokens === 0 || (numTokens < wanted && !this.#options.enableChunkedPrefill)) return 0;
    while (!this.#blocks.grow(sequence, sequence.numComputed + numTokens)) {
      this.#isShortOfBlocks = true;
      const victim = this.#running.reduce((last, other) => (this.#policy.before(last, other) ? other : last));
      this.preempt(victim, sequence);
      if (victim === sequence) return 0;
    }
    this.#policy.given(sequence, numTokens);
    sequence.numScheduled = numTokens;
    this.#budget -= numTokens;
    if (isPrompt) this.#promptBudget -= numTokens;
    return numTokens;
  }

  /** Gives a running prompt up to `cap` more tokens, where blocks are at hand. */
  #extend(sequence: Sequence, cap: number): number {
    if (sequence.status !== "running") return 0;
    const { numTokens, numComputed, numScheduled } = sequence;
    const more = Math.min(cap, this.#promptRoom, numTokens - numComputed - numScheduled);
    if (more === 0 || !this.#blocks.grow(sequence, numComputed + numScheduled + more)) return 0;
    this.#policy.given(sequence, more);
    sequence.numScheduled += more;
    this.#budget -= more;
    this.#promptBudget -= more;
    return more;
  }

  #admit(sequence: Sequence, cap: number): Admission {
    const maxTokens = this.#computedPrefix.find(sequence);
    const stepTokens = this.#options.maxNumBatchedTokens - this.#budget;
    if (
      !this.#adapterSlots.hasPlaceFor(sequence) ||
      this.#computedPrefix.isWorthAwaiting(sequence, maxTokens, stepTokens)
    )
      return "later";
    const numLeft = sequence.numTokens - this.#computedPrefix.hits.length * this.#pool.blockSize;
    if (this.#longPrefills.mustWait(numLeft)) return "later";
    if (this.#running.length >= this.#options.maxNumSeqs || !this.#start(sequence, cap)) return "full";
    this.#longPrefills.count(numLeft);
    this.#computedPrefix.add(sequence);
    this.#adapterSlots.admitted(sequence);
    if (sequence.cachedTokens === undefined) {
      sequence.cachedTokens = sequence.numComputed;
      sequence.evictedPrefixTokens =
        this.#prefixCache?.countEvicted(sequence.prefix, sequence.numComputed, maxTokens) ?? 0;
      this.#admitted.push(sequence);
    }
    return "admitted";
  }

  /**
   * Starts the waiting sequence whose computed prefix was found last, if its whole input fits beside what running sequences
   * still need for theirs (vLLM's `scheduler_reserve_full_isl`).
   */
  #start(sequence: Sequence, cap: number): boolean {
    const { hits } = this.#computedPrefix;
    const numHitTokens = hits.length * this.#pool.blockSize;
    const wanted = sequence.numTokens - numHitTokens;
    const numTokens = Math.min(wanted, cap, this.#promptRoom);
    if (numTokens < wanted && !this.#options.enableChunkedPrefill) return false;
    if (this.#blocks.missingFor(sequence, hits, this.#running) > 0) return false;

    this.#blocks.share(sequence, hits);
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
    this.#budget -= numTokens;
    this.#promptBudget -= numTokens;
    return true;
  }

  /** Blocks that must fall free before a waiting sequence can start. */
  #missingBlocks(sequence: Sequence): number {
    this.#computedPrefix.find(sequence);
    return Math.max(0, this.#blocks.missingFor(sequence, this.#computedPrefix.hits, this.#running));
  }
}
