import { WindowFile } from "./window-file.js";
import {
  type RateRefusal,
  type RateShare,
  requireAmounts,
  type SharedStore,
  type SlotPool,
  type SpendingWindow,
  type StoredDocument,
} from "./shared-store.js";

export interface EmbeddedStoreOptions {
  /** Milliseconds since 1970. */
  readonly nowMs: () => number;
  /** Keeps spending windows and documents over restarts; without it they end with the process. */
  readonly file?: string;
  /** Bytes of blobs that are kept; the least recently used go first. */
  readonly maxBlobBytes?: number;
}

interface Blob {
  readonly value: string;
  readonly expiresAtMs: number;
}

const defaultBlobBytes = 256 * 1024 * 1024;
/** Buckets and pools of this many keys are kept before those at rest are dropped. */
const mostKeys = 100_000;

/** The state of one gateway process, in its own memory and, where told, in a file. */
export class EmbeddedStore implements SharedStore {
  readonly isShared = false;
  readonly #nowMs: () => number;
  readonly #file: WindowFile;
  readonly #arrivalTimes = new Map<string, number>();
  readonly #slots = new Map<string, Map<string, { held: number; expiresAtMs: number }>>();
  readonly #blobs = new Map<string, Blob>();
  readonly #maxBlobBytes: number;
  #blobBytes = 0;

  /** Throws `store_unavailable` where the file cannot be read and written. */
  constructor({ nowMs, file, maxBlobBytes = defaultBlobBytes }: EmbeddedStoreOptions) {
    this.#nowMs = nowMs;
    this.#maxBlobBytes = maxBlobBytes;
    this.#file = new WindowFile(file, nowMs());
  }

  take(window: SpendingWindow, want: number, least: number): number {
    requireAmounts(want, least);
    const taken = this.#file.taken(window.key);
    const granted = Math.min(want, window.limit - taken);
    if (granted < least) return 0;
    this.#file.setTaken(window.key, taken + granted, window.endsAtMs, this.#nowMs());
    return granted;
  }

  giveBack(window: SpendingWindow, amount: number): void {
    const taken = this.#file.taken(window.key);
    if (amount <= 0 || taken === 0) return;
    this.#file.setTaken(window.key, Math.max(0, taken - amount), window.endsAtMs, this.#nowMs());
  }

  taken(window: SpendingWindow): number {
    return this.#file.taken(window.key);
  }

  takeRates(shares: readonly RateShare[]): RateRefusal | undefined {
    for (const { amount } of shares) requireAmounts(amount, amount);
    const now = this.#nowMs();
    for (let index = 0; index < shares.length; index += 1) {
      const waitMs = this.#takeRate(shares[index]!, now);
      if (waitMs === 0) continue;
      this.giveBackRates(shares.slice(0, index));
      return { index, waitMs };
    }
    return undefined;
  }

  /**
   * Generic cell rate algorithm (ITU-T I.371): the bucket is the time at which it would be empty. Returns 0, or how long until
   * there is enough.
   */
  #takeRate({ bucket: { key, perSecond, burst }, amount }: RateShare, now: number): number {
    const interval = 1000 / perSecond;
    const arrival = Math.max(now, this.#arrivalTimes.get(key) ?? now);
    const left = Math.floor((burst * interval - (arrival - now)) / interval + 1e-9);
    if (left < amount) return Math.max(1, Math.ceil(arrival + (amount - burst) * interval - now));
    if (this.#arrivalTimes.size >= mostKeys) this.#dropBucketsAtRest(now);
    this.#arrivalTimes.set(key, arrival + amount * interval);
    return 0;
  }

  giveBackRates(shares: readonly RateShare[]): void {
    for (const { bucket, amount } of shares) {
      const arrival = this.#arrivalTimes.get(bucket.key);
      if (arrival === undefined || !(amount > 0)) continue;
      const earlier = arrival - amount * (1000 / bucket.perSecond);
      if (earlier <= this.#nowMs()) this.#arrivalTimes.delete(bucket.key);
      else this.#arrivalTimes.set(bucket.key, earlier);
    }
  }

  #dropBucketsAtRest(now: number): void {
    for (const [key, arrival] of this.#arrivalTimes) if (arrival <= now) this.#arrivalTimes.delete(key);
  }

  holdSlots(pool: SlotPool, owner: string, wanted: number, ttlMs: number): Promise<number> {
    return settled(() => {
      const now = this.#nowMs();
      const owners = this.#slots.get(pool.key) ?? new Map<string, { held: number; expiresAtMs: number }>();
      let others = 0;
      for (const [name, { held, expiresAtMs }] of owners) {
        if (expiresAtMs <= now) owners.delete(name);
        else if (name !== owner) others += held;
      }
      const held = Math.max(0, Math.min(wanted, pool.limit - others));
      if (held === 0) owners.delete(owner);
      else owners.set(owner, { held, expiresAtMs: now + ttlMs });
      if (owners.size === 0) this.#slots.delete(pool.key);
      else this.#slots.set(pool.key, owners);
      return held;
    });
  }

  readDocument(name: string): Promise<StoredDocument | undefined> {
    return settled(() => this.#file.document(name));
  }

  writeDocument(name: string, value: string, version: number): Promise<boolean> {
    return settled(() => {
      if ((this.#file.document(name)?.version ?? 0) !== version) return false;
      this.#file.setDocument(name, { value, version: version + 1 });
      return true;
    });
  }

  readBlob(key: string): Promise<string | undefined> {
    const blob = this.#blobs.get(key);
    if (blob === undefined) return Promise.resolve(undefined);
    this.#dropBlob(key);
    if (blob.expiresAtMs <= this.#nowMs()) return Promise.resolve(undefined);
    this.#keepBlob(key, blob);
    return Promise.resolve(blob.value);
  }

  writeBlob(key: string, value: string, ttlMs: number): Promise<void> {
    this.#dropBlob(key);
    this.#keepBlob(key, { value, expiresAtMs: this.#nowMs() + ttlMs });
    for (const oldest of this.#blobs.keys()) {
      if (this.#blobBytes <= this.#maxBlobBytes) break;
      this.#dropBlob(oldest);
    }
    return Promise.resolve();
  }

  deleteBlobs(keys: readonly string[]): Promise<void> {
    for (const key of keys) this.#dropBlob(key);
    return Promise.resolve();
  }

  #keepBlob(key: string, blob: Blob): void {
    this.#blobs.set(key, blob);
    this.#blobBytes += blobSize(key, blob);
  }

  #dropBlob(key: string): void {
    const blob = this.#blobs.get(key);
    if (blob === undefined) return;
    this.#blobs.delete(key);
    this.#blobBytes -= blobSize(key, blob);
  }

  close(): Promise<void> {
    return settled(() => {
      this.#file.close();
    });
  }
}

/** Characters take two bytes at most, and an entry about a hundred more. */
const blobSize = (key: string, { value }: Blob): number => 2 * (key.length + value.length) + 100;

function settled<Value>(action: () => Value): Promise<Value> {
  return new Promise((resolve) => {
    resolve(action());
  });
}
