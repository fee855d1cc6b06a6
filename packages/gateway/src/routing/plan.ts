import type { PlannedAttempt } from "../exchange/exchange.js";
import { type StrategyInput, strategies, type StrategyName, type TargetState } from "./strategies.js";

export interface RouteStates {
  readonly strategy: StrategyName;
  readonly states: readonly TargetState[];
}

export interface PlanInput extends StrategyInput {
  /** What names the caller's session; undefined without affinity. */
  readonly sessionKey: string | undefined;
}

/** A call makes no more attempts (`retries.attempts`): a plan of a thousand targets is not worth its time. */
const mostAttempts = 16;

/**
 * Which targets to ask, in order: the route's by its strategy, the session's own target first, then those of its fallback
 * routes. Targets that admit nothing are left out. Everything it knows comes as an argument: the same function runs in the
 * gateway and in simulations.
 */
export function planAttempts(routes: readonly RouteStates[], input: PlanInput): readonly PlannedAttempt[] {
  const planned: PlannedAttempt[] = [];
  for (const { strategy, states } of routes) {
    const open = states.filter(({ admits }) => admits);
    let ordered = open.length < 2 ? open : strategies[strategy](open, input);
    if (input.sessionKey !== undefined) ordered = sessionFirst(ordered, states, input.sessionKey);
    for (const { target, model } of ordered) {
      if (planned.length >= mostAttempts) return planned;
      if (!planned.some((one) => one.target === target && one.model === model))
        planned.push({ target, model });
    }
  }
  return planned;
}

/**
 * Rendezvous hashing: of all targets, healthy or not, the highest hash of session and target owns the session. When a target
 * comes or goes, only its own sessions move.
 */
function sessionFirst(
  ordered: readonly TargetState[],
  all: readonly TargetState[],
  sessionKey: string,
): readonly TargetState[] {
  const byHash = all.toSorted((a, b) => hash(sessionKey, b.target) - hash(sessionKey, a.target));
  const own = byHash.find(({ admits }) => admits);
  return own === undefined ? ordered : [own, ...ordered.filter((state) => state !== own)];
}

/** FNV-1a with the finaliser of MurmurHash3, 32 bits. */
function hash(sessionKey: string, target: string): number {
  let value = 0x811c9dc5;
  for (const text of [sessionKey, "\0", target])
    for (let index = 0; index < text.length; index += 1)
      value = Math.imul(value ^ text.charCodeAt(index), 0x01000193);
  value = Math.imul(value ^ (value >>> 16), 0x85ebca6b);
  value = Math.imul(value ^ (value >>> 13), 0xc2b2ae35);
  return (value ^ (value >>> 16)) >>> 0;
}
