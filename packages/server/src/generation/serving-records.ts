import type { Explanation, ExplanationPart, Neighbours, RequestEvidence } from "@octavo/engine";
import type { NeighboursInfo, OctavoFields, OctavoNotes, ServingRecordInfo } from "@octavo/protocol";
import type { Service } from "../service.js";
import { isOperators } from "../tenants/ownership.js";
import { otherTenants } from "../tenants/tenant-labels.js";
import type { LogitsDigests } from "./run.js";

/** The engine's id of the `index`-th prompt: the exchange's id, numbered if there are several prompts. */
export function engineRequestId(requestId: string, index: number, numPrompts: number): string {
  return numPrompts === 1 ? requestId : `${requestId}-${index}`;
}

/** A chat answer's notes on how it was served, as requested. */
export function chatNotes(
  service: Service,
  wanted: Wishes,
  requestId: string,
  digests: LogitsDigests | undefined,
): OctavoNotes | undefined {
  if (!wantsNotes(wanted)) return undefined;
  const evidence = wanted?.include_serving_record
    ? service.model.engine.evidence.request(requestId)
    : undefined;
  return {
    ...(evidence && { serving_record: servingRecordInfo(service, evidence) }),
    ...(digests && { logits_digests: digests }),
  };
}

/** Notes that a request may ask for. */
type Wishes = Pick<OctavoFields, "include_serving_record" | "include_logits_digest"> | null | undefined;

export function wantsNotes(wanted: Wishes): boolean {
  return wanted?.include_serving_record === true || wanted?.include_logits_digest === true;
}

/** The notes of all prompts of a completion. */
export function completionNotes(
  service: Service,
  wanted: Wishes,
  requestId: string,
  digests: readonly (LogitsDigests | undefined)[],
): OctavoNotes | undefined {
  if (!wantsNotes(wanted)) return undefined;
  const given = digests.flatMap((ofPrompt) => ofPrompt ?? []);
  return {
    ...(wanted?.include_serving_record === true && {
      serving_records: promptRecords(service, requestId, digests.length),
    }),
    ...(given.length > 0 && { logits_digests: given }),
  };
}

function promptRecords(
  service: Service,
  requestId: string,
  numPrompts: number,
): readonly ServingRecordInfo[] {
  const ids = Array.from({ length: numPrompts }, (_, index) => engineRequestId(requestId, index, numPrompts));
  const found = ids.map((id) => service.model.engine.evidence.request(id));
  return found.flatMap((evidence) => (evidence ? [servingRecordInfo(service, evidence)] : []));
}

/**
 * Evidence on the wire: snake_case names, ms rounded to the microsecond. Other tenants are not named where any key is not the
 * operator's.
 */
export function servingRecordInfo(
  service: Pick<Service, "config">,
  evidence: RequestEvidence,
): ServingRecordInfo {
  const { record, ...rest } = areTenantsSecret(service) ? withoutOthers(evidence) : evidence;
  return toWire({ ...rest, ...record }) as ServingRecordInfo;
}

/** The neighbours of a request, likewise. */
export function neighboursInfo(service: Pick<Service, "config">, found: Neighbours): NeighboursInfo {
  const { tenant } = found.request;
  if (!areTenantsSecret(service)) return toWire(found) as NeighboursInfo;
  const neighbours = found.neighbours.map((one) =>
    one.tenant === tenant ? one : { ...one, tenant: otherTenants },
  );
  return toWire({ ...found, neighbours }) as NeighboursInfo;
}

function areTenantsSecret({ config }: Pick<Service, "config">): boolean {
  return config.tenants.keys.some((key) => !isOperators(key));
}

function withoutOthers(evidence: RequestEvidence): RequestEvidence {
  const { tenant, firstToken, slowGaps } = evidence;
  return {
    ...evidence,
    firstToken: firstToken && explanationWithoutOthers(firstToken, tenant),
    slowGaps: slowGaps.map((gap) => explanationWithoutOthers(gap, tenant)),
  };
}

function explanationWithoutOthers<T extends Explanation>(explanation: T, own: string): T {
  return { ...explanation, parts: explanation.parts.map((part) => partWithoutOthers(part, own)) };
}

function partWithoutOthers({ requests, tenants, ...part }: ExplanationPart, own: string): ExplanationPart {
  const foreign = tenants?.filter(({ tenant }) => tenant !== own) ?? [];
  const sum = (of: "ms" | "tokens"): number => foreign.reduce((total, one) => total + one[of], 0);
  return {
    ...part,
    ...(requests !== undefined && {
      requests: requests.map((one) => (one.tenant === own ? one : { ...one, tenant: otherTenants })),
    }),
    ...(tenants !== undefined && {
      tenants: [
        ...tenants.filter(({ tenant }) => tenant === own),
        ...(foreign.length === 0 ? [] : [{ tenant: otherTenants, ms: sum("ms"), tokens: sum("tokens") }]),
      ].toSorted((a, b) => b.ms - a.ms),
    }),
  };
}

function toWire(value: unknown): unknown {
  if (typeof value === "number") return Math.round(value * 1000) / 1000;
  if (Array.isArray(value)) return value.map(toWire);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).filter(([, entry]) => entry !== undefined);
  return Object.fromEntries(entries.map(([name, entry]) => [snakeCased(name), toWire(entry)]));
}

export function snakeCased(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
