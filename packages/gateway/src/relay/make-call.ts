import { asRecord, type JsonFields } from "@octavo/protocol";
import type { LiveExchange } from "../exchange/live-exchange.js";
import { withFields } from "../exchange/request-body.js";
import { tenantFields } from "../exchange/tenant-marks.js";
import type { WireCall } from "../families/family.js";
import type { LiveTarget } from "../targets/live-target.js";
import type { Continuation } from "./continuation.js";

export interface CallOptions {
  readonly target: LiveTarget;
  /** The target's own name. */
  readonly model: string;
  /** vLLM's `priority`, of the lane. */
  readonly priority: number;
  /** What the client has of the answer already, where the target is to go on from there. */
  readonly continuation: Continuation | undefined;
}

/**
 * The call of one target: the client's fields with what the gateway adds. Added fields are written behind the client's own
 * bytes, so that a long prompt is not serialised again.
 */
export function makeCall(exchange: LiveExchange, options: CallOptions): WireCall {
  const { target, model, priority, continuation } = options;
  const { operation, body, caller } = exchange;
  const { fields } = body;
  const isStream = fields["stream"] === true;
  const added: Record<string, unknown> = { ...tenantFields(target, caller.tenant, operation, fields) };
  if (isStream && target.row.streamUsage && (operation === "chat" || operation === "completions")) {
    const asked = asRecord(fields["stream_options"]);
    if (asked["include_usage"] !== true) added["stream_options"] = { ...asked, include_usage: true };
  }
  if (continuation !== undefined && isResumable(exchange, target)) {
    added["return_token_ids"] = true;
    if (fields["seed"] === undefined || fields["seed"] === null) added["seed"] = continuation.seed;
    // the last one may have ended the answer; it is computed again
    const emitted = continuation.tokenIds.slice(0, -1);
    if (emitted.length > 0) added["octavo"] = { ...asRecord(fields["octavo"]), emitted_token_ids: emitted };
  }
  if (target.row.priority && priority !== 0 && fields["priority"] === undefined) added["priority"] = priority;
  const isAsItCame = !body.isChanged && !Object.keys(added).some((name) => Object.hasOwn(fields, name));
  return {
    operation,
    model,
    isStream,
    fields: Object.keys(added).length === 0 ? fields : withFields(fields, added),
    bytes: isAsItCame ? withAddedFields(body.bytes, added) : undefined,
    apiVersion: target.config.api_version,
    basePath: target.basePath,
  };
}

/** Whether an answer of this target can be continued by another of its kind, token by token. */
export function isResumable({ operation, body }: LiveExchange, { row }: LiveTarget): boolean {
  const { fields } = body;
  const n = fields["n"] ?? 1;
  return (
    row.resumes &&
    (operation === "chat" || operation === "completions") &&
    fields["stream"] === true &&
    n === 1
  );
}

/** Puts fields behind the last one of an object; the object has at least one, the model's name. */
function withAddedFields(bytes: Buffer, added: JsonFields): Buffer {
  const names = Object.keys(added);
  if (names.length === 0) return bytes;
  const end = bytes.lastIndexOf(0x7d);
  return Buffer.concat([bytes.subarray(0, end), Buffer.from(`,${JSON.stringify(added).slice(1)}`)]);
}
