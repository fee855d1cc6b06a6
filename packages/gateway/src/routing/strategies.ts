import type { ModelPrice } from "../exchange/exchange.js";

/** A target as routing sees it at one moment. */
export interface TargetState {
  readonly target: string;
  /** The target's own name of the model. */
  readonly model: string;
  readonly weight: number;
  /** Healthy, not resting, breaker closed or ready to probe, room for one more. */
  readonly admits: boolean;
  readonly outstanding: number;
  /** Tokens that its calls under way may still have to compute. */
  readonly outstandingTokens: number;
  /** Measured percentile of the time to first byte; undefined before the first answer, and where no strategy asks for it. */
  readonly firstByteMs: number | undefined;
  readonly price: ModelPrice | undefined;
  /** Prompt tokens that its prefix cache is expected to have; undefined where nobody counts. */
  readonly cachedTokens: number | undefined;
}

export interface StrategyInput {
  readonly promptTokens: number;
  readonly maxTokens: number;
  /** Calls that the target with the longest cached prefix may have more than the one with the fewest and still be preferred. */
  readonly maxImbalance: number;
  /** Counts the calls of the route. */
  readonly turn: number;
  /** From 0 to below 1. */
  readonly random: () => number;
}

type Strategy = (states: readonly TargetState[], input: StrategyInput) => readonly TargetState[];

/** Orders targets, best first. Each is a pure function of what it is given. */
export const strategies = {
  weighted: byWeight,
  round_robin: (states, { turn }) => {
    const first = states.length === 0 ? 0 : turn % states.length;
    return [...states.slice(first), ...states.slice(0, first)];
  },
  /** By the measured percentile; an unmeasured target comes first once, then waits for its measurement. */
  least_latency: (states, input) =>
    byLeast(states, input, ({ firstByteMs, outstanding }) =>
      firstByteMs === undefined ? (outstanding === 0 ? -1 : Number.MAX_VALUE) : firstByteMs,
    ),
  /** By calls under way per weight. */
  least_outstanding: (states, input) => byLeast(states, input, load),
  /** By what the call will cost with the prices as configured; without a price it is free. */
  cost_optimised: (states, input) => byLeast(states, input, (state) => expectedCost(state, input)),
  /**
   * By tokens that the target would have to compute: the prompt's that it has not cached, and as many again for every call
   * that it is busy with, as those were about as long.
   */
  prefix_aware: (states, input) =>
    byLeast(
      states,
      input,
      (state) => input.promptTokens - (state.cachedTokens ?? 0) + (load(state) * input.promptTokens) / 4,
    ),
  power_of_two: powerOfTwo,
} as const satisfies Readonly<Record<string, Strategy>>;

export type StrategyName = keyof typeof strategies;
export const strategyNames = Object.keys(strategies) as [StrategyName, ...StrategyName[]];

/** Share of a prompt that must be cached for the target to be preferred. */
const minMatch = 0.1;

/**
 * Draws two at random and takes the one with fewer outstanding tokens (Mitzenmacher 2001): nearly as even as asking all, and many
 * routers that see the same states do not all choose the same target. Where prefixes are counted, the target that has the
 * longest one cached comes first as long as the load is balanced, by the rule of Ray Serve's prefix-aware router.
 */
function powerOfTwo(states: readonly TargetState[], input: StrategyInput): readonly TargetState[] {
  const favourite = favouriteOf(states, input);
  const others = favourite === undefined ? states : states.filter((state) => state !== favourite);
  const drawn = drawnFirst(others, input.random);
  return favourite === undefined ? drawn : [favourite, ...drawn];
}

/** Targets to fall back to; a call makes no more attempts. */
const mostSpares = 14;

/** The better of two, then the other one, then the rest from a random place on: whom to ask after failures. */
function drawnFirst(states: readonly TargetState[], random: () => number): readonly TargetState[] {
  const first = Math.floor(random() * states.length);
  const second = (first + 1 + Math.floor(random() * (states.length - 1))) % states.length;
  const [one, two] = [states[first], states[second]];
  if (one === undefined || two === undefined || one === two) return states;
  const rest: TargetState[] = [];
  for (let at = first + 1; at < first + states.length && rest.length < mostSpares; at += 1) {
    const state = states[at % states.length];
    if (state !== undefined && state !== two) rest.push(state);
  }
  return two.outstandingTokens < one.outstandingTokens ? [two, one, ...rest] : [one, two, ...rest];
}

function favouriteOf(
  states: readonly TargetState[],
  { promptTokens, maxImbalance }: StrategyInput,
): TargetState | undefined {
  let least = Number.POSITIVE_INFINITY;
  let best: TargetState | undefined;
  for (const state of states) {
    least = Math.min(least, state.outstanding);
    const ahead = (state.cachedTokens ?? 0) - (best?.cachedTokens ?? 0);
    if (ahead > 0 || (ahead === 0 && best !== undefined && state.outstandingTokens < best.outstandingTokens))
      best = state;
  }
  if (best?.cachedTokens === undefined || best.cachedTokens < minMatch * promptTokens) return undefined;
  return best.outstanding - least < maxImbalance ? best : undefined;
}

function load({ outstanding, weight }: TargetState): number {
  return outstanding / Math.max(weight, Number.MIN_VALUE);
}

function expectedCost(
  { price, cachedTokens = 0 }: TargetState,
  { promptTokens, maxTokens }: StrategyInput,
): number {
  if (price === undefined) return 0;
  const cached = Math.min(cachedTokens, promptTokens);
  return (promptTokens - cached) * price.input + cached * price.cachedInput + maxTokens * price.output;
}

/** Ascending; equal ones by load, then by chance, so that a tie does not fill one target. */
function byLeast(
  states: readonly TargetState[],
  { random }: StrategyInput,
  valueOf: (state: TargetState) => number,
): readonly TargetState[] {
  return states
    .map((state) => ({ state, value: valueOf(state), load: load(state), chance: random() }))
    .toSorted((a, b) => a.value - b.value || a.load - b.load || a.chance - b.chance)
    .map(({ state }) => state);
}

/** Draws without putting back, in proportion to weight (Efraimidis and Spirakis 2006). Weight 0 comes last. */
function byWeight(states: readonly TargetState[], { random }: StrategyInput): readonly TargetState[] {
  if (states.length < 2) return states;
  return states
    .map((state) => ({ state, key: state.weight > 0 ? -Math.log(1 - random()) / state.weight : Infinity }))
    .toSorted((a, b) => a.key - b.key || 0)
    .map(({ state }) => state);
}
