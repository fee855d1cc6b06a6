import { OctavoError } from "@octavo/protocol/errors";
import type { ObserverList } from "../evidence/observer-list.js";
import { IntList } from "../kv-cache/int-list.js";
import { PrefixChain } from "../kv-cache/prefix-cache.js";
import type { RequestRegistry } from "../requests/request-registry.js";
import type { Scheduler } from "../scheduler/scheduler.js";
import { accountOf, prefixSalt, type Sequence } from "../scheduler/sequence.js";
import type { ActiveFault, EvictFault, Fault, FaultControl, PreemptFault } from "./fault.js";
import { checkFault } from "./check-fault.js";
import { FaultRandom } from "./fault-random.js";
import { RequestFaultSchedule } from "./request-faults.js";
import { StepHold } from "./step-hold.js";

interface Standing {
  readonly id: number;
  readonly fault: Fault;
  readonly random: FaultRandom;
  readonly endMs: number | undefined;
  /** One per fault, so that clearing a fault does not end the waits of others. */
  readonly hold: StepHold;
  numInjected: number;
  isCleared: boolean;
}

interface Wait {
  readonly standing: Standing;
  readonly ms: number;
}

const maxFaults = 64;

/** The faults of one engine, standing ones and those of requests, injected before a step is planned and after it was computed. */
export class FaultInjector implements FaultControl {
  readonly #scheduler: Scheduler;
  readonly #requests: RequestRegistry;
  readonly #observers: ObserverList;
  readonly #requestFaults = new RequestFaultSchedule();
  /** Output tokens of a sequence when a standing fault last preempted it: it must generate a token in between, or never end. */
  readonly #forcedAt = new WeakMap<Sequence, number>();
  #standing: Standing[] = [];
  /** The faults that delay the step in flight, also those expired meanwhile. */
  #holding: readonly Standing[] = [];
  #lastId = 0;

  constructor(scheduler: Scheduler, requests: RequestRegistry, observers: ObserverList) {
    this.#scheduler = scheduler;
    this.#requests = requests;
    this.#observers = observers;
  }

  get active(): readonly ActiveFault[] {
    this.#expire();
    return this.#standing.map(activeFault);
  }

  add(fault: Fault): ActiveFault {
    checkFault(fault);
    this.#expire();
    if (this.#standing.length >= maxFaults) {
      throw new OctavoError("invalid_request", `${maxFaults} faults are active already; clear some first.`);
    }
    if ("requestId" in fault && fault.requestId !== undefined) this.#checkRequest(fault.requestId);
    this.#lastId += 1;
    const standing: Standing = {
      id: this.#lastId,
      fault,
      random: FaultRandom.of("seed" in fault ? (fault.seed ?? 0) : 0),
      endMs: fault.durationMs === undefined ? undefined : performance.now() + fault.durationMs,
      hold: new StepHold(),
      numInjected: 0,
      isCleared: false,
    };
    // Only unused blocks are evicted, so this need not wait for the step in flight.
    if (fault.kind === "evict" && !isTargeted(fault) && fault.durationMs === undefined) {
      this.#evictCached(standing, fault);
    } else this.#standing.push(standing);
    return activeFault(standing);
  }

