import { OctavoError } from "@octavo/protocol/errors";
import type { Fault, RequestFaults } from "./fault.js";

const maxMs = 3_600_000;
const maxDelayMs = 60_000;
const largestFactor = 100;
const maxTokens = 64;

/** Throws `invalid_request` for a value out of range, under its wire name. */
export function checkFault(fault: Fault): void {
  const { kind, durationMs } = fault;
  if (durationMs !== undefined) within("duration_ms", durationMs, 0, maxMs);
  if (kind === "delay") within("delay_ms", fault.delayMs, 0, maxDelayMs);
  if (kind === "throttle" && !(fault.factor > 1 && fault.factor <= largestFactor))
    throw invalid("factor", `more than 1 and at most ${largestFactor}`, fault.factor);
  if (kind !== "throttle") {
    const { probability, seed = 0 } = fault;
    if (probability !== undefined) within("probability", probability, 0, 1);
    if (!Number.isSafeInteger(seed) || seed < 0) throw invalid("seed", "an integer of at least 0", seed);
  }
  if (kind !== "evict") return;
  const { promptTokens, requestId, tenant, cacheSalt } = fault;
  if (promptTokens?.length === 0) throw invalid("prompt_tokens", "at least one token", "none");
  if (promptTokens !== undefined && (requestId !== undefined || tenant !== undefined))
    throw invalid("prompt_tokens", "left out where a request or a tenant is named", "given");
  if (cacheSalt !== undefined && (promptTokens === undefined || cacheSalt === ""))
    throw invalid(
      "cache_salt",
      "the salt of the requests that prompt_tokens are of",
      JSON.stringify(cacheSalt),
    );
}

/** The same for faults that come with a request. */
export function checkRequestFaults(faults: RequestFaults): void {
  for (const [name, tokens = []] of [
    ["preempt_at_token", faults.preemptAtTokens],
    ["evict_at_token", faults.evictAtTokens],
  ] as const) {
    if (tokens.length > maxTokens)
      throw invalid(`octavo.faults.${name}`, `at most ${maxTokens} numbers`, tokens.length);
    const stray = tokens.find((token) => !Number.isSafeInteger(token) || token < 0);
    if (stray !== undefined) throw invalid(`octavo.faults.${name}`, "integers of at least 0", stray);
  }
}

function within(param: string, value: number, above: number, most: number): void {
  if (value > above && value <= most) return;
  throw invalid(param, `a number above ${above} and at most ${most}`, value);
}

function invalid(param: string, expected: string, got: number | string): OctavoError {
  return new OctavoError("invalid_request", `${param}: expected ${expected}, got ${got}`, { param });
}
