import type { Term } from "./term.js";
import type { TokenTrie } from "./token-trie.js";

/** What a state's own rule allows of the vocabulary, independent of its callers. */
export interface LocalMask {
  /** Tokens that stay within the state's own part, or end where it may. */
  readonly tokens: Uint32Array;
  /** Nodes of `trie` at which the part may end: what follows decides about the tokens below them. */
  readonly exits: Int32Array;
  readonly trie: TokenTrie;
}

/** What an entry takes beside the contents of its arrays: array objects, their buffers, its place. */
const entryBytes = 512;

/** What is known of an automaton's masks without holding them. */
interface Account {
  readonly tenant: string;
  /** The masks of an automaton that nobody uses any more go with it. */
  readonly masks: WeakRef<AutomatonMasks>;
  bytes: number;
}

interface Share {
  bytes: number;
  /** By last use. */
  readonly automata: Set<Account>;
  latest: Account | undefined;
}

/**
 * Bounds the masks of all automata together. Beyond it the tenant whose masks take the most loses them first, of the automaton
 * that it used least recently.
 */
export class MaskCache {
  readonly #maxBytes: number;
  readonly #shares = new Map<string, Share>();
  readonly #freed = new FinalizationRegistry<Account>((account) => this.#forget(account));
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** The masks of a new automaton, which is the only one to hold them. */
  open(tenant = ""): AutomatonMasks {
    const masks: AutomatonMasks = new AutomatonMasks((bytes) => this.#use(account, bytes));
    const account: Account = { tenant, masks: new WeakRef(masks), bytes: 0 };
    this.#freed.register(masks, account);
    return masks;
  }

  /** Masks of an account were read (0 bytes) or have grown. */
  #use(account: Account, bytes: number): void {
    let share = this.#shares.get(account.tenant);
    if (share === undefined) {
      share = { bytes: 0, automata: new Set(), latest: undefined };
      this.#shares.set(account.tenant, share);
    }
    if (share.latest !== account) {
      share.automata.delete(account);
      share.automata.add(account);
      share.latest = account;
    }
    if (bytes === 0) return;
    this.#count(share, account, bytes);
    while (this.#bytes > this.#maxBytes && this.#dropOne(account)) continue;
  }

  /** Returns whether there was one to drop; the latest mask of `current` stays. */
  #dropOne(current: Account): boolean {
    const bySize = [...this.#shares.values()].toSorted((a, b) => b.bytes - a.bytes);
    for (const share of bySize) {
      for (const account of share.automata) {
        const freed = account.masks.deref()?.dropOldest(account === current ? 1 : 0) ?? 0;
        if (freed > 0) this.#count(share, account, -freed);
        else if (account === current) continue;
        else this.#forget(account);
        return true;
      }
    }
    return false;
  }

  #forget(account: Account): void {
    const share = this.#shares.get(account.tenant);
    if (share?.automata.delete(account) !== true) return;
    this.#count(share, account, -account.bytes);
    if (share.latest === account) share.latest = undefined;
    if (share.automata.size === 0) this.#shares.delete(account.tenant);
  }

  #count(share: Share, account: Account, bytes: number): void {
    account.bytes += bytes;
    share.bytes += bytes;
    this.#bytes += bytes;
  }
}

/** The masks of one automaton's terms, whole and local ones, in order of last use. */
export class AutomatonMasks {
  /** By twice the term's id, and one more for local ones. */
  readonly #entries = new Map<number, Uint32Array | LocalMask>();
  readonly #onUse: (bytes: number) => void;

  constructor(onUse: (bytes: number) => void) {
    this.#onUse = onUse;
  }

  whole(term: Term): Uint32Array | undefined {
    return this.#get(2 * term.id) as Uint32Array | undefined;
  }

  local(term: Term): LocalMask | undefined {
    return this.#get(2 * term.id + 1) as LocalMask | undefined;
  }

  setWhole(term: Term, mask: Uint32Array): void {
    this.#set(2 * term.id, mask);
  }

  setLocal(term: Term, mask: LocalMask): void {
    this.#set(2 * term.id + 1, mask);
  }

  /** Drops the one used least recently; returns its bytes, 0 where no more than `kept` are left. */
  dropOldest(kept: number): number {
    const oldest = this.#entries.size > kept ? this.#entries.entries().next().value : undefined;
    if (oldest === undefined) return 0;
    this.#entries.delete(oldest[0]);
    return bytesOf(oldest[1]);
  }

  #get(key: number): Uint32Array | LocalMask | undefined {
    const value = this.#entries.get(key);
    if (value === undefined) return undefined;
    this.#entries.delete(key);
    this.#entries.set(key, value);
    this.#onUse(0);
    return value;
  }

  #set(key: number, value: Uint32Array | LocalMask): void {
    const before = this.#entries.get(key);
    this.#entries.delete(key);
    this.#entries.set(key, value);
    // two sequences may have made the same mask
    this.#onUse(bytesOf(value) - (before === undefined ? 0 : bytesOf(before)));
  }
}

function bytesOf(mask: Uint32Array | LocalMask): number {
  const content =
    mask instanceof Uint32Array ? mask.byteLength : mask.tokens.byteLength + mask.exits.byteLength;
  return entryBytes + content;
}
