import * as fc from "fast-check";
import type { Fault, RequestFaults } from "../../faults/fault.js";
import type { SamplingParams } from "../../sampling/sampling-params.js";
import type { Account } from "../../scheduler/account.js";
import {
  type SchedulingPolicyName,
  schedulingPolicyNames,
} from "../../scheduler/policies/scheduling-policy.js";
import { plainParams } from "../fakes/engine-fixture.js";

/** A request of a random schedule. */
export interface ScheduledRequest {
  readonly kind: "generate" | "embed";
  readonly promptTokens: readonly number[];
  readonly params: SamplingParams;
  readonly pooling: "mean" | "last";
  /** Index of the adapter it runs under. */
  readonly adapter?: number | undefined;
  readonly priority: number;
  readonly account: Account;
  /** Steps after which it is submitted. */
  readonly arrivalStep: number;
  /** When its reader leaves: after a number of events, or by signal after a number of steps; undefined reads to the end. */
  readonly leaves: { readonly how: "return" | "signal"; readonly after: number } | undefined;
  readonly wantLogitsDigests?: boolean;
  /** Ignored unless the settings have faults. */
  readonly faults?: RequestFaults | undefined;
}

/** Engine settings of a schedule. */
export interface ScheduleSettings {
  readonly blockSize: number;
  /** Blocks beyond those of one sequence of full length. */
  readonly spareBlocks: number;
  readonly maxNumSeqs: number;
  readonly maxNumBatchedTokens: number;
  readonly enablePrefixCaching: boolean;
  readonly enableChunkedPrefill: boolean;
  readonly longPrefillTokenThreshold: number;
  readonly schedulingPolicy: SchedulingPolicyName;
  readonly maxLoras?: number;
  /** Running sequences to preempt before each step: one list of indices per step. */
  readonly preemptions: readonly (readonly number[])[];
  /** Drafts with mostly right tokens, made at once or by a drafter that takes time. */
  readonly drafts:
    | { readonly maxTokens: number; readonly isCostly: boolean; readonly seed: number }
    | undefined;
  /** Recurrent models only. */
  readonly numStateSlots?: number;
  readonly stateSnapshotInterval?: number;
  /** Faults to add after a number of steps; undefined disables fault injection. */
  readonly faults: readonly { readonly step: number; readonly fault: Fault }[] | undefined;
}

export interface ScheduleCase {
  readonly requests: readonly ScheduledRequest[];
  readonly settings: ScheduleSettings;
}

/** What the model under test can run. */
export interface CaseLimits {
  readonly vocabSize: number;
  readonly eosTokenIds: readonly number[];
  readonly maxModelLen: number;
  readonly maxRequests: number;
  /** Without, all rows are greedy and have no penalties. */
  readonly hasSampling: boolean;
  readonly adapters?: readonly unknown[] | undefined;
  readonly stateWidths?: unknown;
}

/** Prompts are prefixes of a few sources, so that many share prefixes of every length. */
function prompts(limits: CaseLimits): fc.Arbitrary<readonly number[]> {
  const length = fc.integer({ min: 1, max: Math.floor(limits.maxModelLen / 2) });
  const source = fc.integer({ min: 1, max: 3 });
  const tail = fc.array(fc.nat(limits.vocabSize - 1), { maxLength: 6 });
  return fc.tuple(source, length, tail).map(([from, count, own]) => {
    const shared = Array.from(
      { length: count },
      (_, position) => (from * 31 + position * (7 + from)) % limits.vocabSize,
    );
    return [...shared, ...own].slice(0, Math.floor(limits.maxModelLen / 2) + 4);
  });
}

function samplingParams(limits: CaseLimits): fc.Arbitrary<SamplingParams> {
  const common = {
    n: fc.oneof({ arbitrary: fc.constant(1), weight: 3 }, fc.integer({ min: 2, max: 4 })),
    maxTokens: fc.oneof(
      fc.integer({ min: 1, max: Math.floor(limits.maxModelLen / 2) - 4 }),
      fc.constant(undefined),
    ),
    logprobs: fc.constantFrom(undefined, undefined, 0, 3),
    promptLogprobs: fc.constantFrom(undefined, undefined, undefined, 0, 2),
    ignoreEos: fc.boolean(),
  };
  const token = fc.nat(limits.vocabSize - 1);
  const sampled = {
    temperature: fc.constantFrom(0, 0.7, 1.5),
    seed: fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
    repetitionPenalty: fc.constantFrom(1, 1, 1.3),
    frequencyPenalty: fc.constantFrom(0, 0, 0.5),
    presencePenalty: fc.constantFrom(0, 0, -0.5),
    minTokens: fc.integer({ min: 0, max: 5 }),
    logitBias: fc.option(
      fc
        .array(fc.tuple(token, fc.double({ min: -3, max: 3, noNaN: true })), { minLength: 1, maxLength: 4 })
        .map((bias) => new Map(bias)),
      { nil: undefined },
    ),
    stopTokenIds: fc.array(token, { maxLength: 2 }),
  };
  return fc
    .record(limits.hasSampling ? { ...common, ...sampled } : common)
    .map((drawn) => ({ ...plainParams, ...drawn }))
    .map((params) => ({
      ...params,
      minTokens: Math.min(params.minTokens, params.maxTokens ?? params.minTokens),
    }));
}

