import {
  asymptoticMeanSequence,
  type Interval,
  MeanEProcess,
  type MeanEvidence,
  noMeanEvidence,
} from "@octavo/statistics";
import { type GateName, isObserved } from "./gates.js";
import type { RolloutConfig } from "./rollout-config.js";

/** `held`: stays at its stage until a person decides; it is rolled back by evidence all the same. */
export type RolloutStatus = "running" | "held" | "rolled_back" | "promoted";

interface GateEvidence {
  /** That the canary is worse than tolerated; over the whole rollout. */
  readonly harm: MeanEvidence;
  /** That it is less than a margin worse; in this stage. */
  readonly fit: MeanEvidence;
}

/** Plain data: stored, sent to other instances and read back as it is. */
export interface RolloutState {
  readonly status: RolloutStatus;
  /** Index of the stage. */
  readonly stage: number;
  readonly stageSinceMs: number;
  readonly stagePairs: number;
  readonly pairs: number;
  readonly gates: Readonly<Record<string, GateEvidence>>;
}

/** What the machine is told. Times in milliseconds since 1970. */
export type RolloutEvent =
  /** Both arms answered the same request: how much better the canary did, by gate. */
  | { readonly type: "pair"; readonly atMs: number; readonly differences: Readonly<Record<string, number>> }
  | { readonly type: "tick"; readonly atMs: number }
  | {
      readonly type: "command";
      readonly atMs: number;
      readonly command: "promote" | "hold" | "resume" | "rollback" | "restart";
      readonly by: string;
      readonly reason: string;
    };

/** What a gate knew when a decision was made. */
export interface GateSummary {
  readonly gate: string;
  /** Over the whole rollout. */
  readonly pairs: number;
  readonly meanDifference: number | undefined;
  /** Asymptotic, valid at every look, 95 %. */
  readonly interval: Interval | undefined;
  /** E-values: evidence against "no worse than tolerated" and, in this stage, against "worse by the margin". */
  readonly harm: number;
  readonly fit: number;
}

/** A line of the journal: what was decided, by whom, and on what it rests. */
export interface RolloutDecision {
  readonly atMs: number;
  readonly rollout: string;
  readonly decision: "start" | "promote" | "complete" | "hold" | "resume" | "rollback" | "restart";
  /** `evidence`, or who gave the command. */
  readonly by: string;
  readonly reason: string;
  readonly fromStage: number;
  readonly toStage: number;
  readonly status: RolloutStatus;
  readonly pairs: number;
  readonly stagePairs: number;
  readonly gates: readonly GateSummary[];
  /** E-values from which harm rolls back and fit promotes. */
  readonly harmThreshold: number;
  readonly fitThreshold: number;
}

export interface RolloutStep {
  readonly state: RolloutState;
  readonly decision: RolloutDecision | undefined;
}

export function startRollout(config: RolloutConfig, atMs: number): RolloutState {
  const gates = Object.fromEntries(
    gateKeys(config).map((gate) => [gate, { harm: noMeanEvidence, fit: noMeanEvidence }]),
  );
  return { status: "running", stage: 0, stageSinceMs: atMs, stagePairs: 0, pairs: 0, gates };
}

export function gateKeys({ gates }: RolloutConfig): string[] {
  return gates.map((gate) => gate.name ?? gate.check);
}

/**
 * The next state and what was decided, if anything. Pure: a journal of events gives the same decisions again.
 *
 * Rollback: the weighted mean of the gates' e-values against "no worse than tolerated" reaches 1 / rollback_alpha. A mean of e-values is
 * one (Vovk and Wang 2021), so a canary that is no worse by any gate is ever rolled back with probability rollback_alpha at most.
 * Promotion: in this stage every gate's e-value against "worse by the margin" reaches 1 / promote_alpha; one worse by one margin
 * would have to pass that gate, so no correction is needed.
 */
export function stepRollout(config: RolloutConfig, state: RolloutState, event: RolloutEvent): RolloutStep {
  if (event.type === "command") return command(config, state, event);
  if (state.status === "rolled_back" || state.status === "promoted") return { state, decision: undefined };
  const observed = event.type === "pair" ? observe(config, state, event.differences) : state;
  return decide(config, observed, event.atMs);
}

function observe(
  config: RolloutConfig,
  state: RolloutState,
  differences: Readonly<Record<string, number>>,
): RolloutState {
  const gates: Record<string, GateEvidence> = {};
  for (const [index, gate] of gateKeys(config).entries()) {
    const before = state.gates[gate] ?? { harm: noMeanEvidence, fit: noMeanEvidence };
    const difference = differences[gate];
    if (difference === undefined) {
      gates[gate] = before;
      continue;
    }
    const [harm, fit] = [harmOf(config, index, before.harm), fitOf(config, index, before.fit)];
    harm.observe(difference);
    fit.observe(difference);
    gates[gate] = { harm: harm.evidence, fit: fit.evidence };
  }
  return { ...state, gates, pairs: state.pairs + 1, stagePairs: state.stagePairs + 1 };
}

const harmOf = (config: RolloutConfig, index: number, evidence: MeanEvidence): MeanEProcess =>
  new MeanEProcess({ mean: -config.gates[index]!.tolerance, side: "below" }, evidence);

const fitOf = (config: RolloutConfig, index: number, evidence: MeanEvidence): MeanEProcess =>
  new MeanEProcess({ mean: -config.gates[index]!.margin, side: "above" }, evidence);

