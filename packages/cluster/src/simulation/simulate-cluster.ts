import { planAttempts, type StrategyName } from "@octavo/gateway/parts";
import { Random } from "@octavo/statistics";
import { type AutoscalingConfig } from "../autoscaling/autoscaling-config.js";
import { DeploymentScaler } from "../autoscaling/deployment-scaler.js";
import type { SloConfig } from "../autoscaling/slo-policy.js";
import { EventHeap } from "./event-heap.js";
import { SimulatedHosts } from "./simulated-hosts.js";
import { type CallTimes, SimulatedReplica } from "./simulated-replica.js";
import type { ClusterCosts, SimulatedCall } from "./step-costs.js";

export interface ClusterSimulation {
  /** By time of arrival. */
  readonly calls: readonly SimulatedCall[];
  readonly costs: ClusterCosts;
  readonly autoscaling: AutoscalingConfig;
  /** Instead of Ray's rule. */
  readonly slo?: SloConfig | undefined;
  readonly maxOngoing: number;
  /** -1 is no limit. */
  readonly maxQueued: number;
  /** Default `power_of_two`. Prompts have no text here: `prefix_aware` finds nothing cached. */
  readonly strategy?: StrategyName;
  readonly seed: number;
  /** Milliseconds since 1970 at the first moment. */
  readonly epochMs?: number;
}

export interface ClusterOutcome {
  /** In order of arrival; calls that were refused have none. */
  readonly outcomes: readonly CallTimes[];
  readonly numRefused: number;
  /** From the decision to start a replica to its end. */
  readonly replicaSeconds: number;
  readonly peakReplicas: number;
  readonly endS: number;
  /** Replicas wanted, whenever that changed. */
  readonly targets: readonly (readonly [number, number])[];
}

/** The control loop; Ray's is ten times a second, and its delays are multiples of this. */
const loopS = 0.1;

/**
 * A deployment in virtual time: the gateway's routing function, the autoscaling of the cluster's controller and the engine's scheduler,
 * with steps that take what was measured. The same input gives the same result on every machine.
 */
