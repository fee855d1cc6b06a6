import { type CallTimes, type ClusterCosts, simulateCluster, simulatedDeployment } from "@octavo/cluster";
import type { Observation } from "@octavo/evals";
import {
  type FixProof,
  measuresOf,
  type PreparedReplay,
  proveFix,
  type RecordedWorkload,
  type ReplayedRequest,
} from "@octavo/optimize";
import { OctavoError } from "@octavo/protocol/errors";
import { Random } from "@octavo/statistics";
import { type PatchableFiles, patchedDeployment } from "./patched-files.js";
import { type ProofOptions, replayObservation } from "./proof-options.js";

/** What the simulator shows of a deployment. */
const simulated =
  /^\/(?:num_replicas|autoscaling_config(?:\/.+)?|slo_policy(?:\/.+)?|max_ongoing_requests|max_queued_requests|routing\/strategy|engine_kwargs\/max_num_(?:seqs|batched_tokens))$/;

export interface FleetProofOptions extends ProofOptions {
  readonly workload: RecordedWorkload;
  readonly files: PatchableFiles;
  readonly costs: ClusterCosts;
}

/**
 * Proves a patch of a deployment in virtual time, with the router, the autoscaler and the scheduler that serve. The first pair has the
 * recorded requests; others have the recorded arrivals, with lengths drawn from those recorded, and both of a pair have the same.
 * @throws OctavoError `invalid_option` for a setting that the deployment refuses or the simulator does not show
 */
export async function proveOnFleet(options: FleetProofOptions): Promise<FixProof> {
  const { entry, patch, workload, files, costs, seed, speedup } = options;
  const sides = {
    before: simulatedDeployment(patchedDeployment(files, {}), costs),
    after: simulatedDeployment(patchedDeployment(files, patch), costs),
  };
  const hidden = Object.keys(patch).find((name) => !simulated.test(name));
  if (hidden !== undefined || patch["/routing/strategy"] === "prefix_aware")
    throw new OctavoError(
      "invalid_option",
      `the patch sets ${hidden ?? "prefix_aware routing"}, which the simulator cannot show`,
      { param: hidden ?? "/routing/strategy" },
    );
  if (entry.kind === "answer")
    throw new OctavoError(
      "invalid_option",
      "a simulated fleet gives no answers: prove this one on the engine",
      {
        param: "cluster",
      },
    );
  const replay = (side: keyof typeof sides, pair: number): PreparedReplay => ({
    run: () => {
      const own = seed + pair;
      const calls = requestsOf(workload, pair, own).map(
        ({ atMs, promptTokens, cachedTokens, outputTokens }) => ({
          atS: atMs / 1000 / speedup,
          promptTokens: Math.max(1, promptTokens - cachedTokens),
          outputTokens: Math.max(1, outputTokens),
        }),
      );
      const { outcomes, replicaSeconds, endS } = simulateCluster({ ...sides[side], calls, seed: own });
      const times = new Map(outcomes.map((outcome) => [outcome.call, outcome]));
      return Promise.resolve({
        observations: calls.map((call, index) => observed(workload.requests[index]!, index, times.get(call))),
        computeMs: undefined,
        durationMs: endS * 1000,
        replicaSeconds,
      });
    },
    [Symbol.asyncDispose]: () => Promise.resolve(),
  });
  return proveFix({
    ...options,
    on: "simulator",
    measures: measuresOf(entry, [], 0),
    before: (pair) => Promise.resolve(replay("before", pair)),
    after: (pair) => Promise.resolve(replay("after", pair)),
    standard: { leastImprovement: options.leastImprovement },
    nowMs: Date.now(),
  });
}

/** Arrivals and tenants are the recording's; after the first pair each request has the lengths of any. */
function requestsOf({ requests }: RecordedWorkload, pair: number, seed: number): readonly ReplayedRequest[] {
  if (pair === 0) return requests;
  const random = new Random(seed);
  return requests.map((request) => {
    const { promptTokens, cachedTokens, outputTokens } = random.pick(requests);
    return { ...request, promptTokens, cachedTokens, outputTokens };
  });
}

function observed(
  { atMs, tenant, promptTokens, outputTokens }: ReplayedRequest,
  index: number,
  times: CallTimes | undefined,
): Observation {
  return replayObservation({
    caseId: String(index),
    tenant,
    scheduledEpochMs: atMs,
    firstTokenMs: times && (times.firstTokenS - times.call.atS) * 1000,
    durationMs: times === undefined ? 0 : (times.endS - times.call.atS) * 1000,
    gapsMs: times === undefined || times.longestGapS === 0 ? [] : [times.longestGapS * 1000],
    promptTokens,
    completionTokens: outputTokens,
    failureCode: times === undefined ? "queue_full" : undefined,
    finishReason: times === undefined ? undefined : "stop",
  });
}