/** E-value against "no worse than tolerated by any gate". */
export function harmEvidence(config: RolloutConfig, state: RolloutState): number {
  const total = config.gates.reduce((sum, { check }) => sum + gateWeight(check), 0);
  return gateKeys(config).reduce((sum, gate, index) => {
    const { value } = harmOf(config, index, state.gates[gate]?.harm ?? noMeanEvidence);
    return sum + (gateWeight(config.gates[index]!.check) / total) * value;
  }, 0);
}

/**
 * Parts of the first capital that gates bet with, set before anything is seen. Durations tell something with every pair and gather
 * evidence fast; failures are rare, and a gate of them that had half of the capital would need half as much evidence again.
 */
function gateWeight(check: GateName): number {
  return check === "latency" || check === "within_ms" ? 1 : 9;
}

function decide(config: RolloutConfig, state: RolloutState, atMs: number): RolloutStep {
  const harm = harmEvidence(config, state);
  if (harm >= 1 / config.rollback_alpha) {
    const worst = summaries(config, state).toSorted((a, b) => b.harm - a.harm)[0]!;
    const rolledBack: RolloutState = { ...state, status: "rolled_back" };
    return decided(config, state, rolledBack, atMs, "rollback", "evidence", describeHarm(worst, harm));
  }
  if (state.status !== "running") return { state, decision: undefined };
  const stage = config.stages[state.stage]!;
  const isLongEnough = atMs - state.stageSinceMs >= stage.min_time;
  if (state.stagePairs >= stage.min_pairs && isLongEnough && isFit(config, state)) {
    return advance(
      config,
      state,
      atMs,
      "evidence",
      `every gate fits within its margin over ${state.stagePairs} pairs`,
    );
  }
  if (state.stagePairs >= stage.max_pairs) {
    const reason = `${state.stagePairs} pairs show neither harm nor that every gate fits within its margin`;
    return decided(config, state, { ...state, status: "held" }, atMs, "hold", "evidence", reason);
  }
  return { state, decision: undefined };
}

/** By every gate of which the stage can tell. */
function isFit(config: RolloutConfig, state: RolloutState): boolean {
  const { mode } = config.stages[state.stage]!;
  return gateKeys(config).every(
    (gate, index) =>
      !isObserved(mode, config.gates[index]!.check) ||
      fitOf(config, index, state.gates[gate]?.fit ?? noMeanEvidence).value >= 1 / config.promote_alpha,
  );
}

function advance(
  config: RolloutConfig,
  state: RolloutState,
  atMs: number,
  by: string,
  reason: string,
): RolloutStep {
  if (state.stage === config.stages.length - 1)
    return decided(config, state, { ...state, status: "promoted" }, atMs, "complete", by, reason);
  const gates = Object.fromEntries(
    Object.entries(state.gates).map(([gate, { harm }]) => [gate, { harm, fit: noMeanEvidence }]),
  );
  const next: RolloutState = {
    ...state,
    status: "running",
    stage: state.stage + 1,
    stageSinceMs: atMs,
    stagePairs: 0,
    gates,
  };
  return decided(config, state, next, atMs, "promote", by, reason);
}

function command(
  config: RolloutConfig,
  state: RolloutState,
  { atMs, command: what, by, reason }: Extract<RolloutEvent, { type: "command" }>,
): RolloutStep {
  const isOver = state.status === "rolled_back" || state.status === "promoted";
  switch (what) {
    case "rollback":
      if (state.status === "rolled_back") break;
      return decided(config, state, { ...state, status: "rolled_back" }, atMs, "rollback", by, reason);
    case "hold":
      if (state.status !== "running") break;
      return decided(config, state, { ...state, status: "held" }, atMs, "hold", by, reason);
    case "resume": {
      if (state.status !== "held") break;
      // a new count: else what held it would hold it again at once
      const resumed: RolloutState = { ...state, status: "running", stageSinceMs: atMs, stagePairs: 0 };
      return decided(config, state, resumed, atMs, "resume", by, reason);
    }
    case "promote":
      if (isOver) break;
      return advance(config, state, atMs, by, reason);
    case "restart":
      return decided(config, state, startRollout(config, atMs), atMs, "restart", by, reason);
  }
  return { state, decision: undefined };
}

function decided(
  config: RolloutConfig,
  before: RolloutState,
  after: RolloutState,
  atMs: number,
  decision: RolloutDecision["decision"],
  by: string,
  reason: string,
): RolloutStep {
  return {
    state: after,
    decision: {
      atMs,
      rollout: config.name,
      decision,
      by,
      reason,
      fromStage: before.stage,
      toStage: after.stage,
      status: after.status,
      pairs: before.pairs,
      stagePairs: before.stagePairs,
      gates: summaries(config, before),
      harmThreshold: 1 / config.rollback_alpha,
      fitThreshold: 1 / config.promote_alpha,
    },
  };
}

export function summaries(config: RolloutConfig, state: RolloutState): GateSummary[] {
  return gateKeys(config).map((gate, index) => {
    const { harm, fit } = state.gates[gate] ?? { harm: noMeanEvidence, fit: noMeanEvidence };
    return {
      gate,
      pairs: harm.count,
      meanDifference: harm.count === 0 ? undefined : harm.sum / harm.count,
      interval: asymptoticMeanSequence(harm),
      harm: harmOf(config, index, harm).value,
      fit: fitOf(config, index, fit).value,
    };
  });
}

function describeHarm({ gate, pairs, meanDifference = 0 }: GateSummary, harm: number): string {
  const points = (100 * meanDifference).toFixed(1);
  return `${gate} differs by ${points} points over ${pairs} pairs; all gates together, evidence of harm ${harm.toPrecision(3)}`;
}
