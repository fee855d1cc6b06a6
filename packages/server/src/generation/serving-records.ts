import type { RequestEvidence } from "@octavo/engine";
import type { OctavoNotes, ServingRecordInfo } from "@octavo/protocol";
import type { Service } from "../service.js";

/** How the engine knows the `index`-th of a request's prompts: by the exchange's id, numbered where they are several. */
export function engineRequestId(requestId: string, index: number, numPrompts: number): string {
  return numPrompts === 1 ? requestId : `${requestId}-${index}`;
}

/** What a chat's answer says of how it was served, when asked for. */
export function chatNotes(service: Service, wanted: boolean, requestId: string): OctavoNotes | undefined {
  if (!wanted) return undefined;
  const evidence = service.model.engine.evidence.request(requestId);
  return evidence && { serving_record: servingRecordInfo(evidence) };
}

/** The same of all prompts of a completion. */
export function completionNotes(
  service: Service,
  wanted: boolean,
  requestId: string,
  numPrompts: number,
): OctavoNotes | undefined {
  if (!wanted) return undefined;
  const ids = Array.from({ length: numPrompts }, (_, index) => engineRequestId(requestId, index, numPrompts));
  const found = ids.map((id) => service.model.engine.evidence.request(id));
  return { serving_records: found.flatMap((evidence) => (evidence ? [servingRecordInfo(evidence)] : [])) };
}

/** Evidence as it goes over the wire: names in snake case, ms to the microsecond. */
export function servingRecordInfo({ record, ...rest }: RequestEvidence): ServingRecordInfo {
  return toWire({ ...rest, ...record }) as ServingRecordInfo;
}

function toWire(value: unknown): unknown {
  if (typeof value === "number") return Math.round(value * 1000) / 1000;
  if (Array.isArray(value)) return value.map(toWire);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).filter(([, entry]) => entry !== undefined);
  return Object.fromEntries(entries.map(([name, entry]) => [snakeCased(name), toWire(entry)]));
}

function snakeCased(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
