import { laneOf, type Sequence } from "../sequence.js";
import type { StepPlanner } from "./scheduling-policy.js";
import type { TenantShare, TenantShares } from "./tenant-shares.js";

/** A tenant may take from another if it was served at most this many tokens more. */
const servedSlack = 2048;

interface Holding {
  slots: number;
  blocks: number;
  readonly sequences: Sequence[];
}

/**
 * Preempts running sequences for a waiting one that lacks a slot or blocks, and returns whether it has them now. Less urgent
 * lanes give way first; then the tenant that holds most for its weight, its cheapest sequence first, as long as it still
 * holds no less than the candidate's tenant then does. Each preemption thus brings the tenants closer together, and none is
 * reversed: the sum of squares of their holdings falls every time. Nothing is preempted unless enough can be freed.
 */
export function makeRoom(
  step: StepPlanner,
  shares: TenantShares,
  candidate: Sequence,
  spared: ReadonlySet<Sequence>,
): boolean {
  const lane = laneOf(candidate);
  const own = shares.of(candidate);
  const holdings = new Map<TenantShare, Holding>();
  for (const sequence of step.running) {
    const share = shares.of(sequence);
    let holding = holdings.get(share);
    if (holding === undefined) {
      holding = { slots: 0, blocks: 0, sequences: [] };
      holdings.set(share, holding);
    }
    holding.slots += 1;
    holding.blocks += sequence.blocks.length;
    if (laneOf(sequence) >= lane && !spared.has(sequence)) holding.sequences.push(sequence);
  }
  for (const { sequences } of holdings.values()) sequences.sort(isCheaper);
  const ownHolding = holdings.get(own);
  const missingBlocks = step.missingBlocks(candidate);
  const wants = {
    slots: (ownHolding?.slots ?? 0) + 1,
    blocks: (ownHolding?.blocks ?? 0) + missingBlocks,
  };
  let slots = step.running.length - step.maxNumSeqs + 1;
  let blocks = missingBlocks;
  const victims: Sequence[] = [];
  while (slots > 0 || blocks > 0) {
    const resource = slots > 0 ? "slots" : "blocks";
    const victim = nextVictim(holdings, own, lane, resource, wants[resource] / own.weight);
    if (victim === undefined) return false;
    const holding = holdings.get(shares.of(victim));
    if (holding === undefined) return false;
    holding.sequences.splice(holding.sequences.indexOf(victim), 1);
    holding.slots -= 1;
    holding.blocks -= victim.blocks.length;
    slots -= 1;
    blocks -= step.blocksFreedBy(victim);
    victims.push(victim);
  }
  for (const victim of victims) step.preempt(victim, candidate);
  return victims.length > 0;
}

function nextVictim(
  holdings: ReadonlyMap<TenantShare, Holding>,
  own: TenantShare,
  lane: number,
  resource: "slots" | "blocks",
  wanted: number,
): Sequence | undefined {
  let victim: Sequence | undefined;
  let victimLane = lane;
  let most = 0;
  for (const [share, holding] of holdings) {
    for (const sequence of holding.sequences) {
      const sequenceLane = laneOf(sequence);
      if (sequenceLane < victimLane) continue;
      const held = holding[resource] / share.weight;
      if (sequenceLane === lane) {
        if (share === own || own.served > share.served + servedSlack) continue;
        const left = (holding[resource] - (resource === "slots" ? 1 : sequence.blocks.length)) / share.weight;
        if (left < wanted) continue;
      }
      // Within a lane, the sequences of a tenant are sorted cheapest first.
      if (victim !== undefined && sequenceLane === victimLane && held <= most) continue;
      victim = sequence;
      victimLane = sequenceLane;
      most = held;
    }
  }
  return victim;
}

/** Least urgent first, then cheapest to recompute. */
function isCheaper(a: Sequence, b: Sequence): number {
  const lanes = laneOf(b) - laneOf(a);
  return lanes === 0
    ? a.numTokens - b.numTokens || b.group.order - a.group.order || b.index - a.index
    : lanes;
}
