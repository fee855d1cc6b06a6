import type { NamedCall } from "./agreement-writers.js";

/** An output and what vLLM 0.33 makes of it; where `differs` says why, what this parser makes of it instead. */
export interface AgreementCase {
  readonly title: string;
  /** Of calls; empty without one. */
  readonly parser: string;
  readonly reasoning?: string;
  readonly prompt?: "open" | "closed";
  readonly output: string;
  readonly thought?: string;
  readonly content?: string;
  /** Names and arguments; `broken` for arguments that are reported as no JSON object. */
  readonly calls?: readonly (NamedCall | readonly [name: string, problem: "broken"])[];
  readonly differs?: string;
}
export const agreementCases: readonly AgreementCase[] = [];
