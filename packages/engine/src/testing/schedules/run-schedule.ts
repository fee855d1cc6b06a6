import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import type { LoadedAdapter } from "../../adapters/adapter.js";
import type { GenerationEvent } from "../../api.js";
import { createEngine } from "../../create-engine.js";
import type { EngineOptions, RunningEngine } from "../../engine-options.js";
import type { FaultKind } from "../../faults/fault.js";
import { collect, type CollectedSequence } from "../fakes/engine-fixture.js";
import type { SpeculationOptions } from "../../speculation/speculation.js";
import { OracleDrafter } from "../drafters/oracle-drafter.js";
import type { ScheduledRequest, ScheduleSettings } from "./schedule-cases.js";

/** The options shared by the engines of all schedules of one model. */
export type ModelEngineOptions = Pick<
  EngineOptions,
  "backend" | "program" | "tokenizer" | "vocabSize" | "hiddenSize" | "eosTokenIds" | "kv" | "maxModelLen"
> & {
  readonly adapters?: readonly LoadedAdapter[] | undefined;
  /** The model's own head drafts, in place of one that knows the outcome. */
  readonly createDrafter?: SpeculationOptions["createDrafter"] | undefined;
  /** Recurrent models only. */
  readonly stateWidths?: ((maxDraftTokens: number) => readonly number[]) | undefined;
};

/** The result of a request, down to the bits of the logits. */
export interface ScheduleOutcome {
  readonly sequences: readonly CollectedSequence[];
  readonly promptLogprobs: readonly unknown[] | undefined;
  /** As the engine gives them, if requested. */
  readonly logitsDigests: readonly (readonly string[])[] | undefined;
  /** Digest of the logits by `sequence:position`. */
  readonly logits: ReadonlyMap<string, string>;
  readonly embedding: Float32Array | undefined;
  /** The reader left early. */
  readonly isPartial: boolean;
}

/** Alone, unchunked, without cache: what every schedule must reproduce. */
export function soloSettings(maxModelLen: number): ScheduleSettings {
  return {
    blockSize: 16,
    spareBlocks: 4 * maxModelLen,
    maxNumSeqs: 8,
    maxNumBatchedTokens: 2 * maxModelLen,
    enablePrefixCaching: false,
    enableChunkedPrefill: true,
    longPrefillTokenThreshold: 0,
    schedulingPolicy: "priority",
    preemptions: [],
    drafts: undefined,
    faults: undefined,
    numStateSlots: 4 * 8,
    stateSnapshotInterval: 512,
  };
}

/**
 * Runs requests through one engine, with drafts from their `expected` outcomes if the settings have drafts. Checks after every step
 * that blocks are conserved, and at the end that all were returned.
 */
