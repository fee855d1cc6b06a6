import { Random } from "@octavo/statistics";
import type { ArmOutcome } from "./gates.js";
import { gateDifference } from "./gates.js";
import type { RolloutConfig } from "./rollout-config.js";
import { type RolloutDecision, gateKeys, startRollout, stepRollout } from "./rollout-machine.js";

export interface SimulatedArm {
  /** Chance of valid JSON. */
  readonly jsonValid: number;
  /** Median of the lognormal durations; the same requests are slow for both arms. */
  readonly medianMs: number;
}

export interface RolloutSimulation {
  readonly config: RolloutConfig;
  readonly primary: SimulatedArm;
  readonly canary: SimulatedArm;
  /** Part of the requests that are as hard for both arms: where one fails, the other does if it is no better. */
  readonly sharedDifficulty: number;
  readonly maxPairs: number;
  readonly seed: number;
}

/** Runs pairs through the state machine until it has ended or holds. */
export function simulateRollout({
  config,
  primary,
  canary,
  sharedDifficulty,
  maxPairs,
  seed,
}: RolloutSimulation): { readonly pairs: number; readonly decisions: readonly RolloutDecision[] } {
  const random = new Random(seed);
  const decisions: RolloutDecision[] = [];
  let state = startRollout(config, 0);
  while (state.pairs < maxPairs && state.status === "running") {
    const outcomes = simulatePair(random, primary, canary, sharedDifficulty);
    const differences: Record<string, number> = {};
    for (const [index, gate] of gateKeys(config).entries()) {
      const difference = gateDifference(config.gates[index]!, ...outcomes);
      if (difference !== undefined) differences[gate] = difference;
    }
    const step = stepRollout(config, state, { type: "pair", atMs: state.pairs * 1000, differences });
    state = step.state;
    if (step.decision !== undefined) decisions.push(step.decision);
  }
  return { pairs: state.pairs, decisions };
}

function simulatePair(
  random: Random,
  primary: SimulatedArm,
  canary: SimulatedArm,
  sharedDifficulty: number,
): [ArmOutcome, ArmOutcome] {
  const isShared = random.uniform() < sharedDifficulty;
  const luck = random.uniform();
  const length = Math.exp(0.5 * random.normal());
  const outcome = (arm: SimulatedArm): ArmOutcome => ({
    isAnswered: true,
    text: (isShared ? luck : random.uniform()) < arm.jsonValid ? '{"ok":true}' : '{"ok":tru',
    toolArguments: [],
    finishReason: "stop",
    durationMs: arm.medianMs * length * Math.exp(0.3 * random.normal()),
  });
  return [outcome(primary), outcome(canary)];
}
