import type { NamedCall } from "./agreement-writers.js";

/** An output and what vLLM 0.33 makes of it; where `differs` says why, what is made of it here instead. */
export interface AgreementCase {
  readonly title: string;
  /** Parser of the calls; empty if there is none. */
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

export type AgreementRow = readonly [
  title: string,
  output: string,
  calls: readonly (NamedCall | readonly [name: string, problem: "broken"])[],
  content?: string,
  differs?: string,
];

export const keepsBroken =
  "a broken call is delivered with its problem; vLLM drops it or leaves it in content";
export const cutOff = "a call that is cut off is delivered as far as it goes; vLLM leaves it in content";
export const keepsText = "text behind a call is content; vLLM drops it";

export const city = (name: string): NamedCall => ["get_weather", { city: name }];
export const weatherJson = (name: string, key = "arguments"): string =>
  `{"name": "get_weather", "${key}": {"city": "${name}"}}`;