export async function runSchedule(
  parts: ModelEngineOptions,
  settings: ScheduleSettings,
  requests: readonly ScheduledRequest[],
  expected: readonly ScheduleOutcome[] = [],
  onFault?: (kind: FaultKind) => void,
): Promise<ScheduleOutcome[]> {
  const { spareBlocks, preemptions, drafts, faults, numStateSlots = 1, ...options } = settings;
  const { stateWidths, createDrafter, ...given } = parts;
  const maxDraftTokens = drafts?.maxTokens ?? 0;
  const drafter =
    drafts &&
    new OracleDrafter((id, index) => expected[Number(id)]?.sequences[index]?.tokens, {
      vocabSize: parts.vocabSize,
      ...drafts,
    });
  const logits = requests.map(() => new Map<string, string>());
  let step = 0;
  const engine = createEngine({
    ...given,
    ...options,
    ...(stateWidths !== undefined && {
      states: { numSlots: numStateSlots, maxDraftTokens, widths: stateWidths(maxDraftTokens) },
    }),
    enableFaultInjection: faults !== undefined,
    numBlocks: Math.ceil(parts.maxModelLen / options.blockSize) + spareBlocks,
    ...(drafts !== undefined &&
      drafter !== undefined && {
        speculation: {
          createDrafter: createDrafter ?? (() => drafter),
          numSpeculativeTokens: drafts.maxTokens,
          adaptive: false,
        },
      }),
    hooks: {
      choosePreemptions: () => preemptions[step] ?? [],
      afterStep: (running) => {
        step += 1;
        running.checkIntegrity();
        for (const due of faults ?? []) if (due.step === step) running.faults?.add(due.fault);
        running.checkIntegrity();
        const { freeBlocks, cachedBlocks, totalBlocks, kvCacheUsage } = running.stats;
        assert.equal(freeBlocks + cachedBlocks + Math.round(kvCacheUsage * totalBlocks), totalBlocks);
      },
      onLogits: (requestId, index, position, row) => {
        const seen = logits[Number(requestId)]!;
        const key = `${index}:${position}`;
        assert(!seen.has(key), `position ${key} of request ${requestId} was delivered twice`);
        seen.set(
          key,
          createHash("sha256")
            .update(new Uint8Array(row.buffer, row.byteOffset, row.byteLength))
            .digest("hex"),
        );
      },
    },
  });
  if (onFault !== undefined) engine.observe({ onFault });
  const stepReached = async (target: number): Promise<void> => {
    const isDue = (): boolean =>
      step >= target || engine.stats.running + engine.stats.waiting === 0 || engine.failure !== undefined;
    while (!isDue()) await new Promise((resolve) => setImmediate(resolve));
  };
  const settled = await Promise.allSettled(
    requests.map(async (request, index) => {
      await stepReached(request.arrivalStep);
      return run(
        engine,
        parts.adapters?.[request.adapter ?? -1],
        request,
        index,
        logits[index]!,
        stepReached,
        settings,
      );
    }),
  );
  assert.equal(engine.failure, undefined);
  await engine.drain(0);
  engine.checkIntegrity();
  assert.equal(engine.stats.freeBlocks + engine.stats.cachedBlocks, engine.stats.totalBlocks);
  assert.equal(drafter?.numSequences ?? 0, 0, "the drafter was not told that a sequence ended");
  await engine[Symbol.asyncDispose]();
  return settled.map((result) => {
    if (result.status === "rejected") throw result.reason;
    return result.value;
  });
}

async function run(
  engine: RunningEngine,
  adapter: LoadedAdapter | undefined,
  request: ScheduledRequest,
  index: number,
  logits: ReadonlyMap<string, string>,
  stepReached: (step: number) => Promise<void>,
  { schedulingPolicy, faults }: ScheduleSettings,
): Promise<ScheduleOutcome> {
  const { leaves, pooling } = request;
  const requestId = String(index);
  const promptTokens = Int32Array.from(request.promptTokens);
  const nothing = {
    sequences: [],
    promptLogprobs: undefined,
    logitsDigests: undefined,
    logits,
    embedding: undefined,
    isPartial: true,
  };
  const controller = new AbortController();
  if (leaves?.how === "signal")
    void stepReached(request.arrivalStep + leaves.after).then(() => controller.abort());
  if (request.kind === "embed") {
    const embedded = engine.embed(
      { kind: "embed", requestId, promptTokens, pooling, normalize: true, adapter, account: request.account },
      controller.signal,
    );
    return embedded.then(
      ({ embedding }) => ({ ...nothing, embedding, isPartial: false }),
      (error: unknown) => {
        if (controller.signal.aborted) return nothing;
        throw error;
      },
    );
  }
  const events = engine.generate(
    {
      kind: "generate",
      requestId,
      promptTokens,
      adapter,
      params: request.params,
      priority: schedulingPolicy === "priority" ? request.priority : 0,
      account: request.account,
      wantLogitsDigests: request.wantLogitsDigests === true,
      ...(faults !== undefined && { faults: request.faults }),
    },
    controller.signal,
  );
  const numEvents = leaves?.how === "return" ? leaves.after : Number.POSITIVE_INFINITY;
  const collected = await collect(atMost(events, numEvents));
  return {
    sequences: collected.sequences,
    promptLogprobs: collected.promptLogprobs,
    logitsDigests: collected.logitsDigests,
    logits,
    embedding: undefined,
    isPartial:
      collected.usage === undefined ||
      collected.sequences.some((sequence) => sequence?.finishReason === "abort"),
  };
}

async function* atMost(
  events: AsyncIterable<GenerationEvent>,
  count: number,
): AsyncGenerator<GenerationEvent> {
  let left = count;
  for await (const event of events) {
    if (left <= 0) return;
    left -= 1;
    yield event;
  }
}
