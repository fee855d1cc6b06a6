import {
  drainThenEnd,
  errorCodeHeader,
  type JsonFields,
  type OctavoError,
  toErrorBody,
  toMessagesErrorBody,
} from "@octavo/protocol";
import type { LiveExchange } from "../exchange/live-exchange.js";
import { type HeaderPrefix, headersOf } from "../ledger/answer-headers.js";
import { closeAccount } from "../ledger/close-account.js";

/** How answers say what they cost and where they came from. */
export interface AnswerWriting {
  readonly prefixes: readonly HeaderPrefix[];
  readonly inLastEvent: boolean;
  readonly stallMs: number;
}

/** Sends an answer in one piece: the target's text where nobody changed it. One string leaves in one write with the headers. */
export function sendWhole(
  exchange: LiveExchange,
  { prefixes }: AnswerWriting,
  {
    status,
    json,
    text,
  }: { readonly status: number; readonly json: JsonFields; readonly text: string | undefined },
): void {
  const { ledger, response } = exchange;
  if (response.destroyed || response.writableEnded) return;
  const body = text ?? JSON.stringify(json);
  ledger.status = status;
  ledger.firstByteMs ??= exchange.elapsedMs();
  closeAccount(exchange);
  const headers = headersOf(ledger, prefixes, true);
  headers.push("content-type", "application/json", "content-length", String(Buffer.byteLength(body)));
  response.writeHead(status, headers);
  response.end(body);
}

/** Sends an error in OpenAI's shape, or in that of `/messages`; the account goes with it as with every answer. */
export function sendFailure(exchange: LiveExchange, { prefixes }: AnswerWriting, error: OctavoError): void {
  const { ledger, response, operation } = exchange;
  ledger.errorCode = error.code;
  if (response.destroyed || response.writableEnded) return;
  const status = statusOf(error);
  ledger.status = status;
  closeAccount(exchange);
  const body = Buffer.from(
    JSON.stringify(operation === "messages" ? toMessagesErrorBody(error) : toErrorBody(error)),
  );
  response.writeHead(status, [
    "content-type",
    "application/json",
    "content-length",
    String(body.length),
    errorCodeHeader,
    error.code,
    ...(error.retryAfterSeconds === undefined
      ? []
      : ["retry-after", String(Math.ceil(error.retryAfterSeconds))]),
    // the official clients try again on 429 by themselves; a spent budget stays spent
    ...(error.retryable ? [] : ["x-should-retry", "false"]),
    ...(error.code === "unauthorized" ? ["www-authenticate", "Bearer"] : []),
    ...headersOf(ledger, prefixes, true),
  ]);
  if (response.req.complete) response.end(body);
  else {
    response.write(body);
    drainThenEnd(response.req, response);
  }
}

/** A target's refusal of the request keeps its status. */
function statusOf(error: OctavoError): number {
  if (error.code !== "target_rejected") return error.status;
  const cause = error.cause as { readonly status?: unknown } | undefined;
  return typeof cause?.status === "number" ? cause.status : error.status;
}
