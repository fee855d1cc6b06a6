interface IndexedText {
  /** Unit vector. */
  readonly vector: Float32Array;
  /** Key of the cached answer. */
  readonly key: string;
}

/** Texts by what they mean, each only beside others of the same context: the nearest one, if it is near enough. */
export class SemanticIndex {
  readonly #maxTexts: number;
  /** By context, the one that was used longest ago first. */
  readonly #contexts = new Map<string, IndexedText[]>();
  #numTexts = 0;

  constructor(maxTexts: number) {
    this.#maxTexts = maxTexts;
  }

  get numTexts(): number {
    return this.#numTexts;
  }

  /** The key of the nearest text with a cosine of at least `threshold`. */
  find(context: string, embedding: readonly number[], threshold: number): string | undefined {
    const texts = this.#contexts.get(context);
    const vector = unitVector(embedding);
    if (texts === undefined || vector === undefined) return undefined;
    this.#contexts.delete(context);
    this.#contexts.set(context, texts);
    let [best, nearest] = [threshold, undefined as string | undefined];
    for (const text of texts) {
      const cosine = text.vector.length === vector.length ? dotProduct(text.vector, vector) : -1;
      if (cosine >= best) [best, nearest] = [cosine, text.key];
    }
    return nearest;
  }

  add(context: string, embedding: readonly number[], key: string): void {
    const vector = unitVector(embedding);
    if (vector === undefined) return;
    const texts = this.#contexts.get(context) ?? [];
    this.#contexts.delete(context);
    this.#contexts.set(context, texts);
    const known = texts.findIndex((text) => text.key === key);
    if (known >= 0) texts.splice(known, 1);
    else this.#numTexts++;
    texts.push({ vector, key });
    while (this.#numTexts > this.#maxTexts) this.#dropOldest();
  }

  remove(context: string, key: string): void {
    const texts = this.#contexts.get(context) ?? [];
    const known = texts.findIndex((text) => text.key === key);
    if (known < 0) return;
    texts.splice(known, 1);
    this.#numTexts--;
    if (texts.length === 0) this.#contexts.delete(context);
  }

  #dropOldest(): void {
    const [context, texts] = this.#contexts.entries().next().value!;
    texts.shift();
    this.#numTexts--;
    if (texts.length === 0) this.#contexts.delete(context);
  }
}

/** Undefined for what has no direction. */
function unitVector(values: readonly number[]): Float32Array | undefined {
  const norm = Math.sqrt(values.reduce((sum, value) => sum + value * value, 0));
  if (!(norm > 0 && norm < Infinity)) return undefined;
  return Float32Array.from(values, (value) => value / norm);
}

function dotProduct(a: Float32Array, b: Float32Array): number {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i]! * b[i]!;
  return sum;
}
