/** Calls after which half of what was measured is forgotten. */
const halfLifeCalls = 200;
const kept = 0.5 ** (1 / halfLifeCalls);
/** Before so many calls a measurement says little. */
const leastCalls = 10;

/**
 * How long a target works for a token, as measured here: the time during which it had calls, against the tokens that they took.
 * Calls at the same time share it, so that the times of all calls add up to the time that the target was busy.
 */
export class WorkMeter {
  #numOpen = 0;
  #sinceMs = 0;
  #busyMs = 0;
  #tokens = 0;
  #calls = 0;

  begin(nowMs: number): void {
    this.#advance(nowMs);
    this.#numOpen += 1;
  }

  /** A call ends that took so many tokens of computing: of the prompt those that were not cached, and those of the answer. */
  end(nowMs: number, tokens: number): void {
    this.#advance(nowMs);
    this.#numOpen -= 1;
    if (tokens <= 0) return;
    this.#busyMs *= kept;
    this.#tokens = this.#tokens * kept + tokens;
    this.#calls += 1;
  }

  /** Undefined until enough calls have ended. */
  get msPerToken(): number | undefined {
    return this.#calls < leastCalls ? undefined : this.#busyMs / this.#tokens;
  }

  #advance(nowMs: number): void {
    if (this.#numOpen > 0) this.#busyMs += nowMs - this.#sinceMs;
    this.#sinceMs = nowMs;
  }
}
