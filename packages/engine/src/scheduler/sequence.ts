import { IntList } from "../kv-cache/int-list.js";
import { PrefixChain } from "../kv-cache/prefix-cache.js";
import { type Account, defaultAccount } from "./account.js";

/** What the scheduler knows of a request: the order it came in and the sequences that share its prompt. */
export interface SequenceGroup {
  readonly requestId: string;
  /** Arrival order, unique. */
  readonly order: number;
  /** Lower runs earlier under the priority policy. */
  readonly priority: number;
  readonly cacheSalt: string | undefined;
  readonly adapter?: SequenceAdapter | undefined;
  readonly account?: Account;
  /** When its first token is due, on `performance.now()`'s clock. */
  readonly firstTokenDueMs?: number | undefined;
  readonly sequences: readonly Sequence[];
}

/** What the scheduler knows of an adapter. */
export interface SequenceAdapter {
  readonly name: string;
  /** Never given to another one, not even to one of the same name. */
  readonly id: number;
}

export type SequenceStatus = "waiting" | "running" | "finished";

/**
 * One token stream. The scheduler knows no prefill and no decode: a sequence has computed `numComputed` of its
 * tokens, and a step computes some more of them. What the last one predicts is appended when the step ends.
 */
export class Sequence {
  readonly group: SequenceGroup;
  /** Position among the request's sequences. */
  readonly index: number;
  readonly numPromptTokens: number;
  /** Prompt, then output. */
  readonly tokens: IntList;
  /** Blocks of positions 0.., the first `blocks.length * blockSize` of them. */
  readonly blocks = new IntList();
  readonly prefix: PrefixChain;
  status: SequenceStatus = "waiting";
  /** Tokens whose keys and values are in the blocks. */
  numComputed = 0;
  /** Tokens the step in flight computes; 0 when it does not run in it. */
  numScheduled = 0;
  /** Draft tokens behind `tokens`, which the step in flight computes after `numScheduled`; empty otherwise. */
  readonly draft = new IntList(0);
  /** Blocks, from the first on, that were offered to the prefix cache. */
  numRegistered = 0;
  /** Tokens, from the first on, that its tenant was charged for. */
  numCharged = 0;
  numPreemptions = 0;
  /** Number of the request that needed its blocks when it was last preempted; undefined when nobody did. */
  preemptedBy: number | undefined;
  /** Tokens computed again since preemptions lost them. */
  numRecomputed = 0;
  /** Tokens that the last preemption lost. */
  numLost = 0;
  numBlocksAllocated = 0;
  /** Of them, those that were taken from cached content. */
  numBlocksEvicted = 0;
  /** Prompt tokens that would have been found in the cache, had they not been evicted; set with `cachedTokens`. */
  evictedPrefixTokens = 0;
  /** Prompt tokens found in the cache when first admitted; undefined before. */
  cachedTokens: number | undefined;
  /** Every position from here on must be computed although it may be cached, since its output is wanted. */
  firstWantedRow = Number.POSITIVE_INFINITY;

  /** `promptTokens` is kept and must not change: a sequence that waits costs no copy of its prompt. */
  constructor(group: SequenceGroup, index: number, promptTokens: Int32Array) {
    this.group = group;
    this.index = index;
    this.numPromptTokens = promptTokens.length;
    this.tokens = IntList.sharing(promptTokens);
    this.prefix = new PrefixChain(this.tokens, prefixSalt(group));
  }

  get numTokens(): number {
    return this.tokens.length;
  }

  get numOutputTokens(): number {
    return this.tokens.length - this.numPromptTokens;
  }

  /** Only the newest token is left to compute. */
  get isDecoding(): boolean {
    return this.numComputed === this.tokens.length - 1 && this.tokens.length > this.numPromptTokens;
  }
}

export function accountOf({ group }: Sequence): Account {
  return group.account ?? defaultAccount;
}

/** Its priority class; 0 is the most urgent. */
export function laneOf({ group }: Sequence): number {
  return group.account?.lane ?? 0;
}

/** Keys and values are an adapter's own. What the caller chose follows a letter, so that it cannot name an adapter. */
export function prefixSalt({
  adapter,
  cacheSalt,
}: Pick<SequenceGroup, "adapter" | "cacheSalt">): string | undefined {
  const chosen = cacheSalt === undefined ? undefined : `s${cacheSalt}`;
  return adapter === undefined ? chosen : `a${adapter.id}:${chosen ?? ""}`;
}