  clear(id?: number): number {
    this.#expire();
    const cleared = this.#standing.filter((standing) => id === undefined || standing.id === id);
    this.#standing = this.#standing.filter((standing) => !cleared.includes(standing));
    for (const standing of [...cleared, ...this.#holding]) {
      if (id !== undefined && standing.id !== id) continue;
      standing.isCleared = true;
      standing.hold.release();
    }
    return cleared.length;
  }

  /** Injects faults before a step is planned, with nothing in flight. */
  beforePlan(): void {
    this.#expire();
    for (const sequence of this.#scheduler.waiting) {
      const faults = this.#requests.of(sequence).faults;
      const eviction = faults && this.#requestFaults.evictsPrompt(sequence, faults);
      if (eviction === undefined) continue;
      this.#scheduler.evict(sequence.prefix);
      if (eviction.isFirst) this.#observers.notify("onFault", "evict");
    }
    for (const sequence of this.#scheduler.running.slice()) {
      const faults = this.#requests.of(sequence).faults;
      const kind = faults && this.#requestFaults.take(sequence, faults);
      if (kind === undefined) continue;
      this.#force(sequence, kind);
      this.#observers.notify("onFault", kind);
    }
    for (const standing of this.#standing) this.#happen(standing);
    this.#standing = this.#standing.filter(({ fault, endMs }) => isLasting(fault) || endMs !== undefined);
  }

  /** Delays a computed step's results: resolves with the compute time to report; undefined if nothing delays the step. */
  hold(computeMs: number): Promise<number> | undefined {
    this.#expire();
    const throttles: Wait[] = [];
    const delays: Wait[] = [];
    let slowedMs = computeMs;
    for (const standing of this.#standing) {
      const { fault } = standing;
      if (fault.kind === "throttle") {
        throttles.push({ standing, ms: slowedMs * (fault.factor - 1) });
        slowedMs *= fault.factor;
      } else if (fault.kind === "delay" && isDrawn(standing, fault)) {
        delays.push({ standing, ms: fault.delayMs });
      } else continue;
      this.#count(standing);
    }
    return slowedMs === computeMs && delays.length === 0
      ? undefined
      : this.#held(computeMs, throttles, delays);
  }

  /** Ends all waits, so that the engine can stop. */
  close(): void {
    this.clear();
  }

  async #held(computeMs: number, throttles: readonly Wait[], delays: readonly Wait[]): Promise<number> {
    this.#holding = [...throttles, ...delays].map(({ standing }) => standing);
    let tookMs = 0;
    for (const { standing, ms } of throttles) if (!standing.isCleared) tookMs += await standing.hold.owe(ms);
    for (const { standing, ms } of delays) if (!standing.isCleared) await standing.hold.wait(ms);
    this.#holding = [];
    return computeMs + tookMs;
  }

  #happen(standing: Standing): void {
    const { fault } = standing;
    if (fault.kind !== "evict" && fault.kind !== "preempt") return;
    if (fault.kind === "evict" && !isTargeted(fault)) {
      this.#evictCached(standing, fault);
      return;
    }
    for (const sequence of this.#scheduler.running.slice()) {
      if (!isOf(sequence, fault) || !isDrawn(standing, fault)) continue;
      if (standing.endMs !== undefined && (this.#forcedAt.get(sequence) ?? -1) >= sequence.numOutputTokens)
        continue;
      this.#forcedAt.set(sequence, sequence.numOutputTokens);
      this.#force(sequence, fault.kind);
      this.#count(standing);
    }
  }

  #evictCached(standing: Standing, fault: EvictFault): void {
    if (!isDrawn(standing, fault)) return;
    const { promptTokens, cacheSalt, cacheScope } = fault;
    const salt = prefixSalt({ cacheScope, cacheSalt });
    const prefix = promptTokens && new PrefixChain(IntList.sharing(promptTokens), salt);
    this.#scheduler.evict(prefix);
    this.#count(standing);
  }

  #force(sequence: Sequence, kind: "evict" | "preempt"): void {
    // Another fault may have preempted it already.
    if (sequence.status === "running") this.#scheduler.preempt(sequence);
    if (kind === "evict") this.#scheduler.evict(sequence.prefix);
  }

  #count(standing: Standing): void {
    standing.numInjected += 1;
    this.#observers.notify("onFault", standing.fault.kind);
  }

  #expire(): void {
    if (this.#standing.length === 0) return;
    const nowMs = performance.now();
    this.#standing = this.#standing.filter(({ endMs }) => endMs === undefined || endMs > nowMs);
  }

  #checkRequest(requestId: string): void {
    const isHere = ({ group }: Sequence): boolean => group.requestId === requestId;
    if (this.#scheduler.running.some(isHere) || [...this.#scheduler.waiting].some(isHere)) return;
    const name = JSON.stringify(requestId.slice(0, 200));
    throw new OctavoError("invalid_request", `request_id: no request ${name} runs or waits here`, {
      param: "request_id",
    });
  }
}

/** Delays and throttles stay active until they are cleared. */
function isLasting({ kind }: Fault): boolean {
  return kind === "delay" || kind === "throttle";
}

/** Whether the fault evicts running sequences. */
function isTargeted({ requestId, tenant }: EvictFault): boolean {
  return requestId !== undefined || tenant !== undefined;
}

function isOf(sequence: Sequence, { requestId, tenant }: EvictFault | PreemptFault): boolean {
  if (requestId !== undefined && sequence.group.requestId !== requestId) return false;
  return tenant === undefined || accountOf(sequence).tenant === tenant;
}

function isDrawn(
  { random }: Standing,
  { probability = 1 }: { readonly probability?: number | undefined },
): boolean {
  return probability >= 1 || random.uniform() < probability;
}

function activeFault({ id, fault, numInjected, endMs }: Standing): ActiveFault {
  const remainingMs = endMs === undefined ? undefined : Math.max(0, endMs - performance.now());
  return { id, fault, numInjected, remainingMs };
}
