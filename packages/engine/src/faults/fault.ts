/**
 * Faults that an engine can be made to have, for tests and evaluations: what happens under pressure now and then, made to
 * happen on demand. They change when and how often tokens are computed, never which: promise 1 holds under any of them.
 */
export type Fault = EvictFault | PreemptFault | DelayFault | ThrottleFault;

export type FaultKind = Fault["kind"];

export const faultKinds: readonly FaultKind[] = ["evict", "preempt", "delay", "throttle"];

/** How long a fault stands, in ms from when it is added. */
interface Standing {
  readonly durationMs?: number | undefined;
}

/** In how many of its chances it happens, in (0, 1], drawn from `seed`; default all of them. */
interface Chance {
  readonly probability?: number | undefined;
  /** Default 0. */
  readonly seed?: number | undefined;
}

/** Running sequences of one request, or of one tenant; default of all. */
interface Target {
  readonly requestId?: string | undefined;
  readonly tenant?: string | undefined;
}

/**
 * With a target, its running sequences give their blocks back and find nothing of what they had computed, so that they are
 * recomputed. With `promptTokens`, what is cached of this prefix goes; with neither, all cached blocks that nobody uses.
 * With `durationMs` again and again before each step, a sequence only after it has brought a token since; else once.
 */
export interface EvictFault extends Standing, Chance, Target {
  readonly kind: "evict";
  readonly promptTokens?: Int32Array | undefined;
  /** Of the requests whose prefix it is. */
  readonly cacheSalt?: string | undefined;
}

/** As eviction of running sequences, but what they had computed may be found in the cache again. */
export interface PreemptFault extends Standing, Chance, Target {
  readonly kind: "preempt";
}

/** Holds the results of steps back, as a busy machine does. Without `durationMs` until it is cleared. */
export interface DelayFault extends Standing, Chance {
  readonly kind: "delay";
  readonly delayMs: number;
}

/** Makes steps take `factor` times as long, and count as computing, as a slower machine does. */
export interface ThrottleFault extends Standing {
  readonly kind: "throttle";
  readonly factor: number;
}

/** Faults tied to one request. Each number is met once by each of its sequences, before the first step with that many output tokens. */
export interface RequestFaults {
  /** It gives its blocks back. 0: as soon as it runs, which is between the pieces of a long prompt. */
  readonly preemptAtTokens?: readonly number[] | undefined;
  /** It is recomputed. 0: what is cached of its prompt goes before it is admitted. */
  readonly evictAtTokens?: readonly number[] | undefined;
}

/** A fault that has been added and still stands. */
export interface ActiveFault {
  readonly id: number;
  readonly fault: Fault;
  /** How often it has happened. */
  readonly numInjected: number;
  /** Undefined: until it is cleared, or has happened once. */
  readonly remainingMs: number | undefined;
}

/** What an engine that takes faults offers; one that does not has none of it. */
export interface FaultControl {
  /** Oldest first. */
  readonly active: readonly ActiveFault[];
  /**
   * Adds a fault. Cached blocks are evicted at once, running sequences before the next step. Throws `invalid_request` naming
   * what is out of range, a request that is not there, or that too many faults stand.
   */
  add(fault: Fault): ActiveFault;
  /** Takes back the fault of that id, or all; waits that are under way end. Returns how many there were. */
  clear(id?: number): number;
}
