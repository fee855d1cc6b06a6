/**
 * A seeded stream (sfc32) that knows texts as seeds. The golden cases and the figures on the model's card are drawn from it, so
 * its numbers never change; elsewhere use the generator of `@octavo/statistics`.
 */
export class CaseRandom {
  #a: number;
  #b: number;
  #c: number;
  #counter = 1;

  constructor(seed: string | number) {
    const text = String(seed);
    this.#a = hashText(`a:${text}`);
    this.#b = hashText(`b:${text}`);
    this.#c = hashText(`c:${text}`);
    for (let i = 0; i < 12; i++) this.#next();
  }

  #next(): number {
    const sum = (this.#a + this.#b + this.#counter) | 0;
    this.#counter = (this.#counter + 1) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = (((this.#c << 21) | (this.#c >>> 11)) + sum) | 0;
    return sum >>> 0;
  }

  /** Uniform in [0, 1). */
  unit(): number {
    return this.#next() / 4294967296;
  }

  /** Uniform integer, both ends included. */
  int(low: number, high: number): number {
    return low + Math.floor(this.unit() * (high - low + 1));
  }

  chance(probability: number): boolean {
    return this.unit() < probability;
  }

  pick<T>(items: readonly T[]): T {
    if (items.length === 0) throw new RangeError("cannot pick from an empty list");
    return items[this.int(0, items.length - 1)] as T;
  }

  shuffle<T>(items: readonly T[]): T[] {
    const copy = [...items];
    for (let i = copy.length - 1; i > 0; i--) {
      const j = this.int(0, i);
      const held = copy[i] as T;
      copy[i] = copy[j] as T;
      copy[j] = held;
    }
    return copy;
  }

  sample<T>(items: readonly T[], count: number): T[] {
    return this.shuffle(items).slice(0, count);
  }

  weighted<T>(choices: readonly (readonly [weight: number, value: T])[]): T {
    const total = choices.reduce((sum, [weight]) => sum + weight, 0);
    let left = this.unit() * total;
    for (const [weight, value] of choices) {
      left -= weight;
      if (left < 0) return value;
    }
    return (choices[choices.length - 1] as readonly [number, T])[1];
  }
}

/** FNV-1a with a final mix, as an unsigned 32-bit integer. */
export function hashText(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) {
    hash ^= text.charCodeAt(i);
    hash = Math.imul(hash, 0x01000193);
  }
  hash ^= hash >>> 15;
  hash = Math.imul(hash, 0x2c1b3c6d);
  hash ^= hash >>> 12;
  return hash >>> 0;
}
