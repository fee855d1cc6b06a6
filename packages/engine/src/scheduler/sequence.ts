import { IntList } from "../kv-cache/int-list.js";
import { PrefixChain } from "../kv-cache/prefix-cache.js";
import { type Account, defaultAccount } from "./account.js";
import type { BlockId } from "../kv-cache/block-pool.js";
import type { PromptImage } from "./prompt-image.js";

/** A request as the scheduler sees it: its order of arrival and the sequences that share its prompt. */
export interface SequenceGroup {
  readonly requestId: string;
  /** Arrival order, unique. */
  readonly order: number;
  /** Lower runs earlier under the priority policy. */
  readonly priority: number;
  readonly cacheSalt: string | undefined;
  readonly adapter?: SequenceAdapter | undefined;
  readonly account?: Account;
  /** Of its prompt, by their positions. */
  readonly images?: readonly PromptImage[] | undefined;
  /** Deadline of the first token, on `performance.now()`'s clock. */
  readonly firstTokenDueMs?: number | undefined;
  readonly sequences: readonly Sequence[];
}

/** An adapter as the scheduler sees it. */
export interface SequenceAdapter {
  readonly name: string;
  /** Unique, also among adapters of the same name. */
  readonly id: number;
}

/** A running sequence's recurrent state. Slots are blocks of a pool of their own, each of one state. */
export interface RecurrentState {
  readonly slot: BlockId;
  /** What its next step starts from: its own slot, a snapshot that it holds until that step is over, or nothing. */
  source: BlockId | undefined;
  /** Tokens that the state in `source` stands for; fewer than were computed where draft tokens were accepted. */
  start: number;
  /** What the step in flight keeps: the state after so many tokens. Slots are held until it is over. */
  snapshots: readonly { readonly position: number; readonly slot: BlockId }[];
  /** Where cached blocks of its prefix ended: what others share up to here, they will again. */
  readonly junction: number;
}

export type SequenceStatus = "waiting" | "running" | "finished";

/**
 * One token stream. The scheduler has no prefill and decode phases: a sequence has computed `numComputed` of its tokens, and
 * a step computes some more of them. The token sampled behind the last one is appended when the step ends.
 */
export class Sequence {
  readonly group: SequenceGroup;
  /** Position among the request's sequences. */
  readonly index: number;
  readonly numPromptTokens: number;
  /** Prompt, then output. */
  readonly tokens: IntList;
  /** The block table: entry i holds positions from `i * blockSize` on. */
  readonly blocks = new IntList();
  readonly prefix: PrefixChain;
  status: SequenceStatus = "waiting";
  /** Tokens whose keys and values are in the blocks. */
  numComputed = 0;
  /** Tokens that the step in flight computes; 0 if it computes none. */
  numScheduled = 0;
  /** Draft tokens behind `tokens`, which the step in flight computes after `numScheduled`; empty otherwise. */
  readonly draft = new IntList(0);
  /** Running sequences of recurrent models only. */
  state: RecurrentState | undefined;
  /** Leading blocks that were registered in the prefix cache. */
  numRegistered = 0;
  /** Leading tokens that its tenant was charged for. */
  numCharged = 0;
  numPreemptions = 0;
  /** Order of the request that needed its blocks at the last preemption; undefined if it was forced. */
  preemptedBy: number | undefined;
  /** Tokens recomputed after preemptions. */
  numRecomputed = 0;
  /** Computed tokens that the last preemption lost, until it runs again. */
  numLost = 0;
  numBlocksAllocated = 0;
  /** Blocks among these whose cached content was evicted. */
  numBlocksEvicted = 0;
  /** Prompt tokens that were cached once and evicted before this sequence came; set with `cachedTokens`. */
  evictedPrefixTokens = 0;
  /** Prompt tokens found in the cache when first admitted; undefined before. */
  cachedTokens: number | undefined;
  /** Positions from here on are computed even if cached, because their output is wanted. */
  firstWantedRow = Number.POSITIVE_INFINITY;

  /** Keeps `promptTokens` without copying: they must not change. */
  constructor(group: SequenceGroup, index: number, promptTokens: Int32Array) {
    this.group = group;
    this.index = index;
    this.numPromptTokens = promptTokens.length;
    this.tokens = IntList.sharing(promptTokens);
    const { adapter, account, cacheSalt } = group;
    const salt = prefixSalt({ adapter, cacheScope: account?.cacheScope, cacheSalt });
    this.prefix = new PrefixChain(this.tokens, salt, group.images);
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

interface PrefixTerms {
  readonly adapter?: SequenceAdapter | undefined;
  readonly cacheScope?: string | undefined;
  readonly cacheSalt?: string | undefined;
}

/**
 * Keys and values depend on the adapter. Each part has a letter in front and the scope its length, so that a caller's salt
 * cannot imitate another scope or adapter.
 */
export function prefixSalt({ adapter, cacheScope, cacheSalt }: PrefixTerms): string | undefined {
  const salt =
    (adapter === undefined ? "" : `a${adapter.id}:`) +
    (cacheScope === undefined ? "" : `o${cacheScope.length}:${cacheScope}`) +
    (cacheSalt === undefined ? "" : `s${cacheSalt}`);
  return salt === "" ? undefined : salt;
}
