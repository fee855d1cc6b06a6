import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { asRecord, encodeSseJson, OctavoError, sseDone, toErrorBody } from "@octavo/protocol";
import type { LiveExchange } from "../exchange/live-exchange.js";
import type { StreamPart } from "../families/family.js";
import { ledgerFields, headersOf, trailerNames, trailersOf } from "../ledger/answer-headers.js";
import type { HeaderPrefix } from "../ledger/answer-headers.js";
import { closeAccount } from "../ledger/close-account.js";

export interface StreamWriterOptions {
  readonly prefixes: readonly HeaderPrefix[];
  /** The account is added to the last event. */
  readonly inLastEvent: boolean;
  /** The gateway asked for token counts, or for token ids, that the client did not ask for. */
  readonly hidesUsage: boolean;
  readonly hidesTokenIds: boolean;
  /** A stream of `/messages` or `/responses` ends with its last event alone. */
  readonly endsWithDone: boolean;
  /** A client that takes nothing for so long is disconnected. */
  readonly stallMs: number;
}

/** Token ids where a chunk has them: quotes inside strings are escaped, so this text stands nowhere else. */
const tokenIdFields = /,"(?:prompt_)?token_ids":(?:\[[\d,]*\]|null)/g;

/** Writes one client's stream. What may be its last event is held until it is known to be, so that it can carry the account. */
export class StreamWriter {
  readonly #exchange: LiveExchange;
  readonly #response: ServerResponse;
  readonly #options: StreamWriterOptions;
  #held: StreamPart[] = [];
  #hasHead = false;

  constructor(exchange: LiveExchange, options: StreamWriterOptions) {
    this.#exchange = exchange;
    this.#response = exchange.response;
    this.#options = options;
  }

  get hasBegun(): boolean {
    return this.#hasHead;
  }

  begin(): void {
    if (this.#hasHead) return;
    this.#hasHead = true;
    const { ledger } = this.#exchange;
    ledger.status = 200;
    ledger.firstByteMs = this.#exchange.elapsedMs();
    this.#response.writeHead(200, [
      "content-type",
      "text/event-stream; charset=utf-8",
      "cache-control",
      "no-cache",
      "trailer",
      trailerNames(this.#options.prefixes),
      ...headersOf(ledger, this.#options.prefixes, false),
    ]);
  }

  /** Resolves when the client is ready for more. */
  async write(parts: readonly StreamPart[]): Promise<void> {
    let text = "";
    for (const part of parts) {
      const kind = kindOf(part);
      if (kind === "usage" && this.#options.hidesUsage) continue;
      if (kind === "usage" || kind === "finish") {
        this.#held.push(part);
        continue;
      }
      for (const held of this.#held) text += this.#textOf(held);
      this.#held = [];
      text += this.#textOf(part);
    }
    if (text !== "") await this.#send(text);
  }

  /** The stream came to its proper end. */
  end(): void {
    closeAccount(this.#exchange);
    let text = "";
    for (const [at, part] of this.#held.entries()) {
      const isLast = at === this.#held.length - 1 && this.#options.inLastEvent;
      text += isLast ? this.#textWithAccount(part) : this.#textOf(part);
    }
    this.#finish(text + (this.#options.endsWithDone ? sseDone : ""));
  }

  /** The stream cannot go on: a typed error event instead of `[DONE]`. What was held back never leaves. */
  fail(error: OctavoError): void {
    closeAccount(this.#exchange);
    const body = {
      ...toErrorBody(error),
      octavo: { ...ledgerFields(this.#exchange.ledger), error_code: error.code },
    };
    this.#finish(encodeSseJson(body));
  }

  #finish(text: string): void {
    const response = this.#response;
    if (response.destroyed || response.writableEnded) return;
    this.begin();
    response.addTrailers(trailersOf(this.#exchange.ledger, this.#options.prefixes));
    response.end(text);
  }

  async #send(text: string): Promise<void> {
    this.begin();
    if (this.#response.write(text) || this.#response.destroyed) return;
    const stalled = setTimeout(() => this.#response.destroy(), this.#options.stallMs);
    await Promise.race([once(this.#response, "drain"), once(this.#response, "close")]).finally(() =>
      clearTimeout(stalled),
    );
  }

  #textOf({ raw, json }: StreamPart): string {
    if (raw === undefined) {
      const { type } = json;
      // clients of `/messages` and `/responses` go by the event's name
      const name = typeof type === "string" && !Array.isArray(json["choices"]) ? `event: ${type}\n` : "";
      return name + encodeSseJson(this.#options.hidesTokenIds ? withoutTokenIds(json) : json);
    }
    return this.#options.hidesTokenIds ? raw.replaceAll(tokenIdFields, "") : raw;
  }

  #textWithAccount(part: StreamPart): string {
    const text = this.#textOf(part);
    // a typed event keeps its name; its data is the JSON text's end
    const end = text.lastIndexOf("}");
    return `${text.slice(0, end)},"octavo":${JSON.stringify(ledgerFields(this.#exchange.ledger))}${text.slice(end)}`;
  }
}

function kindOf({ json }: StreamPart): "content" | "usage" | "finish" {
  const choices = json["choices"];
  if (!Array.isArray(choices)) {
    const type = json["type"];
    return type === "message_stop" || type === "response.completed" || type === "message_delta"
      ? "finish"
      : "content";
  }
  if (choices.length === 0)
    return json["usage"] === undefined || json["usage"] === null ? "content" : "usage";
  const isFinish = choices.every((choice) => (asRecord(choice)["finish_reason"] ?? null) !== null);
  return isFinish ? "finish" : "content";
}

function withoutTokenIds(json: StreamPart["json"]): StreamPart["json"] {
  return JSON.parse(JSON.stringify(json).replaceAll(tokenIdFields, "")) as StreamPart["json"];
}
