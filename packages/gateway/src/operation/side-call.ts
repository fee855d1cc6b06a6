import { performance } from "node:perf_hooks";
import { whenAborted } from "@octavo/protocol/abort";
import { OctavoError } from "@octavo/protocol";
import type { SideCall, WholeAnswer } from "../exchange/stage.js";
import { withFields } from "../exchange/request-body.js";
import { TargetAttempt } from "../relay/attempt.js";
import type { GatewayRuntime } from "./runtime.js";

const timeouts = { firstByteMs: 60_000, idleMs: 60_000 };

/** Calls one target for a stage: a shadow, a judge, an embedding. Throws the target's error. */
export async function makeSideCall(
  { target: name, model, operation, body, signal }: SideCall,
  runtime: GatewayRuntime | undefined,
  nowMs: () => number,
): Promise<WholeAnswer> {
  const target = runtime?.router.target(name);
  const targetModel = target?.modelName(model);
  if (runtime === undefined || target === undefined || targetModel === undefined)
    throw new OctavoError("no_target", `There is no target ${name} with a model ${model}.`);
  if (!target.admits(nowMs())) throw new OctavoError("no_target", `The target ${name} takes no calls now.`);
  signal?.throwIfAborted();
  const startedMs = performance.now();
  const attempt = new TargetAttempt({
    target,
    model,
    call: {
      operation,
      model: targetModel,
      isStream: false,
      fields: withFields(body, { stream: undefined, stream_options: undefined, model: targetModel }),
      bytes: undefined,
      apiVersion: target.config.api_version,
      basePath: target.basePath,
    },
    reason: "first",
    timeouts,
    maxAnswerBytes: runtime.config.limits.max_answer,
    maxEventBytes: runtime.config.limits.max_event,
    clock: { elapsedMs: () => performance.now() - startedMs },
    nowMs,
    predictedCachedTokens: undefined,
    expectedTokens: 0,
    addedHeaders: [],
  });
  const forget = whenAborted(signal, () => attempt.cancel());
  try {
    const start = await attempt.ready;
    if (start.kind !== "whole") throw new OctavoError("internal_error", "a call without stream was streamed");
    const { record } = attempt;
    return {
      status: start.status,
      json: start.json,
      target: name,
      model,
      usage: record.usage,
      costUsd: record.costUsd,
      firstByteMs: record.firstByteMs ?? 0,
      durationMs: record.endedMs ?? performance.now() - startedMs,
    };
  } finally {
    forget();
  }
}
