import { OctavoError } from "@octavo/protocol";
import type { MaybePromise } from "../exchange/maybe-promise.js";

/** What may be taken in a stretch of time, such as the nanodollars of a month. Amounts are whole numbers below 2^53. */
export interface SpendingWindow {
  readonly key: string;
  readonly limit: number;
  /** Milliseconds since 1970. */
  readonly startsAtMs: number;
  readonly endsAtMs: number;
}

/** A generic cell rate: `burst` at once, `perSecond` in the long run. */
export interface RateBucket {
  readonly key: string;
  readonly perSecond: number;
  readonly burst: number;
}

/** What a call takes of one bucket; a whole number. */
export interface RateShare {
  readonly bucket: RateBucket;
  readonly amount: number;
}

/** Which of several shares there is too little for, and how long until there is enough. */
export interface RateRefusal {
  readonly index: number;
  readonly waitMs: number;
}

/** Places that are in use at the same time. */
export interface SlotPool {
  readonly key: string;
  readonly limit: number;
}

export interface StoredDocument {
  readonly value: string;
  readonly version: number;
}

/**
 * State that gateway instances share. It errs on one side: whatever is granted has been written down before, what an instance
 * holds when it dies counts as used, and a store that lost its memory grants nothing of windows that began before it did.
 *
 * What is asked on every call is answered at once where the state is in this process: a promise costs more than the answer.
 * Throws `store_unavailable` where the store cannot be reached; whether a grant was made is then unknown, and it counts as used.
 */
export interface SharedStore {
  /** Whether other instances see the same state. */
  readonly isShared: boolean;
  /** Takes as much as is left, up to `want`; returns 0 where that is less than `least`. */
  take(window: SpendingWindow, want: number, least: number): MaybePromise<number>;
  /** Returns what was taken and not used. */
  giveBack(window: SpendingWindow, amount: number): MaybePromise<void>;
  /** Taken so far; the limit itself where what was taken has been forgotten. */
  taken(window: SpendingWindow): MaybePromise<number>;
  /** Takes all shares in one step, or none; returns the first there is too little for. */
  takeRates(shares: readonly RateShare[]): MaybePromise<RateRefusal | undefined>;
  /** Returns what was taken and not used. */
  giveBackRates(shares: readonly RateShare[]): MaybePromise<void>;
  /**
   * Sets how many places `owner` holds, as many of `wanted` as are free, and returns them. They are free again `ttlMs` after
   * the last call for this owner.
   */
  holdSlots(pool: SlotPool, owner: string, wanted: number, ttlMs: number): Promise<number>;
  readDocument(name: string): Promise<StoredDocument | undefined>;
  /** Writes if the document still has this version, 0 for one that is not there; returns whether it did. */
  writeDocument(name: string, value: string, version: number): Promise<boolean>;
  readBlob(key: string): Promise<string | undefined>;
  writeBlob(key: string, value: string, ttlMs: number): Promise<void>;
  deleteBlobs(keys: readonly string[]): Promise<void>;
  close(): Promise<void>;
}

export function storeUnavailable(message: string, cause?: unknown): OctavoError {
  return new OctavoError("store_unavailable", message, { cause, retryAfterSeconds: 1 });
}

/** Throws `invalid_option` for amounts that cannot be counted exactly. */
export function requireAmounts(want: number, least: number): void {
  for (const [param, amount] of Object.entries({ want, least })) {
    if (Number.isSafeInteger(amount) && amount >= 1) continue;
    throw new OctavoError("invalid_option", `${param} is ${amount}; expected a whole number from 1 up.`, {
      param,
    });
  }
  if (least > want) {
    throw new OctavoError("invalid_option", `least is ${least}, more than the ${want} wanted.`, {
      param: "least",
    });
  }
}
