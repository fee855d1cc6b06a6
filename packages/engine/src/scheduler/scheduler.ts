import { OctavoError } from "@octavo/protocol/errors";
import type { BlockPool } from "../kv-cache/block-pool.js";
import type { HotPrefix } from "../kv-cache/prefix-heat.js";
import { PrefixCache, type PrefixChain } from "../kv-cache/prefix-cache.js";
import { adapterNames, countByTenant, type TenantCount } from "./census.js";
import { createSchedulingPolicy } from "./policies/create-scheduling-policy.js";
import type { SchedulingPolicy, StepSize } from "./policies/scheduling-policy.js";
import type { SchedulerOptions } from "./scheduler-options.js";
import { SequenceBlocks } from "./sequence-blocks.js";
import type { SequenceStates } from "./sequence-states.js";
import type { Sequence } from "./sequence.js";
import { type PlannedStep, StepBudget } from "./step-budget.js";

/**
 * Decides what each step computes, after vLLM V1: there are no phases, each sequence has computed k of its n tokens
 * and gets some of the step's token budget. Generating sequences come first, since they need one token each and a client
 * is reading them; the rest goes to prompts, by policy. Where blocks run out, the last sequence by policy gives all of its
 * blocks back and returns to its position in the queue, to be recomputed.
 *
 * Progress: a sequence of the greatest length fits the pool (the engine refuses other sizes), the first by policy is
 * never preempted for another, and admission keeps free what running prompts still need.
 */
export class Scheduler {
  readonly #pool: BlockPool;
  readonly #blocks: SequenceBlocks;
  readonly #options: SchedulerOptions;
  readonly #policy: SchedulingPolicy;
  readonly #prefixCache: PrefixCache | undefined;
  readonly #step: StepBudget;
  readonly #states: SequenceStates | undefined;

  /** `states` where the model keeps recurrent state. */
  constructor(pool: BlockPool, options: SchedulerOptions, states?: SequenceStates) {
    this.#pool = pool;
    this.#options = options;
    this.#policy = createSchedulingPolicy(options.policy, options.maxNumSeqs);
    this.#prefixCache = options.enablePrefixCaching ? new PrefixCache(pool, states?.pool) : undefined;
    this.#blocks = new SequenceBlocks(pool, this.#prefixCache, states);
    this.#step = new StepBudget(pool, this.#blocks, this.#prefixCache, this.#policy, options, states);
    this.#states = states;
  }

  get running(): readonly Sequence[] {
    return this.#step.running;
  }

  /** Running sequences that want a token in the next step. */
  get numGenerating(): number {
    return this.running.reduce((count, { isDecoding }) => count + (isDecoding ? 1 : 0), 0);
  }

  get waiting(): Iterable<Sequence> {
    return this.#policy.waiting;
  }

  get numWaiting(): number {
    return this.#policy.waiting.size;
  }

  /** Names of the adapters of running and of waiting sequences. */
  get adapters(): { readonly running: readonly string[]; readonly waiting: readonly string[] } {
    return { running: adapterNames(this.running), waiting: adapterNames(this.waiting) };
  }

  /** Running and waiting sequences by tenant. */
  get tenants(): ReadonlyMap<string, TenantCount> {
    return countByTenant(this.running, this.waiting);
  }

  add(sequence: Sequence): void {
    this.#policy.enter(sequence);
    this.#policy.waiting.add(sequence);
  }

  /** Ends a sequence, running or waiting, and gives its blocks back. Not while a step computes it. */
  remove(sequence: Sequence): void {
    if (sequence.status === "finished") return;
    if (sequence.status === "waiting") this.#policy.waiting.remove(sequence);
    this.#step.remove(sequence);
    sequence.status = "finished";
    this.#blocks.release(sequence);
    this.#policy.leave(sequence);
  }

  /** Makes a running sequence give its blocks back and wait for recomputation. Not while a step computes it. */
  preempt(sequence: Sequence): void {
    this.#step.preempt(sequence);
  }

