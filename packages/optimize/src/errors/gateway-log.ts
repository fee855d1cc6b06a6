import { asArray, asObject } from "@octavo/protocol";

/** One target's part in a call. */
export interface LoggedAttempt {
  readonly target: string;
  readonly outcome: string;
  /** Of HTTP, where the target answered. */
  readonly status: number | undefined;
  /** Ms since 1970. */
  readonly startMs: number;
  readonly endMs: number;
  /** Its place among the line's attempts; undefined where the line names its only one as the target. */
  readonly index: number | undefined;
}

/** A line of the gateway's access log. */
export interface LoggedCall {
  readonly fields: Readonly<Record<string, unknown>>;
  readonly atMs: number;
  readonly attempts: readonly LoggedAttempt[];
}

/** Ends of attempts that say nothing about the target. */
export const noFault: ReadonlySet<string> = new Set(["ok", "cancelled", "pending", "request_cancelled"]);

/** The calls among lines of the log; other lines are left out. */
export function loggedCalls(lines: Iterable<unknown>): readonly LoggedCall[] {
  return [...lines].flatMap((line) => loggedCall(line) ?? []);
}

function loggedCall(line: unknown): LoggedCall | undefined {
  const fields = asObject(line);
  const atMs = Date.parse(String(fields?.["time"]));
  if (fields === undefined || Number.isNaN(atMs) || typeof fields["request_id"] !== "string")
    return undefined;
  const listed = asArray(fields["attempts"]).map((value, index): LoggedAttempt => {
    const { target, outcome, status, started_ms: started, ended_ms: ended } = asObject(value) ?? {};
    return {
      target: String(target),
      outcome: String(outcome),
      status: typeof status === "number" ? status : undefined,
      startMs: atMs + Number(started ?? 0),
      endMs: atMs + Number(ended ?? started ?? 0),
      index,
    };
  });
  const { target } = fields;
  const only = typeof target === "string" && listed.length === 0;
  const whole: LoggedAttempt = {
    target: String(target),
    outcome: "ok",
    status: 200,
    startMs: atMs,
    endMs: atMs + Number(fields["duration_ms"] ?? 0),
    index: undefined,
  };
  return { fields, atMs, attempts: only ? [whole] : listed };
}

/** Who was busy when, by target. */
export class TargetLoad {
  readonly #attempts = new Map<string, LoggedAttempt[]>();
  readonly #longestMs = new Map<string, number>();

  constructor(calls: readonly LoggedCall[]) {
    for (const { attempts } of calls)
      for (const attempt of attempts) {
        const own = this.#attempts.get(attempt.target) ?? [];
        own.push(attempt);
        this.#attempts.set(attempt.target, own);
        const longest = this.#longestMs.get(attempt.target) ?? 0;
        this.#longestMs.set(attempt.target, Math.max(longest, attempt.endMs - attempt.startMs));
      }
    for (const own of this.#attempts.values()) own.sort((a, b) => a.startMs - b.startMs);
  }

  /** Other attempts at its target that were under way when it began. */
  besides({ target, startMs }: LoggedAttempt): number {
    const own = this.#attempts.get(target) ?? [];
    const earliest = startMs - (this.#longestMs.get(target) ?? 0);
    let count = 0;
    for (let at = firstFrom(own, earliest); at < own.length && own[at]!.startMs < startMs; at++)
      if (own[at]!.endMs > startMs) count += 1;
    return count;
  }

  /** Of the attempts at a target, those that it failed. */
  failedShare(target: string): number {
    const own = this.#attempts.get(target) ?? [];
    return own.filter(({ outcome }) => !noFault.has(outcome)).length / Math.max(1, own.length);
  }
}

function firstFrom(sorted: readonly LoggedAttempt[], ms: number): number {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle]!.startMs < ms) low = middle + 1;
    else high = middle;
  }
  return low;
}
