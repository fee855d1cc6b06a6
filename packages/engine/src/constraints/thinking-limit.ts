import type { ThinkingBudget } from "../api.js";
import type { IntList } from "../kv-cache/int-list.js";
import type { Detokenizer } from "@octavo/text/tokenizer/tokenizer";
import type { TokenConstraint } from "./token-constraint.js";

/**
 * Ends reasoning that has used up its token budget, by forcing the end tag token by token. Reasoning is recognised by its tags
 * in the text, however they are split into tokens. Combines with another constraint, which wins where it forbids the end tag.
 */
export class ThinkingLimit implements TokenConstraint {
  readonly #budget: ThinkingBudget;
  readonly #detokenizer: Detokenizer;
  readonly #inner: TokenConstraint | undefined;
  readonly #mask: Uint32Array;
  readonly #maxTag: number;
  /** The end of the text, long enough to hold an incomplete tag. */
  #tail = "";
  /** The latest tokens, fewer than the end tag has. */
  readonly #recent: number[] = [];
  #isOpen: boolean;
  #numTokens = 0;
  /** Tokens of the end tag forced so far; undefined while reasoning is free. */
  #numForced: number | undefined;

  constructor(
    budget: ThinkingBudget,
    detokenizer: Detokenizer,
    vocabSize: number,
    inner: TokenConstraint | undefined,
  ) {
    this.#budget = budget;
    this.#detokenizer = detokenizer;
    this.#inner = inner;
    this.#mask = new Uint32Array(Math.ceil(vocabSize / 32));
    this.#maxTag = Math.max(...[...budget.startTags, ...budget.endTags].map((tag) => tag.length));
    this.#isOpen = budget.isOpen;
    this.#forceWhenSpent();
  }

  get isFinished(): boolean {
    return this.#inner?.isFinished ?? false;
  }

  get mask(): Uint32Array | undefined {
    const token = this.#forced;
    if (token === undefined) return this.#inner?.mask;
    this.#mask.fill(0);
    this.#mask[token >> 5] = 1 << (token & 31);
    return this.#mask;
  }

  get forcedToken(): number | undefined {
    return this.#forced ?? this.#inner?.forcedToken;
  }

  prepare(): void {
    this.#inner?.prepare();
  }

  prepareInTurn(): boolean {
    return this.#inner?.prepareInTurn() ?? true;
  }

  accept(token: number): void {
    this.#inner?.accept(token);
    if (this.#numForced !== undefined && token === this.#budget.endTokens[this.#numForced])
      this.#numForced += 1;
    if (this.#isOpen) this.#numTokens += 1;
    this.#recent.push(token);
    if (this.#recent.length >= this.#budget.endTokens.length) this.#recent.shift();
    this.#read(this.#detokenizer.push(token));
    this.#forceWhenSpent();
  }

  /** A draft stays within the budget, so that no end tag is due behind any of its tokens. */
  cutDraft(draft: IntList): void {
    const { maxTokens } = this.#budget;
    // After reasoning ended, the draft's first token may begin it again.
    const left = this.#isOpen ? maxTokens - this.#numTokens - 1 : maxTokens;
    draft.truncate(this.#numForced === undefined ? Math.max(0, left) : 0);
    this.#inner?.cutDraft(draft);
  }

  maskAfter(count: number): Uint32Array | undefined {
    return count === 0 ? this.mask : this.#inner?.maskAfter(count);
  }

  /** The next token of the end tag, unless the other constraint forbids it. */
  get #forced(): number | undefined {
    if (this.#numForced === undefined) return undefined;
    const token = this.#budget.endTokens[this.#numForced];
    const allowed = this.#inner?.mask;
    if (token === undefined || allowed === undefined) return token;
    return ((allowed[token >> 5] ?? 0) & (1 << (token & 31))) === 0 ? undefined : token;
  }

  #read(text: string): void {
    this.#tail += text;
    for (;;) {
      const tags = this.#isOpen ? this.#budget.endTags : this.#budget.startTags;
      const ends = tags.flatMap((tag) => {
        const at = this.#tail.indexOf(tag);
        return at < 0 ? [] : [at + tag.length];
      });
      if (ends.length === 0) break;
      this.#tail = this.#tail.slice(Math.min(...ends));
      this.#isOpen = !this.#isOpen;
      this.#numTokens = 0;
      this.#numForced = undefined;
    }
    if (this.#tail.length > this.#maxTag) this.#tail = this.#tail.slice(-this.#maxTag);
  }

  #forceWhenSpent(): void {
    if (this.#isOpen && this.#numTokens >= this.#budget.maxTokens) this.#numForced ??= this.#numBegun();
  }

  /** Tokens of the end tag that the model has just generated itself. */
  #numBegun(): number {
    const { endTokens } = this.#budget;
    for (let count = Math.min(this.#recent.length, this.#numTokens); count > 0; count -= 1) {
      const latest = this.#recent.slice(-count);
      if (latest.every((token, index) => token === endTokens[index])) return count;
    }
    return 0;
  }
}