  /**
   * Plans the next step. `maxPromptTokens` limits its prompt tokens if other sequences generate in it; `plan` replaces the policy
   * for this step.
   */
  schedule(
    maxPromptTokens = Number.POSITIVE_INFINITY,
    plan: Pick<SchedulingPolicy, "decodes" | "planPrompts"> = this.#policy,
  ): PlannedStep {
    const step = this.#step;
    step.begin();
    const generating = plan.decodes(step.running, this.#options.maxNumBatchedTokens, maxPromptTokens);
    for (const sequence of generating) step.decode(sequence);
    step.beginPrompts(maxPromptTokens);
    plan.planPrompts(step);
    return step.end();
  }

  /** Records what a step cost: the time from its planning until its results were applied. */
  observe(step: StepSize, wallMs: number): void {
    this.#policy.observe(step, wallMs);
  }

  /** Records that a sequence's scheduled tokens were computed, and offers the blocks it filled to the prefix cache. */
  commit(sequence: Sequence): void {
    this.#blocks.commit(sequence);
  }

  /** Reserves slots for the states that a planned step should keep; after its drafts, before it runs. */
  reserveSnapshots(sequences: readonly Sequence[]): void {
    if (this.#prefixCache === undefined) return;
    for (const sequence of sequences) this.#states?.reserveSnapshots(sequence);
  }

  /** See `StepBudget.reserveDraft`. */
  reserveDraft(sequence: Sequence, count: number): number {
    return this.#step.reserveDraft(sequence, count);
  }

  /**
   * After `commit` and after the step's tokens were appended: keeps what was computed for draft tokens up to the first mismatch
   * and gives back the blocks behind it. Returns the number of accepted draft tokens.
   */
  settleDraft(sequence: Sequence): number {
    const { draft, tokens, numComputed } = sequence;
    const limit = Math.min(draft.length, tokens.length - numComputed);
    let numAccepted = 0;
    while (numAccepted < limit && tokens.at(numComputed + numAccepted) === draft.at(numAccepted))
      numAccepted += 1;
    draft.truncate(0);
    sequence.numComputed += numAccepted;
    this.#blocks.offer(sequence);
    this.#blocks.trim(sequence);
    return numAccepted;
  }

  /** Evicts the cached blocks of a prefix or, without one, all cached blocks that are not in use. */
  evict(prefix?: PrefixChain): void {
    if (prefix === undefined) {
      this.#pool.evictCached();
      this.#states?.pool.evictCached();
    } else this.#prefixCache?.evict(prefix, prefix.tokens.length);
  }

  /** Prefixes that requests found in the cache, the hottest first, as many as `maxTokens` hold. */
  hotPrefixes(maxTokens: number): readonly HotPrefix[] {
    return this.#prefixCache?.heat.hottest(maxTokens) ?? [];
  }

  forgetHotPrefixes(): void {
    this.#prefixCache?.heat.clear();
  }

  /** Takes what a sequence computed out of the prefix cache, because it may be wrong. */
  forget(sequence: Sequence): void {
    this.#blocks.forget(sequence);
  }

  /** Throws `internal_error` unless queues, block tables and pool agree. */
  checkIntegrity(): void {
    const fail = (problem: string): never => {
      throw new OctavoError("internal_error", `scheduler: ${problem}`);
    };
    this.#policy.waiting.checkIntegrity();
    for (const sequence of this.waiting)
      if (sequence.blocks.length > 0) fail("a waiting sequence holds blocks");
    const { running } = this;
    if (new Set(running).size !== running.length || running.length > this.#options.maxNumSeqs)
      fail("the running list is wrong");
    for (const { blocks, status, numComputed, numTokens, group } of running) {
      const held = blocks.length * this.#pool.blockSize;
      if (status !== "running" || numComputed >= numTokens || held < numComputed)
        fail(`a sequence of ${group.requestId} is in a wrong state`);
    }
    this.#pool.checkIntegrity(running.map((sequence) => sequence.blocks.slice()));
    this.#states?.checkIntegrity(running);
    for (const sequence of this.waiting)
      if (sequence.state !== undefined) fail("a waiting sequence holds a slot of state");
  }
}
