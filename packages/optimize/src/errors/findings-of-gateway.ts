import { asArray, asObject } from "@octavo/protocol";
import {
  type CallFinding,
  failedAttemptText,
  isVerified,
  type NewFinding,
  type Quote,
  withId,
} from "./finding.js";
import type { FindingLimits } from "./findings-of-span.js";

interface Attempt {
  readonly target: string;
  readonly outcome: string;
  /** Ms since 1970. */
  readonly startMs: number;
  readonly endMs: number;
  /** Its place among the line's attempts; undefined where the line names its only one as the target. */
  readonly index: number | undefined;
}

interface LoggedCall {
  readonly fields: Readonly<Record<string, unknown>>;
  readonly atMs: number;
  readonly attempts: readonly Attempt[];
}

/** Ends of attempts that say nothing about the target. */
const noFault: ReadonlySet<string> = new Set(["ok", "cancelled", "pending", "request_cancelled"]);

/**
 * Findings in lines of the gateway's access log: attempts that a target failed, so that the call went elsewhere or ended, calls that
 * were refused before any target was asked, and late first bytes. Lines that are not calls are left out. `unverified`: as in
 * `findingsOfSpan`.
 */
export function findingsOfGatewayLog(
  lines: Iterable<unknown>,
  { firstTokenMs = 1000 }: FindingLimits = {},
): { readonly findings: readonly CallFinding[]; readonly calls: number; readonly unverified: number } {
  const calls = [...lines].flatMap((line) => loggedCall(line) ?? []);
  const load = new TargetLoad(calls);
  const found = calls.flatMap((call) =>
    findingsOf(call, firstTokenMs, load).map((finding) => ({ finding, call })),
  );
  const verified = found.filter(({ finding, call }) => isVerified(finding, textsOf(call)));
  return {
    findings: verified.map(({ finding }) => withId(finding)),
    calls: calls.length,
    unverified: found.length - verified.length,
  };
}

function loggedCall(line: unknown): LoggedCall | undefined {
  const fields = asObject(line);
  const atMs = Date.parse(String(fields?.["time"]));
  if (fields === undefined || Number.isNaN(atMs) || typeof fields["request_id"] !== "string")
    return undefined;
  const listed = asArray(fields["attempts"]).map((value, index): Attempt => {
    const { target, outcome, started_ms: started, ended_ms: ended } = asObject(value) ?? {};
    return {
      target: String(target),
      outcome: String(outcome),
      startMs: atMs + Number(started ?? 0),
      endMs: atMs + Number(ended ?? started ?? 0),
      index,
    };
  });
  const { target } = fields;
  const only = typeof target === "string" && listed.length === 0;
  const whole: Attempt = {
    target: String(target),
    outcome: "ok",
    startMs: atMs,
    endMs: atMs + Number(fields["duration_ms"] ?? 0),
    index: undefined,
  };
  return { fields, atMs, attempts: only ? [whole] : listed };
}

function findingsOf(call: LoggedCall, firstTokenMs: number, load: TargetLoad): readonly NewFinding[] {
  const { fields, atMs, attempts } = call;
  const { error, first_byte_ms: firstByteMs, target } = fields;
  const text = (name: string): string | undefined => {
    const value = fields[name];
    return typeof value === "string" && value !== "" ? value : undefined;
  };
  const quote = (field: string): Quote => ({ field, text: textsOf(call).get(field) ?? "" });
  const shared = {
    kind: "gateway",
    traceId: text("trace_id") ?? text("request_id") ?? "",
    epochMs: atMs,
    tenant: text("tenant"),
    replica: undefined,
    model: text("model"),
    route: text("route"),
    lostMs: undefined,
  } as const;
  const failed = attempts.filter(({ outcome }) => !noFault.has(outcome));
  const found: NewFinding[] = failed.map((attempt) => ({
    ...shared,
    cause: attempt.outcome,
    target: attempt.target,
    description: failedAttemptText(attempt.target, attempt.outcome),
    quotes: [quote(`attempts[${attempt.index}].target`), quote(`attempts[${attempt.index}].outcome`)],
    outstanding: load.besides(attempt),
    failedShare: load.failedShare(attempt.target),
  }));
  if (failed.length === 0 && typeof error === "string" && !noFault.has(error))
    found.push({ ...shared, cause: error, description: `refused with ${error}`, quotes: [quote("error")] });
  if (typeof firstByteMs === "number" && firstByteMs >= firstTokenMs && typeof target === "string")
    found.push({
      ...shared,
      cause: "slow_target",
      target,
      description: `the first byte of ${target} was late`,
      quotes: [quote("first_byte_ms"), quote("target")],
      lostMs: firstByteMs,
    });
  return found;
}

function textsOf({ fields }: LoggedCall): ReadonlyMap<string, string> {
  const texts = new Map<string, string>();
  for (const [name, value] of Object.entries(fields))
    if (typeof value === "string" || typeof value === "number") texts.set(name, String(value));
  for (const [index, attempt] of asArray(fields["attempts"]).entries())
    for (const [name, value] of Object.entries(asObject(attempt) ?? {}))
      texts.set(`attempts[${index}].${name}`, String(value));
  return texts;
}

/** Who was busy when, by target. */
class TargetLoad {
  readonly #attempts = new Map<string, Attempt[]>();
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
  besides({ target, startMs }: Attempt): number {
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

function firstFrom(sorted: readonly Attempt[], ms: number): number {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle]!.startMs < ms) low = middle + 1;
    else high = middle;
  }
  return low;
}
