import { inGroup, option } from "@octavo/protocol/options";
import { schedulingPolicyNames } from "../scheduler/policies/scheduling-policy.js";

/** Options that the engine takes as they are. Adding one is a row here and the code that reads it. */
export const schedulingOptions = inGroup("Engine", {
  /** Sequences that run at the same time. */
  maxNumSeqs: option.integer("--max-num-seqs <n>", "sequences running at once", { min: 1, default: 256 }),
  /** Tokens computed in one step. */
  maxNumBatchedTokens: option.integer("--max-num-batched-tokens <tokens>", "token budget of a step", {
    min: 1,
    default: 2048,
  }),
  /** Requests that may wait for admission; further ones are rejected with `queue_full`. */
  maxQueuedRequests: option.integer("--max-queued-requests <n>", "waiting requests before 429", {
    min: 0,
    aliases: ["--max-num-queued-reqs"],
    default: 1024,
  }),
  /** Prompt tokens of all waiting requests together; 0 is no limit. */
  maxQueuedTokens: option.integer(
    "--max-queued-tokens <tokens>",
    "prompt tokens of the waiting requests before 429",
    { min: 0, aliases: ["--max-num-queued-tokens"], default: 0, defaultText: "0, no limit" },
  ),
  /** The same limit for the requests of one tenant, whose account may say otherwise; 0 is no limit. */
  maxQueuedRequestsPerTenant: option.integer(
    "--max-queued-requests-per-tenant <n>",
    "waiting requests of one tenant before 429",
    { min: 0, default: 0, defaultText: "0, no limit", group: "Tenants" },
  ),
  /** The same limit for the requests of one tenant, whose account may say otherwise; 0 is no limit. */
  maxQueuedTokensPerTenant: option.integer(
    "--max-queued-tokens-per-tenant <tokens>",
    "prompt tokens of one tenant's waiting requests before 429",
    { min: 0, default: 0, defaultText: "0, no limit", group: "Tenants" },
  ),
  /** Share the KV cache of equal prompt prefixes. */
  enablePrefixCaching: option.toggle("--[no-]enable-prefix-caching", "share the KV cache of equal prefixes"),
  /**
   * Only for models with recurrent layers: tokens after which a copy of their state is kept, so that a later request with the same prefix can
   * go on from there. Copies are kept at the end of every prompt and where prefixes parted, too. Fewer tokens take more memory bandwidth.
   */
  stateSnapshotInterval: option.integer(
    "--state-snapshot-interval <tokens>",
    "tokens between cached copies of recurrent state, of models that have any",
    { min: 1, default: 512 },
  ),
  /** Split long prompts over several steps; without it `maxNumBatchedTokens` must hold `maxModelLen`. */
  enableChunkedPrefill: option.toggle(
    "--[no-]enable-chunked-prefill",
    "split long prompts over several steps",
  ),
  /**
   * Prompt tokens that one sequence may take of a step while other prompts are waiting for some of it: keeps short prompts from queueing
   * behind a long one without leaving budget unused. 0 is off.
   */
  longPrefillTokenThreshold: option.integer(
    "--long-prefill-token-threshold <tokens>",
    "prompt tokens that one request may take of a step while others wait",
    { min: 0, defaultText: "a quarter of --max-num-batched-tokens; 0 is off" },
  ),
  /** Prompts above that threshold that are prefilled side by side while other requests want part of the budget. 0 is no limit. */
  maxLongPartialPrefills: option.integer(
    "--max-long-partial-prefills <n>",
    "prompts above that threshold prefilled side by side while others wait",
    { min: 0, defaultText: "2 with the fair policy, else 0, no limit" },
  ),
  /**
   * Milliseconds that a step with prompt tokens may take while others generate: bounds the inter-token gaps of running streams.
   * Prompts go on by at least a token a step: where steps take as long without prompts, those add a twentieth or one token. 0 is no
   * limit. Needs chunked prefill.
   */
  maxPrefillStepMs: option.integer(
    "--max-prefill-step-ms <ms>",
    "milliseconds of a step with prompt tokens while others generate; 0 is no limit",
    { min: 0, default: 200 },
  ),
  /** Which requests are admitted first. */
  schedulingPolicy: option.choice(
    schedulingPolicyNames,
    "--scheduling-policy <name>",
    "who is served first: by arrival, by priority, or fairly between tenants",
    { default: "fcfs" },
  ),
  /**
   * Requests without a seed draw theirs from this one and the number of such requests before: a server that is asked the same in the
   * same order answers the same. Without it they draw it by chance.
   */
  seed: option.integer("--seed <n>", "draw the seeds of requests that have none from this one", {
    min: 0,
    defaultText: "by chance",
  }),
  /** While less of the machine's memory is free, requests are rejected with `overloaded`. */
  minFreeMemoryBytes: option.bytes(
    "--min-free-memory <size>",
    "reject requests while less of the machine's memory is free, e.g. 512MiB",
    { default: 0, defaultText: "0, never" },
  ),
  /** A file that outlives the process: requests that were being computed at two crashes are rejected with `request_quarantined`. */
  crashJournal: option.text(
    "--crash-journal <file>",
    "reject requests in flight at two crashes; this file remembers who was in flight",
    { defaultText: "none" },
  ),
  /**
   * Time each kind of op of the model's steps, for `/metrics` and `onStep` of `engine.observe`. On a GPU each kind gets passes of its own, which makes
   * steps slower. Drafting is not timed.
   */
  opTimes: option.toggle("--op-times", "tell in /metrics what each kind of op takes; slows steps on GPUs"),
  /** Let requests make the engine evict, preempt, wait and be slow. */
  enableFaultInjection: option.toggle(
    "--enable-fault-injection",
    "let requests make the engine evict, preempt, wait and be slow; for tests and evaluations only",
    { group: "Faults" },
  ),
});

/** Errors name options as vLLM's configuration does. */
export function paramOf(key: string): string {
  return key.replace(/Bytes$/, "").replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
