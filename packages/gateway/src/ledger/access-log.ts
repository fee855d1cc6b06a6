import { closeSync, openSync, write } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { OctavoError } from "@octavo/protocol";
import type { LedgerEntry } from "../exchange/ledger-entry.js";

/** Lines wait at most so long, or until there are so many characters of them. */
const maxWaitMs = 100;
const maxWaiting = 64 * 1024;
/** While the disk or the pipe does not keep up, lines beyond this are dropped, and counted. */
const maxBehind = 8 * 1024 * 1024;
/** A pipe whose reader is behind is tried again so often. */
const retryMs = 20;
/** A reader that never comes back does not keep the gateway from ending. */
const maxTriesAtClose = 50;

const writeSome = promisify(write);

/** One line of JSON per call and per notable event, to stdout or a file; written many at a time. Holds no prompts, answers or keys. */
export class AccessLog {
  readonly #fd: number | undefined;
  #waiting: string[] = [];
  #waitingLength = 0;
  #timer: NodeJS.Timeout | undefined;
  /** The writing under way: one at a time, so that lines keep their order. */
  #writing: Promise<void> | undefined;
  #dropped = 0;
  #triesLeft = Infinity;

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
    if (this.#waitingLength > maxBehind) {
      this.#dropped += 1;
      return;
    }
    const line = `${JSON.stringify(fields)}\n`;
    this.#waiting.push(line);
    this.#waitingLength += line.length;
    if (this.#waitingLength >= maxWaiting) this.#flush();
    else this.#timer ??= setTimeout(() => this.#flush(), maxWaitMs).unref();
  }

  /** Resolves when every line is written. */
  async close(): Promise<void> {
    this.#triesLeft = maxTriesAtClose;
    this.#flush();
    await this.#writing;
    if (this.#fd !== undefined && this.#fd > 2) closeSync(this.#fd);
  }

  #flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#fd === undefined || this.#writing !== undefined) return;
    this.#writing = this.#write(this.#fd).finally(() => (this.#writing = undefined));
  }

  async #write(fd: number): Promise<void> {
    while (this.#waiting.length > 0 || this.#dropped > 0) {
      const lines = this.#waiting;
      const lost = this.#dropped + lines.length;
      if (this.#dropped > 0)
        lines.push(`${JSON.stringify({ event: "lines_dropped", count: this.#dropped })}\n`);
      this.#dropped = 0;
      this.#waiting = [];
      this.#waitingLength = 0;
      try {
        await this.#writeAll(fd, Buffer.from(lines.join("")));
      } catch {
        this.#dropped += lost;
        return;
      }
    }
  }

  async #writeAll(fd: number, bytes: Buffer): Promise<void> {
    for (let written = 0; written < bytes.length;) {
      try {
        written += (await writeSome(fd, bytes, written)).bytesWritten;
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "EAGAIN" || this.#triesLeft-- <= 0) throw error;
        await sleep(retryMs);
      }
    }
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
