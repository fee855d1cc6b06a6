/**
 * What a part of a request's time was spent on.
 *
 * - `preparation`: rendering, tokenising and checking, before the engine got the request
 * - `grammar`: compiling its constraint
 * - `queue`: waiting for admission; the part names the requests computed meanwhile
 * - `prefill`: computing its own prompt
 * - `eviction`: recomputing a prefix that had been cached and was evicted
 * - `prefill_burst`: prompts of other requests in its steps; the part names them
 * - `preemption`: being preempted and recomputed; the part names the requests that needed its blocks
 * - `not_scheduled`: running, but left out of steps whose token budget went to others
 * - `decode`: decoding in its steps, its own and that of the sequences it shared them with
 * - `batch_growth`: the excess of `decode` over the usual step, where more sequences ran than usual
 * - `slow_compute`: the excess of `decode` over the usual step, where no more sequences ran: the same work took longer
 * - `host`: time between computing: planning, applying results, other work on the event loop; after a start, packing
 *   weights
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

/** Another request that contributed to the time. */
export interface Culprit {
  readonly requestId: string;
  readonly tenant: string;
  /** Compute time of that request. */
  readonly ms: number;
  /** Tokens computed for that request. */
  readonly tokens: number;
}

/** The same for all requests of one tenant. */
export interface TenantPart {
  readonly tenant: string;
  readonly ms: number;
  readonly tokens: number;
}

/** A part of a span of time. */
export interface ExplanationPart {
  readonly cause: Cause;
  readonly ms: number;
  /** Tokens that it was spent on, if known. */
  readonly tokens?: number;
  /** Other requests that contributed, largest first; at most four. */
  readonly requests?: readonly Culprit[];
  /** Tenants of all contributing requests, largest first; at most four. */
  readonly tenants?: readonly TenantPart[];
}

/** Where a span of time went: the parts add up to `ms`. */
export interface Explanation {
  readonly ms: number;
  /** The largest part; of a slow gap, the largest part of the excess. */
  readonly cause: Cause;
  /** Largest first. */
  readonly parts: readonly ExplanationPart[];
}

/** A gap between two outputs of a sequence that was much longer than it usually is. */
export interface SlowGap extends Explanation {
  readonly sequence: number;
  /** The gap precedes the sequence's output number `output`, counted from 0 by steps with output. */
  readonly output: number;
  /** The step that ended it. */
  readonly step: number;
  /** The median of the sequence's gaps. */
  readonly usualMs: number;
}

const maxCulprits = 4;

/** Identifies a request. */
export type RequestName = Pick<Culprit, "requestId" | "tenant">;

interface OpenPart {
  ms: number;
  tokens: number;
  readonly culprits: Map<number, { ms: number; tokens: number }>;
}

/** Adds up parts of a span of time. */
export class ExplanationBuilder {
  readonly #parts = new Map<Cause, OpenPart>();

  add(cause: Cause, ms: number, tokens = 0): void {
    const part = this.#part(cause);
    part.ms += ms;
    part.tokens += tokens;
  }

  /** Names a request that contributed; the time itself is added with `add`. */
  blame(cause: Cause, order: number, ms: number, tokens: number): void {
    const { culprits } = this.#part(cause);
    const culprit = culprits.get(order);
    if (culprit === undefined) culprits.set(order, { ms, tokens });
    else {
      culprit.ms += ms;
      culprit.tokens += tokens;
    }
  }

  /** Milliseconds of a cause so far. */
  msOf(cause: Cause): number {
    return this.#parts.get(cause)?.ms ?? 0;
  }

  /** Moves time from one cause to another. */
  move(from: Cause, to: Cause, ms: number): void {
    this.#part(from).ms -= ms;
    this.#part(to).ms += ms;
  }

  /** Explains a span of `ms`; what the parts do not cover goes to `rest`. `excess` ranks parts for the main cause. */
  build(
    ms: number,
    rest: Cause,
    nameOf: (order: number) => RequestName,
    excess: (part: ExplanationPart) => number = (part) => part.ms,
  ): Explanation {
    let known = 0;
    for (const part of this.#parts.values()) known += part.ms;
    if (known < ms) this.add(rest, ms - known);
    // Clocks are read at different points: the parts may slightly exceed the span.
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
