import { laneOf, type Sequence } from "../sequence.js";
import { Isolation, type StepLimit } from "./isolation.js";
import { makeRoom } from "./make-room.js";
import {
  type Admission,
  arrivedBefore,
  type SchedulingPolicy,
  type StepPlanner,
  type StepSize,
} from "./scheduling-policy.js";
import { type TenantShare, TenantShares } from "./tenant-shares.js";

/** Tenants whose served tokens differ by less than this count as equal and are ordered by arrival. */
const servedBucket = 2048;
/** Prompt tokens go to contending tenants in chunks of at least this size. */
const minPiece = 32;
/** Waiting sequences that one step may pass over, so that its cost does not grow with the queue. */
const maxPassedOver = 64;

/** Running prompts that can use more tokens of the step, by tenant, next first. */
type Prompts = Map<TenantShare, Sequence[]>;

/**
 * Fair between tenants: prompt tokens and sequence slots of a step go to the least served tenant in the most urgent lane. A
 * tenant below its share takes slots and blocks from one above it, whose cheapest sequences are preempted, and is not slowed
 * down by the others' work in its steps (`Isolation`). Work-conserving: without contention, one tenant gets everything.
 */
export class FairPolicy implements SchedulingPolicy {
  readonly name = "fair";
  readonly #shares = new TenantShares();
  readonly waiting = this.#shares;
  readonly #isolation: Isolation;
  #limit: StepLimit | undefined;
  /** Prompt tokens left for tenants that have their share. */
  #othersRoom = Number.POSITIVE_INFINITY;
  /** Index of the next sequence to generate when a step has no room for all. */
  #turn = 0;
  /** Admitted in this step. */
  readonly #admitted = new Set<Sequence>();
  /** The next waiting sequence does not fit into this step. */
  #isFull = false;

  constructor(maxNumSeqs: number) {
    this.#isolation = new Isolation(this.#shares, maxNumSeqs);
  }

  before(a: Sequence, b: Sequence): boolean {
    const lanes = laneOf(a) - laneOf(b);
    if (lanes !== 0) return lanes < 0;
    const served = this.#bucket(a) - this.#bucket(b);
    return served === 0 ? arrivedBefore(a, b) : served < 0;
  }

  enter(sequence: Sequence): void {
    this.#shares.enter(sequence);
  }

  leave(sequence: Sequence): void {
    this.#shares.leave(sequence);
  }

  given(sequence: Sequence, numTokens: number): void {
    this.#shares.charge(sequence, numTokens);
  }

  observe(step: StepSize, wallMs: number): void {
    this.#isolation.observe(step, wallMs);
  }

