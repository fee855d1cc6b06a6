import type { SamplerStateSpec } from "@octavo/kernels";

const masked = Number.NEGATIVE_INFINITY;

/** What a sequence's sampling remembers from step to step, and how it edits a row of logits. */
export class TokenHistory {
  readonly #spec: Omit<SamplerStateSpec, "promptTokens" | "outputTokens">;
  /** How often each token of prompt or output was generated. */
  readonly #counts = new Map<number, number>();
  readonly #hasPenalties: boolean;
  /** The last generated tokens, newest last: as many as the longest bad word's prefix. */
  #recent: number[] = [];
  readonly #recentCapacity: number;

  constructor({ promptTokens, outputTokens, ...spec }: SamplerStateSpec) {
    this.#spec = spec;
    this.#hasPenalties =
      spec.repetitionPenalty !== 1 || spec.frequencyPenalty !== 0 || spec.presencePenalty !== 0;
    this.#recentCapacity = Math.max(0, ...(spec.badWords ?? []).map((word) => word.length - 1));
    if (this.#hasPenalties) for (const token of promptTokens) this.#counts.set(token, 0);
    for (const token of outputTokens) this.append(token);
  }

  /** Records a generated token. */
  append(token: number): void {
    if (this.#hasPenalties) this.#counts.set(token, (this.#counts.get(token) ?? 0) + 1);
    if (this.#recentCapacity === 0) return;
    this.#recent = [...this.#recent, token].slice(-this.#recentCapacity);
  }

  edits(suppressStops: boolean): boolean {
    const { allowedTokens, badWords = [], logitBias, stopTokens } = this.#spec;
    return (
      allowedTokens !== undefined ||
      badWords.length > 0 ||
      (logitBias !== undefined && logitBias.ids.length > 0) ||
      this.#hasPenalties ||
      (suppressStops && stopTokens !== undefined && stopTokens.length > 0)
    );
  }

  /** Allowed ids, bad words, stop suppression, bias and penalties, in place. */
  edit(logits: Float32Array, suppressStops: boolean): void {
    const { allowedTokens, stopTokens, logitBias } = this.#spec;
    if (allowedTokens !== undefined) keepOnly(logits, allowedTokens);
    this.#banBadWords(logits);
    const within = (token: number): boolean => token >= 0 && token < logits.length;
    if (suppressStops) for (const token of stopTokens ?? []) if (within(token)) logits[token] = masked;
    for (const [index, token] of (logitBias?.ids ?? []).entries())
      if (within(token)) logits[token] = (logits[token] ?? 0) + (logitBias?.values[index] ?? 0);
    if (this.#hasPenalties) this.#penalise(logits);
  }

  #banBadWords(logits: Float32Array): void {
    for (const word of this.#spec.badWords ?? []) {
      const last = word.at(-1) ?? -1;
      const prefix = word.subarray(0, -1);
      if (word.length === 0 || prefix.length > this.#recent.length || last < 0 || last >= logits.length)
        continue;
      const recent = this.#recent.slice(this.#recent.length - prefix.length);
      if (recent.every((token, index) => token === prefix[index])) logits[last] = masked;
    }
  }

  #penalise(logits: Float32Array): void {
    const { repetitionPenalty, frequencyPenalty, presencePenalty } = this.#spec;
    for (const [token, inOutput] of this.#counts) {
      if (token < 0 || token >= logits.length) continue;
      let logit = logits[token] ?? 0;
      if (repetitionPenalty !== 1) logit = logit > 0 ? logit / repetitionPenalty : logit * repetitionPenalty;
      if (inOutput > 0) logit -= frequencyPenalty * inOutput + presencePenalty;
      logits[token] = logit;
    }
  }
}

function keepOnly(logits: Float32Array, allowed: Int32Array): void {
  const kept = [...allowed]
    .filter((token) => token >= 0 && token < logits.length)
    .map((token) => [token, logits[token] ?? 0] as const);
  logits.fill(masked);
  for (const [token, logit] of kept) logits[token] = logit;
}
