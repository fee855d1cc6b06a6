import { asNumber, asString, OctavoError } from "@octavo/protocol";
import { type LoggedCall, loggedCalls } from "../errors/gateway-log.js";
import type { ClusterMeasures, ReplayMeasure } from "./measures.js";
import { type RecordedTarget, recordedTargets } from "./recorded-targets.js";
import {
  type RecordedWorkload,
  type ReplayedRequest,
  stretchOf,
  usualOutputTokens,
  usualPromptTokens,
} from "./recorded-workload.js";

/** A line of the gateway's access log as a call to send again. */
export interface GatewayRequest extends ReplayedRequest {
  readonly callId: string;
  /** When it was recorded, ms since 1970. */
  readonly epochMs: number;
  readonly model: string;
  readonly isStream: boolean;
  readonly keyId: string | undefined;
}

/** Calls that a gateway logged, with what each of its targets did then. */
export interface GatewayWorkload extends RecordedWorkload {
  readonly requests: readonly GatewayRequest[];
  readonly targets: ReadonlyMap<string, RecordedTarget>;
  readonly measures: ClusterMeasures;
}

export interface GatewayWorkloadOptions {
  readonly cause: string;
  /** Routes whose calls are measured; all where there are none. */
  readonly routes: readonly string[] | undefined;
  /** Traces of the lines that have the cluster's findings. */
  readonly found: ReadonlySet<string>;
  readonly mostRequests: number;
}

/**
 * Of the gateway's log the stretch of at most `mostRequests` chat calls that has most of the cluster. All calls of the cluster's routes
 * are measured: calls that were picked because a target failed them look better with any change.
 * @throws OctavoError `dataset_invalid` where no call of the log is of the cluster
 */
export function recordedGateway(
  lines: Iterable<unknown>,
  { cause, routes = [], found, mostRequests }: GatewayWorkloadOptions,
): GatewayWorkload {
  const logged = loggedCalls(lines);
  const calls = logged
    .filter(
      ({ fields }) =>
        fields["operation"] === "chat" && asString(fields["model"]) !== undefined && wouldReachTarget(fields),
    )
    .map((call) => ({ call, isOfCluster: found.has(traceOf(call)) }))
    .toSorted((a, b) => a.call.atMs - b.call.atMs);
  const stretch = stretchOf(calls, mostRequests);
  const ofCluster = stretch.filter(({ isOfCluster }) => isOfCluster);
  if (ofCluster.length === 0)
    throw new OctavoError(
      "dataset_invalid",
      "none of the recorded chat calls is of this cluster: give the log that it was found in",
      { param: "gateway-log" },
    );
  const beginMs = stretch[0]!.call.atMs;
  const counted = stretch.filter(({ call }) => asNumber(call.fields["completion_tokens"]) !== undefined);
  let turn = 0;
  const requests = stretch.map(({ call }): GatewayRequest => {
    const { fields, atMs } = call;
    const lengths =
      asNumber(fields["completion_tokens"]) === undefined ? counted[turn++ % counted.length] : undefined;
    const tokens = (name: string): number | undefined =>
      asNumber(fields[name]) ?? asNumber(lengths?.call.fields[name]);
    return {
      callId: idOf(call),
      epochMs: atMs,
      atMs: atMs - beginMs,
      tenant: asString(fields["tenant"]),
      keyId: asString(fields["key_id"]),
      model: asString(fields["model"]) ?? "",
      isStream: fields["stream"] === true,
      asked: undefined,
      promptTokens: tokens("prompt_tokens") ?? usualPromptTokens,
      cachedTokens: tokens("cached_tokens") ?? 0,
      outputTokens: Math.max(1, tokens("completion_tokens") ?? usualOutputTokens),
      isOfCluster: routes.length === 0 || routes.includes(String(fields["route"])),
    };
  });
  const failed = ofCluster.filter(({ call }) => call.fields["error"] !== undefined).length;
  return {
    requests,
    numRecorded: logged.length,
    numWithPrompts: 0,
    targets: recordedTargets(logged, beginMs),
    measures: gatewayMeasures(cause, 2 * failed > ofCluster.length),
  };
}

/** What the stages that a replay keeps refuse before a target is asked. */
const refusedInReplay: ReadonlySet<unknown> = new Set([
  "rate_limit_exceeded",
  "overloaded",
  "no_target",
  "target_unreachable",
]);

/** Calls that the cache answered, or a guardrail or a budget refused, brought targets no load; without those stages they would. */
function wouldReachTarget({ target, attempts, error }: LoggedCall["fields"]): boolean {
  const isAsked = target !== undefined || (Array.isArray(attempts) && attempts.length > 0);
  return isAsked || refusedInReplay.has(error);
}

function idOf({ fields }: LoggedCall): string {
  return String(fields["request_id"]);
}

/** As a finding names it. */
function traceOf(call: LoggedCall): string {
  return asString(call.fields["trace_id"]) ?? idOf(call);
}

/** As the score of an observation: whether no target failed an attempt of the call. */
export const unfailedScore = "unfailed";

const failedCalls: ReplayMeasure = {
  name: "failed",
  unit: "share",
  of: ({ failureCode }) => Number(failureCode !== undefined),
};
const failedAttempts: ReplayMeasure = {
  name: "failed by a target",
  unit: "share",
  of: ({ scores }) => 1 - (scores[unfailedScore] ?? 1),
};
const firstByte: ReplayMeasure = { name: "first byte", unit: "ms", of: ({ firstTokenMs }) => firstTokenMs };
const duration: ReplayMeasure = {
  name: "duration",
  unit: "ms",
  of: ({ failureCode, durationMs }) => (failureCode === undefined ? durationMs : undefined),
};

/** What waiting for a target costs is time. */
const slowCauses: ReadonlySet<string> = new Set(["slow_target", "target_timeout"]);

/**
 * What became of most of the cluster's calls: they failed; or others answered them late, or after attempts that were for nothing.
 */
function gatewayMeasures(cause: string, haveFailed: boolean): ClusterMeasures {
  if (haveFailed) return { target: failedCalls, guards: [], reported: [failedAttempts, firstByte, duration] };
  return slowCauses.has(cause)
    ? { target: firstByte, guards: [failedCalls, duration], reported: [failedAttempts] }
    : { target: failedAttempts, guards: [failedCalls, firstByte], reported: [duration] };
}