  decodes(running: readonly Sequence[], budget: number, maxPromptTokens: number): readonly Sequence[] {
    this.#limit = this.#isolation.limit(running, Math.min(budget, maxPromptTokens));
    this.#othersRoom = this.#limit?.promptTokens ?? Number.POSITIVE_INFINITY;
    const generating = running.filter((sequence) => sequence.isDecoding);
    if (this.#limit === undefined) {
      if (generating.length > budget) generating.sort((a, b) => (this.before(a, b) ? -1 : 1));
      return generating;
    }
    const { favoured, decodes } = this.#limit;
    const own = generating.filter((sequence) => favoured.has(this.#shares.of(sequence)));
    const others = generating.filter((sequence) => !favoured.has(this.#shares.of(sequence)));
    for (let count = 0; count < Math.min(decodes, others.length); count += 1)
      own.push(others[(this.#turn + count) % others.length]!);
    this.#turn = others.length === 0 ? 0 : (this.#turn + decodes) % others.length;
    return own;
  }

  planPrompts(step: StepPlanner): void {
    // Without chunked prefill, a prompt longer than the limit could never run.
    if (!step.isChunked) this.#othersRoom = Number.POSITIVE_INFINITY;
    this.#isFull = false;
    this.#admitted.clear();
    step.beginAdmission();
    this.#handOut(step, this.#promptsOf(step.running), step.promptCap);
    if (step.isChunked) {
      step.liftLongCap();
      this.#handOut(step, this.#promptsOf(step.running), Number.POSITIVE_INFINITY);
    }
    // All sequences chosen to generate may have been preempted for lack of blocks.
    if (step.running.some((sequence) => sequence.numScheduled > 0)) return;
    for (const sequence of step.running.slice()) step.give(sequence, 1);
  }

  #bucket(sequence: Sequence): number {
    return Math.floor(this.#shares.of(sequence).served / servedBucket);
  }

  #promptsOf(running: readonly Sequence[]): Prompts {
    const prompts: Prompts = new Map();
    for (const sequence of running) {
      if (sequence.isDecoding || sequence.numComputed + sequence.numScheduled >= sequence.numTokens) continue;
      const share = this.#shares.of(sequence);
      const list = prompts.get(share);
      if (list === undefined) prompts.set(share, [sequence]);
      else list.push(sequence);
    }
    return prompts;
  }

  /** One pass over the step's prompt tokens; no prompt gets more than `cap` of them. */
  #handOut(step: StepPlanner, prompts: Prompts, cap: number): void {
    const piece = this.#piece(step, prompts);
    const passedOver: Sequence[] = [];
    while (step.promptRoom > 0) {
      const isOpen = !this.#isFull && !step.isShortOfBlocks && passedOver.length <= maxPassedOver;
      const waiting = isOpen ? this.#nextWaiting() : undefined;
      const share = this.#nextRunning(prompts, waiting);
      const sequence = share === undefined ? waiting?.waiting.peek() : prompts.get(share)?.[0];
      if (sequence === undefined) break;
      const most = Math.min(piece, cap - sequence.numScheduled, this.#roomFor(sequence));
      if (share !== undefined) {
        const given = sequence.numScheduled === 0 ? step.give(sequence, most) : step.extend(sequence, most);
        this.#noteGiven(sequence, given);
        if (given === 0 || !wantsMore(sequence, cap)) dropFirst(prompts, share);
        continue;
      }
      const admission = this.#admit(step, sequence, most);
      if (admission === "admitted") {
        this.#admitted.add(sequence);
        this.#noteGiven(sequence, sequence.numScheduled);
        if (wantsMore(sequence, cap)) this.#append(prompts, sequence);
      } else if (admission === "later") {
        this.#shares.remove(sequence);
        passedOver.push(sequence);
      } else this.#isFull = true;
    }
    for (const sequence of passedOver) this.#shares.add(sequence);
  }

  /** Admits a sequence, by preemption if necessary, at once, so that no preempted sequence takes the room back. */
  #admit(step: StepPlanner, sequence: Sequence, most: number): Admission {
    const admission = step.admit(sequence, most);
    if (admission !== "full" || !makeRoom(step, this.#shares, sequence, this.#admitted)) return admission;
    return step.admit(sequence, Math.min(most, this.#roomFor(sequence)));
  }

  /** The chunk size: contending tenants take turns at parts of the budget, a single one gets it whole. */
  #piece(step: StepPlanner, prompts: Prompts): number {
    const contenders = prompts.size + (this.#isFull ? 0 : this.#shares.numQueuedTenants);
    if (!step.isChunked || contenders < 2) return Number.POSITIVE_INFINITY;
    return Math.max(minPiece, Math.ceil(step.promptRoom / 8));
  }

  /** The tenant whose waiting sequence is next among those with room in the step; within a lane, favoured tenants first. */
  #nextWaiting(): TenantShare | undefined {
    const { next } = this.#shares;
    if (next === undefined || this.#limit === undefined || this.#limit.favoured.has(next)) return next;
    let best: TenantShare | undefined;
    for (const share of this.#limit.favoured) {
      if (share.waiting.size > 0 && (best === undefined || isAhead(share, share.lane, best, best.lane)))
        best = share;
    }
    return this.#othersRoom > 0 && best?.lane !== next.lane ? next : best;
  }

  /** The tenant whose running prompt is next, if it comes before the waiting tenant. */
  #nextRunning(prompts: Prompts, waiting: TenantShare | undefined): TenantShare | undefined {
    let best: TenantShare | undefined;
    let bestLane = Number.POSITIVE_INFINITY;
    for (const [share, [first]] of prompts) {
      if (first === undefined || this.#roomFor(first) === 0) continue;
      const lane = laneOf(first);
      if (best !== undefined && !isAhead(share, lane, best, bestLane)) continue;
      best = share;
      bestLane = lane;
    }
    const givesWay =
      best !== undefined && waiting !== undefined && isAhead(waiting, waiting.lane, best, bestLane);
    return givesWay ? undefined : best;
  }

  /** Prompt tokens that the step's limit leaves for a sequence. */
  #roomFor(sequence: Sequence): number {
    const isFavoured = this.#limit?.favoured.has(this.#shares.of(sequence)) ?? true;
    return isFavoured ? Number.POSITIVE_INFINITY : this.#othersRoom;
  }

  #noteGiven(sequence: Sequence, numTokens: number): void {
    if (this.#roomFor(sequence) !== Number.POSITIVE_INFINITY) this.#othersRoom -= numTokens;
  }

  #append(prompts: Prompts, sequence: Sequence): void {
    const share = this.#shares.of(sequence);
    const list = prompts.get(share);
    if (list === undefined) prompts.set(share, [sequence]);
    else list.push(sequence);
  }
}

function isAhead(a: TenantShare, laneA: number, b: TenantShare, laneB: number): boolean {
  return laneA === laneB ? a.served < b.served : laneA < laneB;
}

function wantsMore(sequence: Sequence, cap: number): boolean {
  const { status, numTokens, numComputed, numScheduled } = sequence;
  return status === "running" && numScheduled < cap && numComputed + numScheduled < numTokens;
}

function dropFirst(prompts: Prompts, share: TenantShare): void {
  const list = prompts.get(share);
  list?.shift();
  if (list?.length === 0) prompts.delete(share);
}
