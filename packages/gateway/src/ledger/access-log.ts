import { closeSync, openSync, write, writeSync } from "node:fs";
import { OctavoError } from "@octavo/protocol";
import type { LedgerEntry } from "../exchange/ledger-entry.js";

/** Lines wait at most so long, or until there are so many characters of them. */
const maxWaitMs = 100;
const maxWaiting = 64 * 1024;
/** While the disk or the pipe does not keep up, lines beyond this are dropped, and counted. */
const maxBehind = 8 * 1024 * 1024;

/** One line of JSON per call and per notable event, to stdout or a file; written many at a time. Holds no prompts, answers or keys. */
export class AccessLog {
  readonly #fd: number | undefined;
  #waiting = "";
  #timer: NodeJS.Timeout | undefined;
  #behind = 0;
  #dropped = 0;

  /** `stdout`, `off`, or a path that is appended to. Throws `invalid_option`. */
  constructor(destination: string) {
    if (destination === "off") this.#fd = undefined;
    else if (destination === "stdout") this.#fd = 1;
    else {
      try {
        this.#fd = openSync(destination, "a", 0o640);
      } catch (cause) {
        throw new OctavoError(
          "invalid_option",
          `access_log: cannot write ${destination}: ${(cause as Error).message}`,
          {
            param: "access_log",
            cause,
          },
        );
      }
    }
  }

  get isOn(): boolean {
    return this.#fd !== undefined;
  }

  add(fields: object): void {
    if (this.#fd === undefined) return;
    if (this.#behind > maxBehind) {
      this.#dropped += 1;
      return;
    }
    this.#waiting += `${JSON.stringify(fields)}\n`;
    if (this.#waiting.length >= maxWaiting) this.#flush();
    else this.#timer ??= setTimeout(() => this.#flush(), maxWaitMs).unref();
  }

  close(): void {
    clearTimeout(this.#timer);
    if (this.#fd === undefined) return;
    if (this.#waiting !== "") writeSync(this.#fd, this.#waiting);
    this.#waiting = "";
    if (this.#fd > 2) closeSync(this.#fd);
  }

  #flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#fd === undefined || this.#waiting === "") return;
    const dropped =
      this.#dropped === 0 ? "" : `${JSON.stringify({ event: "lines_dropped", count: this.#dropped })}\n`;
    this.#dropped = 0;
    const bytes = Buffer.from(this.#waiting + dropped);
    this.#waiting = "";
    this.#behind += bytes.length;
    write(this.#fd, bytes, () => {
      this.#behind -= bytes.length;
    });
  }
}

/** A call as a line of the log. */
export function accessLine(entry: LedgerEntry): object {
  const { usage, winner } = entry;
  return {
    time: new Date(entry.arrivedEpochMs).toISOString(),
    request_id: entry.requestId,
    trace_id: entry.traceId,
    operation: entry.operation,
    status: entry.status,
    error: entry.errorCode,
    model: entry.requestedModel,
    stream: entry.isStream,
    tenant: entry.tenant,
    key_id: entry.keyId,
    route: entry.route,
    strategy: entry.strategy,
    target: winner?.target,
    model_used: winner?.model,
    first_byte_ms: round(entry.firstByteMs),
    duration_ms: round(entry.durationMs),
    prompt_tokens: usage?.promptTokens,
    cached_tokens: usage?.cachedTokens,
    predicted_cached_tokens: winner?.predictedCachedTokens,
    completion_tokens: usage?.completionTokens,
    cost_usd: entry.costUsd,
    cache: entry.cache === "off" ? undefined : entry.cache,
    guardrails: entry.guardrails.length === 0 ? undefined : entry.guardrails,
    cohort: entry.cohort,
    escalation: entry.escalation,
    attempts:
      entry.attempts.length < 2 && winner !== undefined
        ? undefined
        : entry.attempts.map(({ target, reason, outcome, status, startedMs, endedMs }) => ({
            target,
            reason,
            outcome,
            status,
            started_ms: round(startedMs),
            ended_ms: round(endedMs),
          })),
  };
}

function round(ms: number | undefined): number | undefined {
  return ms === undefined ? undefined : Math.round(ms * 100) / 100;
}
