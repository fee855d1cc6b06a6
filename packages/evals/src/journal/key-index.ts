/** Words of a slot: the key's 128 bits. */
const keyWords = 4;

/**
 * Where the row of each key stands in a journal: an open-addressing table of 24 bytes a slot, at most two thirds full. A
 * map of strings would take ten times as much, which a million cases do not leave.
 */
export class KeyIndex {
  #keys = new Uint32Array(keyWords * 1024);
  /** Byte offset plus one; zero in a free slot. */
  #places = new Float64Array(1024);
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get(key: string): number | undefined {
    const place = this.#places[this.#slotOf(wordsOf(key))]!;
    return place === 0 ? undefined : place - 1;
  }

  /** A key that is there already moves to the new offset. */
  set(key: string, offset: number): void {
    if (this.#size * 3 >= this.#places.length * 2) this.#grow();
    this.#put(wordsOf(key), offset + 1);
  }

  #put(words: readonly number[], place: number): void {
    const slot = this.#slotOf(words);
    if (this.#places[slot] === 0) {
      this.#size++;
      this.#keys.set(words, slot * keyWords);
    }
    this.#places[slot] = place;
  }

  /** The slot that holds the key, or the free one where it belongs. Keys are digests: their first word is the hash. */
  #slotOf(words: readonly number[]): number {
    const mask = this.#places.length - 1;
    let slot = words[0]! & mask;
    while (this.#places[slot] !== 0 && !this.#holds(slot, words)) slot = (slot + 1) & mask;
    return slot;
  }

  #holds(slot: number, words: readonly number[]): boolean {
    for (let word = 0; word < keyWords; word++) {
      if (this.#keys[slot * keyWords + word] !== words[word]) return false;
    }
    return true;
  }

  #grow(): void {
    const keys = this.#keys;
    const places = this.#places;
    this.#keys = new Uint32Array(keys.length * 2);
    this.#places = new Float64Array(places.length * 2);
    this.#size = 0;
    for (const [slot, place] of places.entries()) {
      if (place !== 0) this.#put([...keys.subarray(slot * keyWords, (slot + 1) * keyWords)], place);
    }
  }
}

function wordsOf(key: string): number[] {
  return [0, 8, 16, 24].map((start) => Number.parseInt(key.slice(start, start + 8), 16));
}
