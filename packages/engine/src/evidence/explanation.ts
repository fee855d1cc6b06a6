/**
 * What a piece of a request's time went to.
 *
 * - `preparation`: rendering, tokenising and checking, before the engine had it
 * - `grammar`: compiling its constraint
 * - `queue`: waiting to be admitted; the parts name who was computed meanwhile
 * - `prefill`: computing its own prompt
 * - `eviction`: computing again what had been cached and was evicted
 * - `prefill_burst`: prompts of others in its steps; the parts name them
 * - `preemption`: having given its blocks back, and being recomputed; the parts name who needed them
 * - `not_scheduled`: running, but left out of steps, since the token budget went to others
 * - `decode`: its steps' decoding, its own and that of those it shared them with
 * - `batch_growth`: of that, the excess over its usual step where more sequences ran than usual
 * - `slow_compute`: of that, the excess where they did not: the same work took longer
 * - `host`: between computing: planning, sampling's aftermath, other work on the event loop; after a start,
 *   packing of weights
 * - `forgotten`: steps that the log no longer holds
 */
export type Cause =
  | "preparation"
  | "grammar"
  | "queue"
  | "prefill"
  | "eviction"
  | "prefill_burst"
  | "preemption"
  | "not_scheduled"
  | "decode"
  | "batch_growth"
  | "slow_compute"
  | "host"
  | "forgotten";

/** Another request that had a hand in it. */
export interface Culprit {
  readonly requestId: string;
  readonly tenant: string;
  /** What it took of the time, where it was computed. */
  readonly ms: number;
  /** Tokens that were computed for it. */
  readonly tokens: number;
}

/** What all requests of one tenant together had of it. */
export interface TenantPart {
  readonly tenant: string;
  readonly ms: number;
  readonly tokens: number;
}

/** A piece of a span of time. */
export interface ExplanationPart {
  readonly cause: Cause;
  readonly ms: number;
  /** Tokens that it was spent on, where that can be said. */
  readonly tokens?: number;
  /** Who else, the greatest part first; at most four. */
  readonly requests?: readonly Culprit[];
  /** Whose requests these and the others were, the greatest part first; at most four. */
  readonly tenants?: readonly TenantPart[];
}

/** Where a span of time went: the parts add up to `ms`. */
export interface Explanation {
  readonly ms: number;
  /** The greatest part; of a slow gap, the greatest part of what is more than usual. */
  readonly cause: Cause;
  /** Greatest first. */
  readonly parts: readonly ExplanationPart[];
}

/** A gap between two outputs of a sequence that was much longer than it usually is. */
export interface SlowGap extends Explanation {
  readonly sequence: number;
  /** The gap comes before the sequence's output number `output`, counted from 0 by steps that gave any. */
  readonly output: number;
  /** The step that ended it. */
  readonly step: number;
  /** What is usual: the median of the sequence's gaps. */
  readonly usualMs: number;
}

const maxCulprits = 4;

/** Who a request is. */
export type RequestName = Pick<Culprit, "requestId" | "tenant">;

interface OpenPart {
  ms: number;
  tokens: number;
  readonly culprits: Map<number, { ms: number; tokens: number }>;
}

/** Adds up where time went. */
export class ExplanationBuilder {
  readonly #parts = new Map<Cause, OpenPart>();

  add(cause: Cause, ms: number, tokens = 0): void {
    const part = this.#part(cause);
    part.ms += ms;
    part.tokens += tokens;
  }

  /** Names a request as having a hand in it; the time itself is added with `add`. */
  blame(cause: Cause, order: number, ms: number, tokens: number): void {
    const { culprits } = this.#part(cause);
    const culprit = culprits.get(order);
    if (culprit === undefined) culprits.set(order, { ms, tokens });
    else {
      culprit.ms += ms;
      culprit.tokens += tokens;
    }
  }

  /** Ms of a cause so far. */
  msOf(cause: Cause): number {
    return this.#parts.get(cause)?.ms ?? 0;
  }

  /** Moves time from one cause to another. */
  move(from: Cause, to: Cause, ms: number): void {
    this.#part(from).ms -= ms;
    this.#part(to).ms += ms;
  }

  /** Of the whole `ms`; what the parts do not account for goes to `rest`. `excess` says what of a part counts for the cause. */
  build(
    ms: number,
    rest: Cause,
    nameOf: (order: number) => RequestName,
    excess: (part: ExplanationPart) => number = (part) => part.ms,
  ): Explanation {
    let known = 0;
    for (const part of this.#parts.values()) known += part.ms;
    if (known < ms) this.add(rest, ms - known);
    // Clocks are read at different places: a step's parts may exceed the span by a little.
    const scale = known > ms && known > 0 ? ms / known : 1;
    const parts = [...this.#parts]
      .filter(([, part]) => part.ms > 0)
      .map(([cause, part]) => asPart(cause, part, scale, nameOf))
      .sort((a, b) => b.ms - a.ms);
    const first = parts[0];
    const cause = parts.reduce((most, part) => (excess(part) > excess(most) ? part : most), first!);
    return { ms, cause: first === undefined ? rest : cause.cause, parts };
  }

  #part(cause: Cause): OpenPart {
    let part = this.#parts.get(cause);
    if (part === undefined) {
      part = { ms: 0, tokens: 0, culprits: new Map() };
      this.#parts.set(cause, part);
    }
    return part;
  }
}

function asPart(
  cause: Cause,
  part: OpenPart,
  scale: number,
  nameOf: (order: number) => RequestName,
): ExplanationPart {
  const requests = [...part.culprits]
    .map(([order, { ms, tokens }]) => ({ ...nameOf(order), ms, tokens }))
    .sort((a, b) => b.ms - a.ms || b.tokens - a.tokens);
  return {
    cause,
    ms: part.ms * scale,
    ...(part.tokens > 0 && { tokens: part.tokens }),
    ...(requests.length > 0 && {
      requests: requests.slice(0, maxCulprits),
      tenants: byTenant(requests).slice(0, maxCulprits),
    }),
  };
}

function byTenant(requests: readonly Culprit[]): readonly TenantPart[] {
  const tenants = new Map<string, { ms: number; tokens: number }>();
  for (const { tenant, ms, tokens } of requests) {
    const part = tenants.get(tenant);
    if (part === undefined) tenants.set(tenant, { ms, tokens });
    else {
      part.ms += ms;
      part.tokens += tokens;
    }
  }
  return [...tenants]
    .map(([tenant, part]) => ({ tenant, ...part }))
    .sort((a, b) => b.ms - a.ms || b.tokens - a.tokens);
}
