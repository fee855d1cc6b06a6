/** The share of one sequence in a step. */
export interface StepShare {
  /** The request's number in the engine, in order of arrival. */
  readonly order: number;
  /** The sequence's index in its request. */
  readonly sequence: number;
  /** Tokens computed for it, draft tokens included. */
  readonly tokens: number;
  /** Draft tokens among these. */
  readonly draftTokens: number;
  /** It computed its prompt, or recomputed after a preemption. */
  readonly isPrefill: boolean;
  /** Its share of the step's `computeMs`. */
  readonly ms: number;
}

/** A logged step. Times in ms, on `performance.now()`'s clock. */
export interface LoggedStep {
  readonly step: number;
  readonly startMs: number;
  /** Until its results were applied. */
  readonly durationMs: number;
  /** Time in the backend; the shares' `ms` add up to it. */
  readonly computeMs: number;
  readonly prefillTokens: number;
  readonly decodeTokens: number;
  /** Draft tokens verified in addition. */
  readonly draftTokens: number;
  readonly blocksUsed: number;
  readonly blocksEvicted: number;
  readonly preemptions: number;
  readonly shares: readonly StepShare[];
}

/** What is known of a step when it ends. */
export type StepEnd = Pick<
  LoggedStep,
  "startMs" | "durationMs" | "blocksUsed" | "blocksEvicted" | "preemptions"
>;

/** Steps with fewer prompt tokens do not count for the cost of a prompt token, which is a median over these many steps. */
const minMeasuredTokens = 64;
const numMeasuredSteps = 64;

/**
 * The latest steps and the sequences that ran in them, in rings of typed arrays, so that logging a step allocates nothing. A
 * step is kept until either ring overwrites it.
 */
export class StepLog {
  readonly #maxSteps: number;
  readonly #maxShares: number;
  readonly #startMs: Float64Array;
  readonly #durationMs: Float64Array;
  readonly #computeMs: Float64Array;
  readonly #prefillTokens: Uint32Array;
  readonly #decodeTokens: Uint32Array;
  readonly #draftTokens: Uint32Array;
  readonly #blocksUsed: Uint32Array;
  readonly #blocksEvicted: Uint32Array;
  readonly #preemptions: Uint32Array;
  /** Number of the step's first share, counted over all steps ever. */
  readonly #firstShare: Float64Array;
  readonly #order: Float64Array;
  readonly #sequence: Uint32Array;
  readonly #tokens: Uint32Array;
  readonly #shareDraftTokens: Uint32Array;
  readonly #isPrefill: Uint8Array;
  /** A share's work until its step is measured, then its ms. */
  readonly #shareMs: Float64Array;
  #prefillMs = 0;
  #numSteps = 0;
  #numShares = 0;

  constructor(maxSteps = 16_384, maxShares = 131_072) {
    this.#maxSteps = maxSteps;
    this.#maxShares = maxShares;
    this.#startMs = new Float64Array(maxSteps);
    this.#durationMs = new Float64Array(maxSteps);
    this.#computeMs = new Float64Array(maxSteps);
    this.#prefillTokens = new Uint32Array(maxSteps);
    this.#decodeTokens = new Uint32Array(maxSteps);
    this.#draftTokens = new Uint32Array(maxSteps);
    this.#blocksUsed = new Uint32Array(maxSteps);
    this.#blocksEvicted = new Uint32Array(maxSteps);
    this.#preemptions = new Uint32Array(maxSteps);
    this.#firstShare = new Float64Array(maxSteps + 1);
    this.#order = new Float64Array(maxShares);
    this.#sequence = new Uint32Array(maxShares);
    this.#tokens = new Uint32Array(maxShares);
    this.#shareDraftTokens = new Uint32Array(maxShares);
    this.#isPrefill = new Uint8Array(maxShares);
    this.#shareMs = new Float64Array(maxShares);
  }

  /** Number of the step that runs, or runs next. */
  get current(): number {
    return this.#numSteps;
  }

  /** Adds a sequence to the running step; `work` is its relative cost in any unit, `tokens` include `draftTokens`. */
  add(
    order: number,
    sequence: number,
    tokens: number,
    isPrefill: boolean,
    work: number,
    draftTokens = 0,
  ): void {
    const at = this.#numShares % this.#maxShares;
    this.#order[at] = order;
    this.#sequence[at] = sequence;
    this.#tokens[at] = tokens;
    this.#shareDraftTokens[at] = draftTokens;
    this.#isPrefill[at] = isPrefill ? 1 : 0;
    this.#shareMs[at] = work;
    this.#numShares += 1;
  }