export function simulateCluster(simulation: ClusterSimulation): ClusterOutcome {
  const { calls, costs, autoscaling, slo, maxOngoing, maxQueued, seed, epochMs = 0 } = simulation;
  const { strategy = "power_of_two" } = simulation;
  const random = new Random(seed);
  const scaler = new DeploymentScaler(autoscaling, slo);
  const longest = calls.reduce((most, { promptTokens }) => Math.max(most, promptTokens), 1);
  const prompt = new Int32Array(longest);
  const steps = new EventHeap<SimulatedReplica>();
  const ready: SimulatedReplica[] = [];
  const starting: number[] = [];
  const leaving = new Set<SimulatedReplica>();
  const hosts = new SimulatedHosts(costs.replicas_per_host);
  const queue: CallTimes[] = [];
  let queueStart = 0;
  const outcomes: CallTimes[] = [];
  const targets: [number, number][] = [];
  const tokens = { queued: 0, running: 0, arrived: 0, finished: 0 };
  const ended: CallTimes[] = [];
  let turn = 0;
  let numRefused = 0;
  let numReplicas = 0;
  let numOngoing = 0;
  let numFree = 0;
  let replicaSeconds = 0;
  let peakReplicas = 0;
  let nextTickS = 0;
  let nextCall = 0;
  let nowS = 0;
  let changedS = 0;
  let target = -1;

  const countReplicas = (): number => ready.length + starting.length + leaving.size;
  const account = (): void => {
    replicaSeconds += (nowS - changedS) * countReplicas();
    changedS = nowS;
  };
  const begin = (outcome: CallTimes): void => {
    const input = {
      promptTokens: outcome.call.promptTokens,
      maxTokens: outcome.call.outputTokens,
      maxImbalance: 0,
      turn,
    };
    turn += 1;
    const [first] = planAttempts([{ strategy, states: ready }], {
      ...input,
      random: () => random.uniform(),
      sessionKey: undefined,
    });
    const replica = byName.get(first?.target ?? "");
    if (replica === undefined) return;
    numFree -= 1;
    const size = sizeOf(outcome.call);
    tokens.running += size;
    const wasIdle = replica.stepEndS === Number.POSITIVE_INFINITY;
    replica.add(outcome, prompt, nowS);
    if (wasIdle) steps.push(replica.stepEndS, replica);
  };
  const byName = new Map<string, SimulatedReplica>();
  const serveQueue = (): void => {
    for (let waiting = queue.length - queueStart; waiting > 0; waiting -= 1) {
      if (numFree === 0) break;
      const next = queue[queueStart];
      queueStart += 1;
      if (next === undefined) break;
      tokens.queued -= sizeOf(next.call);
      begin(next);
    }
    if (queueStart > 10_000 && queueStart * 2 > queue.length) {
      queue.splice(0, queueStart);
      queueStart = 0;
    }
  };
  const arrive = (call: SimulatedCall): void => {
    tokens.arrived += sizeOf(call);
    const waiting = queue.length - queueStart;
    if (numFree === 0 && maxQueued >= 0 && waiting >= maxQueued) {
      numRefused += 1;
      return;
    }
    const outcome: CallTimes = {
      call,
      firstTokenS: Number.NaN,
      endS: Number.NaN,
      longestGapS: 0,
      lastTokenS: 0,
    };
    outcomes.push(outcome);
    numOngoing += 1;
    if (numFree > 0) begin(outcome);
    else {
      queue.push(outcome);
      tokens.queued += sizeOf(call);
    }
  };
  const admitStarted = (): void => {
    while ((starting[0] ?? Number.POSITIVE_INFINITY) <= nowS) {
      starting.shift();
      const replica = new SimulatedReplica(`r${numReplicas}`, costs, maxOngoing, hosts.place());
      numReplicas += 1;
      ready.push(replica);
      byName.set(replica.target, replica);
      numFree += maxOngoing;
    }
  };
  const tick = (): void => {
    account();
    admitStarted();
    const wanted = scaler.decide({
      nowS,
      epochMs: epochMs + nowS * 1000,
      numReady: ready.length,
      ongoing: numOngoing,
      tokens,
    });
    if (wanted !== target) targets.push([nowS, wanted]);
    target = wanted;
    // the load begins when the deployment runs
    const startS = nowS === 0 ? 0 : costs.cold_start_s;
    while (ready.length + starting.length < wanted) starting.push(nowS + startS);
    admitStarted();
    while (ready.length + starting.length > wanted && starting.length > 0) starting.pop();
    while (ready.length > wanted) {
      const replica = ready.pop();
      if (replica === undefined) break;
      replica.isLeaving = true;
      numFree -= maxOngoing - replica.outstanding;
      byName.delete(replica.target);
      if (replica.outstanding > 0) leaving.add(replica);
      else replica.host.numReplicas -= 1;
    }
    peakReplicas = Math.max(peakReplicas, countReplicas());
    serveQueue();
  };

  while (nextCall < calls.length || numOngoing > 0) {
    const callS = calls[nextCall]?.atS ?? Number.POSITIVE_INFINITY;
    nowS = Math.min(callS, steps.nextS, nextTickS);
    if (nowS === nextTickS) {
      tick();
      nextTickS += loopS;
    } else if (nowS === callS) {
      const call = calls[nextCall];
      nextCall += 1;
      if (call !== undefined) arrive(call);
    } else {
      const replica = steps.pop();
      if (replica === undefined) break;
      ended.length = 0;
      replica.endStep(ended);
      if (replica.stepEndS < Number.POSITIVE_INFINITY) steps.push(replica.stepEndS, replica);
      for (const { call } of ended) {
        numOngoing -= 1;
        tokens.running -= sizeOf(call);
        tokens.finished += sizeOf(call);
        if (!replica.isLeaving) numFree += 1;
      }
      if (replica.isLeaving && replica.outstanding === 0) {
        account();
        leaving.delete(replica);
        replica.host.numReplicas -= 1;
      }
      if (ended.length > 0) serveQueue();
    }
  }
  account();
  return { outcomes, numRefused, replicaSeconds, peakReplicas, endS: nowS, targets };
}

function sizeOf({ promptTokens, outputTokens }: SimulatedCall): number {
  return promptTokens + outputTokens;
}
