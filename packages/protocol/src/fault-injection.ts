import { z } from "zod";
import { listOf, maxTokenId, requestLimits } from "./fields.js";

const name = z.string().min(1).max(requestLimits.idLength);
const positive = z.number().gt(0);

/** A fault for a server that takes some (`--enable-fault-injection`); which fields go with which kind: docs/guide/fault-injection.md. */
export const faultInjectionRequest = z.strictObject({
  kind: z.enum(["evict", "preempt", "delay", "throttle"]),
  /** Running sequences of this request, by its `x-octavo-request-id`, or of this tenant. */
  request_id: name.nullish(),
  tenant: name.nullish(),
  prompt_tokens: listOf(z.int().min(0).max(maxTokenId), { min: 1, max: 1_048_576 }).nullish(),
  cache_salt: name.nullish(),
  probability: positive.max(1).nullish(),
  seed: z.int().min(0).nullish(),
  delay_ms: positive.nullish(),
  factor: z.number().gt(1).nullish(),
  duration_ms: positive.nullish(),
});

export type FaultInjectionRequest = z.output<typeof faultInjectionRequest>;

/** A fault that stands, or has just happened: what it was asked as, and how often it happened. */
export interface FaultInfo {
  readonly id: number;
  readonly kind: FaultInjectionRequest["kind"];
  readonly request_id?: string;
  readonly tenant?: string;
  /** How many there are. */
  readonly num_prompt_tokens?: number;
  readonly cache_salt?: string;
  readonly probability?: number;
  readonly seed?: number;
  readonly delay_ms?: number;
  readonly factor?: number;
  readonly duration_ms?: number;
  readonly remaining_ms?: number;
  readonly num_injected: number;
}

export interface FaultList {
  readonly faults: readonly FaultInfo[];
}
