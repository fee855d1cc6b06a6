import { OctavoError } from "@octavo/protocol";
import type { Exchange } from "../exchange/exchange.js";

/** Fields by which a request bounds what is generated, by operation; the first that is there counts. */
const limitFields: Readonly<Partial<Record<Exchange["operation"], readonly [string, ...string[]]>>> = {
  chat: ["max_completion_tokens", "max_tokens"],
  completions: ["max_tokens"],
  responses: ["max_output_tokens"],
  messages: ["max_tokens"],
};

/** Writes the limits into the request: the usual one where it names none, and none above the most. */
export function limitCompletion(
  exchange: Exchange,
  usual: number | undefined,
  most: number | undefined,
): void {
  const fields = limitFields[exchange.operation];
  if (fields === undefined) return;
  const { body } = exchange;
  const changes: Record<string, number> = {};
  let isBounded = false;
  for (const field of fields) {
    const asked = body.fields[field];
    if (typeof asked !== "number") continue;
    isBounded = true;
    if (most !== undefined && asked > most) changes[field] = most;
  }
  const unnamed = usual ?? most;
  // max_tokens, which older servers know too
  if (!isBounded && unnamed !== undefined) changes[fields.at(-1)!] = unnamed;
  if (Object.keys(changes).length > 0) body.change(changes);
}

/** Tokens that all choices together may have; 0 for operations that generate none, Infinity where nothing bounds them. */
export function completionTokensAtMost({ operation, body: { fields } }: Exchange): number {
  const named = limitFields[operation];
  if (named === undefined) return 0;
  const bounds = named.map((field) => fields[field]).filter((value) => typeof value === "number");
  if (bounds.length === 0) return Infinity;
  const choices = Math.max(numberOr(fields.n, 1), numberOr(fields.best_of, 1));
  const prompts =
    operation === "completions" && Array.isArray(fields.prompt) ? promptCount(fields.prompt) : 1;
  return Math.max(...bounds) * choices * prompts;
}

/** A list of texts or of lists of ids has that many prompts; a list of ids is one. */
const promptCount = (prompt: readonly unknown[]): number =>
  typeof prompt[0] === "number" ? 1 : Math.max(1, prompt.length);

const numberOr = (value: unknown, otherwise: number): number =>
  typeof value === "number" && value >= 1 ? Math.ceil(value) : otherwise;

/** For rules that count what a call may take at most. */
export function unboundedCall(rule: string): OctavoError {
  return new OctavoError(
    "invalid_request",
    `${rule} counts tokens, and nothing bounds this call's; send max_tokens (the gateway can set it: rate_limits.default_max_tokens).`,
    { param: "max_tokens" },
  );
}
