import { createHash } from "node:crypto";
import { invalidRecord, type Place, quoted } from "./place.js";

const initialCapacity = 1024;

/**
 * Keeps the ids of a dataset unique. Memory: 24 to 48 bytes a case and not the ids themselves, so that a million cases
 * take tens of megabytes at most. Ids are compared by a 64-bit hash (two of a million collide with a chance of 3e-8). Layout: an open-addressed table of three parallel arrays, both halves of the hash and how often it was met;
 * zero: the slot is free.
 */
export class CaseIds {
  #high = new Uint32Array(initialCapacity);
  #low = new Uint32Array(initialCapacity);
  #counts = new Uint32Array(initialCapacity);
  #used = 0;

  /** @throws OctavoError `dataset_invalid` when the id was given before */
  claim(id: string, place: Place): string {
    if (id === "") throw invalidRecord(place, "id", "is empty");
    if (this.#meet(id) > 1) {
      throw invalidRecord(place, "id", `is ${quoted(id)}, which an earlier case has; ids must be unique`);
    }
    return id;
  }

  /** An id of what the record says: it stays when cases are added before it. Repeated records are numbered. */
  derive(content: string): string {
    const hash = createHash("sha256").update(content).digest("hex").slice(0, 16);
    for (;;) {
      const repeats = this.#meet(hash);
      if (repeats === 1) return hash;
      const numbered = `${hash}-${repeats}`;
      if (this.#meet(numbered) === 1) return numbered;
    }
  }

  /** How often an id was met, with this time. */
  #meet(id: string): number {
    if (this.#used * 2 >= this.#counts.length) this.#grow();
    const high = hash32(id, 0x9747b28c);
    const low = hash32(id, 0x2f0b4c47);
    const slot = this.#slotOf(high, low);
    if (this.#counts[slot] === 0) {
      this.#high[slot] = high;
      this.#low[slot] = low;
      this.#used++;
    }
    const count = (this.#counts[slot] ?? 0) + 1;
    this.#counts[slot] = count;
    return count;
  }

  #slotOf(high: number, low: number): number {
    const mask = this.#counts.length - 1;
    let slot = low & mask;
    while (this.#counts[slot] !== 0 && (this.#high[slot] !== high || this.#low[slot] !== low)) {
      slot = (slot + 1) & mask;
    }
    return slot;
  }

  #grow(): void {
    const [high, low, counts] = [this.#high, this.#low, this.#counts];
    this.#high = new Uint32Array(high.length * 2);
    this.#low = new Uint32Array(high.length * 2);
    this.#counts = new Uint32Array(high.length * 2);
    for (const [index, count] of counts.entries()) {
      if (count === 0) continue;
      const slot = this.#slotOf(high[index] ?? 0, low[index] ?? 0);
      this.#high[slot] = high[index] ?? 0;
      this.#low[slot] = low[index] ?? 0;
      this.#counts[slot] = count;
    }
  }
}

/** MurmurHash3's 32-bit mixing (Austin Appleby, public domain) over UTF-16 units. */
function hash32(text: string, seed: number): number {
  let hash = seed;
  for (let index = 0; index < text.length; index++) {
    let unit = Math.imul(text.charCodeAt(index), 0xcc9e2d51);
    unit = Math.imul((unit << 15) | (unit >>> 17), 0x1b873593);
    hash ^= unit;
    hash = (Math.imul((hash << 13) | (hash >>> 19), 5) + 0xe6546b64) | 0;
  }
  hash ^= text.length;
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
