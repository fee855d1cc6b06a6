import type { Tokenizer } from "@octavo/engine";
import type { ForcedSequence } from "../data/forced-sequence.js";
import type { TokenDivergence } from "../forcing/divergence.js";
import { roleNames, roles } from "../roles/role.js";

const most = 20;
const contextTokens = 24;

interface Candidate {
  readonly sequence: ForcedSequence;
  readonly token: number;
  readonly compared: TokenDivergence;
}

/** A place where the models differ most, for a person to read. */
export interface WorstToken {
  readonly line: number;
  readonly position: number;
  readonly role: string;
  readonly kl: number;
  /** Text before the token, special tokens included. */
  readonly context: string;
  /** What the data has. */
  readonly target: string;
  readonly baseline: { readonly token: string; readonly probability: number };
  readonly variant: { readonly token: string; readonly probability: number };
}

/** Keeps the tokens of the largest divergence. */
export class WorstTokens {
  #kept: Candidate[] = [];

  offer(candidate: Candidate): void {
    if (candidate.compared.kl === 0) return;
    const least = this.#kept.at(-1);
    if (this.#kept.length >= most && least !== undefined && candidate.compared.kl <= least.compared.kl)
      return;
    this.#kept.push(candidate);
    this.#kept.sort((a, b) => b.compared.kl - a.compared.kl);
    this.#kept = this.#kept.slice(0, most);
  }

  get sorted(): readonly Candidate[] {
    return this.#kept;
  }
}

export function describeWorst(candidates: readonly Candidate[], tokenizer: Tokenizer): WorstToken[] {
  const text = (tokens: ArrayLike<number>): string => tokenizer.decode(tokens, { skipSpecialTokens: false });
  return candidates.map(({ sequence, token, compared }) => ({
    line: sequence.line,
    position: sequence.positions[token] ?? 0,
    role: roleNames[roles[sequence.roles[token] ?? 0] ?? "prose"],
    kl: compared.kl,
    context: text(sequence.tokens.subarray(Math.max(0, token - contextTokens), token)),
    target: text([sequence.tokens[token] ?? 0]),
    baseline: { token: text([compared.baselineTop]), probability: compared.baselineTopProbability },
    variant: { token: text([compared.variantTop]), probability: compared.variantTopProbability },
  }));
}
