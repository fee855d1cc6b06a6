const everyMs = 60_000;

/** Says what is wrong with where records go, at most once a minute; what is wrong in between is only counted, by the sender. */
export class ProblemReport {
  readonly #what: string;
  readonly #onProblem: ((message: string) => void) | undefined;
  #lastMs = Number.NEGATIVE_INFINITY;

  /** `what` goes where, such as `traces to http://collector:4318/v1/traces`; it begins each message. */
  constructor(what: string, onProblem: ((message: string) => void) | undefined) {
    this.#what = what;
    this.#onProblem = onProblem;
  }

  tell(problem: string): void {
    const now = performance.now();
    if (now - this.#lastMs < everyMs) return;
    this.#lastMs = now;
    this.#onProblem?.(`${this.#what}: ${problem}`);
  }
}

/** What was thrown, in words. */
export function failureReason(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}
