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
import { type LoggedCall, loggedCalls, noFault, TargetLoad } from "./gateway-log.js";

/**
 * Findings in lines of the gateway's access log: attempts that a target failed, so that the call went elsewhere or ended, calls that
 * were refused before any target was asked, and late first bytes. Lines that are not calls are left out. `unverified`: as in
 * `findingsOfSpan`.
 */
export function findingsOfGatewayLog(
  lines: Iterable<unknown>,
  { firstTokenMs = 1000 }: FindingLimits = {},
): { readonly findings: readonly CallFinding[]; readonly calls: number; readonly unverified: number } {
  const calls = loggedCalls(lines);
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