  /** Divides the compute time of the running step among its shares, in proportion to their work. */
  measure(computeMs: number): void {
    const at = this.#numSteps % this.#maxSteps;
    const first = this.#startOf(this.#numSteps);
    let work = 0;
    for (let share = first; share < this.#numShares; share += 1)
      work += this.#shareMs[share % this.#maxShares]!;
    const msPerWork = work > 0 ? computeMs / work : 0;
    let prefillTokens = 0;
    let decodeTokens = 0;
    let draftTokens = 0;
    let prefillMs = 0;
    for (let share = first; share < this.#numShares; share += 1) {
      const index = share % this.#maxShares;
      this.#shareMs[index]! *= msPerWork;
      const draft = this.#shareDraftTokens[index]!;
      draftTokens += draft;
      if (this.#isPrefill[index] === 1) {
        prefillTokens += this.#tokens[index]! - draft;
        prefillMs += this.#shareMs[index]!;
      } else decodeTokens += this.#tokens[index]! - draft;
    }
    this.#prefillMs = prefillMs;
    this.#computeMs[at] = computeMs;
    this.#prefillTokens[at] = prefillTokens;
    this.#decodeTokens[at] = decodeTokens;
    this.#draftTokens[at] = draftTokens;
  }

  /** Milliseconds of the `index`-th share of the running step, once it is measured. */
  shareMs(index: number): number {
    return this.#shareMs[(this.#startOf(this.#numSteps) + index) % this.#maxShares] ?? 0;
  }

  /** Compute time of the prompt tokens of the step measured last. */
  get prefillMs(): number {
    return this.#prefillMs;
  }

  /** Ends the measured step. */
  end(step: StepEnd): void {
    const at = this.#numSteps % this.#maxSteps;
    this.#startMs[at] = step.startMs;
    this.#durationMs[at] = step.durationMs;
    this.#blocksUsed[at] = step.blocksUsed;
    this.#blocksEvicted[at] = step.blocksEvicted;
    this.#preemptions[at] = step.preemptions;
    this.#numSteps += 1;
    this.#firstShare[this.#numSteps % (this.#maxSteps + 1)] = this.#numShares;
  }

  /** The oldest step that is kept completely. */
  get oldest(): number {
    let oldest = Math.max(0, this.#numSteps - this.#maxSteps);
    while (oldest < this.#numSteps && this.#startOf(oldest) < this.#numShares - this.#maxShares) oldest += 1;
    return oldest;
  }

  /** The number of sequences in a step, in constant time; undefined as for `at`. */
  numSharesOf(step: number): number | undefined {
    return this.#isRemembered(step) ? this.#startOf(step + 1) - this.#startOf(step) : undefined;
  }

  /** Undefined for a step that was overwritten or has not ended. */
  at(step: number): LoggedStep | undefined {
    if (!this.#isRemembered(step)) return undefined;
    const first = this.#startOf(step);
    const at = step % this.#maxSteps;
    const shares: StepShare[] = [];
    for (let share = first; share < this.#startOf(step + 1); share += 1) {
      const index = share % this.#maxShares;
      shares.push({
        order: this.#order[index]!,
        sequence: this.#sequence[index]!,
        tokens: this.#tokens[index]!,
        draftTokens: this.#shareDraftTokens[index]!,
        isPrefill: this.#isPrefill[index] === 1,
        ms: this.#shareMs[index]!,
      });
    }
    return {
      step,
      startMs: this.#startMs[at]!,
      durationMs: this.#durationMs[at]!,
      computeMs: this.#computeMs[at]!,
      prefillTokens: this.#prefillTokens[at]!,
      decodeTokens: this.#decodeTokens[at]!,
      draftTokens: this.#draftTokens[at]!,
      blocksUsed: this.#blocksUsed[at]!,
      blocksEvicted: this.#blocksEvicted[at]!,
      preemptions: this.#preemptions[at]!,
      shares,
    };
  }

  /** The logged steps in flight within a span of time, oldest first. */
  *between(fromMs: number, toMs: number): Generator<LoggedStep> {
    let low = this.oldest;
    let high = this.#numSteps;
    while (low < high) {
      const middle = Math.floor((low + high) / 2);
      const at = middle % this.#maxSteps;
      if (this.#startMs[at]! + this.#durationMs[at]! <= fromMs) low = middle + 1;
      else high = middle;
    }
    for (let step = low; step < this.#numSteps; step += 1) {
      const logged = this.at(step);
      if (logged === undefined || logged.startMs >= toMs) return;
      yield logged;
    }
  }

  /** Cost of a prompt token in steps full of them: the median over the latest such steps. Undefined if there are none. */
  get msPerPromptToken(): number | undefined {
    const rates: number[] = [];
    const { oldest } = this;
    for (let step = this.#numSteps - 1; step >= oldest && rates.length < numMeasuredSteps; step -= 1) {
      const at = step % this.#maxSteps;
      const tokens = this.#prefillTokens[at]!;
      if (tokens >= minMeasuredTokens) rates.push(this.#computeMs[at]! / tokens);
    }
    rates.sort((a, b) => a - b);
    return rates[Math.floor((rates.length - 1) / 2)];
  }

  #isRemembered(step: number): boolean {
    return (
      Number.isInteger(step) &&
      step >= 0 &&
      step < this.#numSteps &&
      step >= this.#numSteps - this.#maxSteps &&
      this.#startOf(step) >= this.#numShares - this.#maxShares
    );
  }

  #startOf(step: number): number {
    return this.#firstShare[step % (this.#maxSteps + 1)]!;
  }
}