function requests(limits: CaseLimits): fc.Arbitrary<readonly ScheduledRequest[]> {
  const request = fc.record({
    kind: fc.constantFrom<ScheduledRequest["kind"][]>("generate", "generate", "generate", "embed"),
    promptTokens: prompts(limits),
    params: samplingParams(limits),
    pooling: fc.constantFrom<ScheduledRequest["pooling"][]>("mean", "last"),
    priority: fc.integer({ min: -2, max: 2 }),
    account: fc.record({
      tenant: fc.constantFrom("a", "a", "a", "b", "c"),
      lane: fc.constantFrom(0, 0, 1),
      weight: fc.constantFrom(1, 1, 4),
    }),
    arrivalStep: fc.oneof(fc.constant(0), fc.nat(20)),
    leaves: fc.option(
      fc.record({ how: fc.constantFrom<("return" | "signal")[]>("return", "signal"), after: fc.nat(12) }),
      { nil: undefined, freq: 3 },
    ),
    wantLogitsDigests: fc.boolean(),
    faults: fc.option(
      fc.record({
        preemptAtTokens: fc.array(fc.nat(20), { maxLength: 3 }),
        evictAtTokens: fc.array(fc.nat(20), { maxLength: 3 }),
      }),
      { nil: undefined, freq: 2 },
    ),
    ...(limits.adapters !== undefined && {
      adapter: fc.option(fc.nat(limits.adapters.length - 1), { nil: undefined, freq: 3 }),
    }),
  });
  return fc.array(request, { minLength: 1, maxLength: limits.maxRequests });
}

/** Faults that happen once, and faults that last. */
function faults(limits: CaseLimits): fc.Arbitrary<NonNullable<ScheduleSettings["faults"]>> {
  const forced = fc.record({
    kind: fc.constantFrom<("evict" | "preempt")[]>("evict", "preempt"),
    tenant: fc.constantFrom(undefined, "a", "b"),
    probability: fc.constantFrom(undefined, 0.3),
    seed: fc.nat(1000),
    durationMs: fc.constantFrom(undefined, undefined, 3_600_000),
  });
  const prefix = prompts(limits).map((tokens): Fault => ({
    kind: "evict",
    promptTokens: Int32Array.from(tokens),
  }));
  const slow = fc.constantFrom<Fault[]>(
    { kind: "delay", delayMs: 0.5, probability: 0.1 },
    { kind: "throttle", factor: 2, durationMs: 20 },
  );
  return fc.array(fc.record({ step: fc.nat(30), fault: fc.oneof(forced, prefix, slow) }), { maxLength: 6 });
}

function settings(limits: CaseLimits): fc.Arbitrary<ScheduleSettings> {
  return fc
    .record({
      blockSize: fc.constantFrom(1, 2, 3, 4, 8, 16),
      spareBlocks: fc.oneof(fc.nat(8), fc.nat(200)),
      maxNumSeqs: fc.oneof(fc.integer({ min: 1, max: 4 }), fc.constant(32)),
      maxNumBatchedTokens: fc.oneof(
        fc.integer({ min: 1, max: 16 }),
        fc.integer({ min: 1, max: 2 * limits.maxModelLen }),
      ),
      enablePrefixCaching: fc.boolean(),
      enableChunkedPrefill: fc.oneof({ arbitrary: fc.constant(true), weight: 3 }, fc.constant(false)),
      longPrefillTokenThreshold: fc.constantFrom(0, 1, 5, 16),
      schedulingPolicy: fc.constantFrom(...schedulingPolicyNames),
      preemptions: fc.array(fc.array(fc.nat(6), { maxLength: 2 }), { maxLength: 40 }),
      ...(limits.adapters !== undefined && { maxLoras: fc.integer({ min: 1, max: 3 }) }),
      ...(limits.stateWidths !== undefined && {
        numStateSlots: fc.oneof(fc.integer({ min: 1, max: 8 }), fc.constant(64)),
        stateSnapshotInterval: fc.constantFrom(1, 5, 16, 512),
      }),
      drafts: fc.option(
        fc.record({ maxTokens: fc.integer({ min: 1, max: 9 }), isCostly: fc.boolean(), seed: fc.nat() }),
        { nil: undefined, freq: 2 },
      ),
      faults: fc.option(faults(limits), { nil: undefined, freq: 2 }),
    })
    .map((drawn) => ({
      ...drawn,
      maxNumBatchedTokens: drawn.enableChunkedPrefill
        ? drawn.maxNumBatchedTokens
        : Math.max(drawn.maxNumBatchedTokens, limits.maxModelLen),
    }));
}

export function scheduleCases(limits: CaseLimits): fc.Arbitrary<ScheduleCase> {
  return fc.record({ requests: requests(limits), settings: settings(limits) });
}
