import { asArray, asObject } from "@octavo/protocol";
import type { ConfigPatch } from "./config-patch.js";
import { pointerTo, settingAt } from "./config-patch.js";
import type { FeedEntry } from "./feed-state.js";

/** What of a cluster decides which setting of the gateway is changed. */
export type GatewayEvidence = Pick<FeedEntry, "cause"> &
  Partial<Pick<FeedEntry, "target" | "routes" | "outstanding" | "failed_share">>;

interface Known extends GatewayEvidence {
  readonly target: string;
  /** gateway.yaml as it was written. */
  readonly config: unknown;
}

type Proposal = (known: Known) => Omit<ConfigPatch, "of"> | undefined;

/** Breakers as gateway.yaml has them by default. */
const usualErrorRate = 0.5;
const leastErrorRate = 0.02;

/** The target refuses what is more than it can do: what it had when it refused is the bound. */
const bounded: Proposal = ({ target, config, outstanding }) => {
  const pointer = pointerTo("targets", target, "max_outstanding");
  const bound = settingAt(config, pointer);
  const wanted = Math.max(1, outstanding ?? 0);
  if (outstanding === undefined || (typeof bound === "number" && bound <= wanted)) return undefined;
  return { set: { [pointer]: wanted }, why: `${target} refused calls while it had ${outstanding} others` };
};

/** The target fails more often than usual, and less often than makes its breaker open: each of these calls is asked twice. */
const broken: Proposal = ({ target, config, failed_share: share }) => {
  const pointer = pointerTo("targets", target, "breaker", "error_rate");
  const opensAt = Number(settingAt(config, pointer) ?? usualErrorRate);
  if (share === undefined || share >= opensAt) return undefined;
  const rate = Math.max(leastErrorRate, Math.round(50 * share) / 100);
  return rate >= opensAt
    ? undefined
    : {
        set: { [pointer]: rate },
        why: `${target} failed ${Math.round(100 * share)} % of its calls, and its breaker opens at ${100 * opensAt} %`,
      };
};

const hedged: Proposal = ({ target, config, routes = [] }) => {
  const route = routes.find((name) => {
    const own = asObject(settingAt(config, pointerTo("routes", name)));
    const numOthers = asArray(own?.["targets"]).length - 1 + asArray(own?.["fallbacks"]).length;
    return own !== undefined && own["hedge"] === undefined && numOthers > 0;
  });
  return route === undefined
    ? undefined
    : {
        set: { [pointerTo("routes", route, "hedge", "after")]: "p95" },
        why: `${target} was late on route ${route}, which has others to ask`,
      };
};

const proposals: Readonly<Record<string, Proposal>> = {
  target_rate_limited: bounded,
  target_failed: broken,
  target_timeout: broken,
  target_unreachable: broken,
  target_answer_invalid: broken,
  stream_interrupted: broken,
  slow_target: hedged,
};

/**
 * The change of gateway.yaml to try first. Refusals by limits and budgets have none: a limit that refuses does what it is for.
 */
export function proposeGatewayFix(evidence: GatewayEvidence, config: unknown): ConfigPatch | undefined {
  const { cause, target } = evidence;
  if (target === undefined || settingAt(config, pointerTo("targets", target)) === undefined) return undefined;
  const proposed = proposals[cause]?.({ ...evidence, target, config });
  return proposed && { of: "gateway", ...proposed };
}
