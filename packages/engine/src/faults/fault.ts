/**
 * Faults that can be injected into an engine for tests and evaluations: what otherwise happens only under load. They change
 * when and how often tokens are computed, never which tokens: promise 1 holds under any of them.
 */
export type Fault = EvictFault | PreemptFault | DelayFault | ThrottleFault;

/** What can be planted to test how a server behaves: see `--enable-fault-injection`. */
export type FaultKind = Fault["kind"];

/** Faults that a request or a test can ask for. */
export const faultKinds: readonly FaultKind[] = ["evict", "preempt", "delay", "throttle"];

/** How long a fault stays active, in ms from when it is added. */
interface Standing {
  readonly durationMs?: number | undefined;
}

/** The probability of each injection, in (0, 1], drawn from `seed`; default 1. */
interface Chance {
  readonly probability?: number | undefined;
  /** Default 0. */
  readonly seed?: number | undefined;
}

/** Running sequences of one request or one tenant; default all. */
interface Target {
  readonly requestId?: string | undefined;
  readonly tenant?: string | undefined;
}

/**
 * With a target, preempts its running sequences and evicts what they had computed, so that they are recomputed. With
 * `promptTokens`, evicts the cached blocks of this prefix; with neither, all cached blocks that are not in use. With
 * `durationMs`, repeats before each step, for a sequence only after it has generated a token in between; otherwise happens once.
 */
export interface EvictFault extends Standing, Chance, Target {
  readonly kind: "evict";
  readonly promptTokens?: Int32Array | undefined;
  /** The cache salt of the requests with this prefix. */
  readonly cacheSalt?: string | undefined;
  /** Their account's cache scope. */
  readonly cacheScope?: string | undefined;
}

/** Preempts running sequences; what they had computed may be found in the cache again. */
export interface PreemptFault extends Standing, Chance, Target {
  readonly kind: "preempt";
}

/** Delays the results of steps, like a busy machine. Without `durationMs`, until it is cleared. */
export interface DelayFault extends Standing, Chance {
  readonly kind: "delay";
  readonly delayMs: number;
}

/** Makes the compute time of steps `factor` times as long, like a slower machine. */
export interface ThrottleFault extends Standing {
  readonly kind: "throttle";
  readonly factor: number;
}

/** Faults of one request. Each number triggers once per sequence, before the first step in which it has that many output tokens. */
export interface RequestFaults {
  /** Preempts the sequence. 0: as soon as it runs, between the chunks of a long prompt. */
  readonly preemptAtTokens?: readonly number[] | undefined;
  /** Preempts the sequence and evicts its blocks. 0: evicts its cached prompt before it is admitted. */
  readonly evictAtTokens?: readonly number[] | undefined;
}

/** A fault that is active. */
export interface ActiveFault {
  readonly id: number;
  readonly fault: Fault;
  /** How often it has happened. */
  readonly numInjected: number;
  /** Undefined: until it is cleared or has happened once. */
  readonly remainingMs: number | undefined;
}

/** Fault injection of an engine that was created with `enableFaultInjection`. */
export interface FaultControl {
  /** Oldest first. */
  readonly active: readonly ActiveFault[];
  /**
   * Adds a fault. Cached blocks are evicted at once, running sequences before the next step. Throws `invalid_request` for a value
   * out of range, an unknown request, or too many active faults.
   */
  add(fault: Fault): ActiveFault;
  /** Clears the fault with that id, or all, and ends their waits. Returns the number of cleared faults. */
  clear(id?: number): number;
}
