import { OctavoError, parseJson } from "@octavo/protocol";
import { type Dispatcher, request } from "undici";
import { RequestClock } from "./request-clock.js";
import { serverFailure, failureOfStatus, type ServerFailure } from "./server-failure.js";

export interface ServerSettings {
  /** Up to and including the version segment, e.g. "http://127.0.0.1:8000/v1"; without any path, `/v1` is meant. */
  readonly baseUrl: string;
  readonly apiKey?: string;
  /** Sent with every request. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Limit on a request, from sending it to the last byte of its answer. Default 600,000. */
  readonly timeoutMs?: number;
  /** Longer answers fail. Default 64 MiB. */
  readonly maxAnswerBytes?: number;
  readonly dispatcher?: Dispatcher;
}

export interface ServerRequest {
  /** With a leading slash, such as `/chat/completions`. */
  readonly path: string;
  /** The path is beside the version segment, as `/tokenize` is, rather than below it. */
  readonly atRoot?: boolean;
  /** JSON to POST; undefined is a GET. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly apiKey?: string;
  readonly signal: AbortSignal;
  readonly timeoutMs?: number;
}

type ServerReply<Value> =
  | { readonly ok: true; readonly value: Value; readonly headers: Readonly<Record<string, string>> }
  | {
      readonly ok: false;
      readonly failure: ServerFailure;
      readonly headers: Readonly<Record<string, string>>;
    };

/** What reads a body as it comes. */
export interface BodyReader {
  push(chunk: Uint8Array): void;
  /** The answer is whole; what may follow is waited for only shortly, so that the connection can serve again. */
  readonly isDone: boolean;
}

/** Longest error body that is read. */
const errorBytes = 64 * 1024;
const lingerMs = 1000;

/** A connection to an OpenAI-compatible server. Failures are values; only an abort of the caller's signal throws. */
export class OpenAiServer {
  readonly baseUrl: string;
  readonly #settings: ServerSettings;

  constructor(settings: ServerSettings) {
    this.baseUrl = checkedUrl(settings.baseUrl);
    this.#settings = settings;
  }

  /** Asks for a JSON answer of at most `maxAnswerBytes`. */
  async json(asked: ServerRequest): Promise<ServerReply<unknown>> {
    const reply = await this.#whole(asked);
    if (!reply.ok) return reply;
    const parsed = parseJson(reply.value);
    if (parsed !== undefined) return { ok: true, value: parsed.value, headers: reply.headers };
    const failure = serverFailure(
      "invalid_response",
      `the answer is not JSON: ${reply.value.slice(0, 100)}`,
      false,
    );
    return { ok: false, failure, headers: reply.headers };
  }

  /** Asks for a text of at most `maxAnswerBytes`; undefined where the server gives none. */
  async text(asked: ServerRequest): Promise<string | undefined> {
    const reply = await this.#whole(asked);
    return reply.ok ? reply.value : undefined;
  }

  async #whole(asked: ServerRequest): Promise<ServerReply<string>> {
    const chunks: Uint8Array[] = [];
    const collect = { push: (chunk: Uint8Array) => void chunks.push(chunk), isDone: false };
    const reply = await this.read(asked, () => collect);
    return reply.ok ? { ...reply, value: Buffer.concat(chunks).toString("utf8") } : reply;
  }

  /** Feeds the body of an answer with a status of 200 to 299 to a reader, made when its headers are known. */
  async read<Reader extends BodyReader>(
    asked: ServerRequest,
    createReader: (headers: Readonly<Record<string, string>>) => Reader,
  ): Promise<ServerReply<Reader>> {
    asked.signal.throwIfAborted();
    using clock = new RequestClock(asked.signal, asked.timeoutMs ?? this.#settings.timeoutMs ?? 600_000);
    let headers: Readonly<Record<string, string>> = {};
    let reader: Reader | undefined;
    try {
      const response = await request(this.#urlOf(asked), {
        method: asked.body === undefined ? "GET" : "POST",
        headers: this.#headersOf(asked),
        body: asked.body === undefined ? null : JSON.stringify(asked.body),
        signal: clock.signal,
        // the clock bounds both
        headersTimeout: 0,
        bodyTimeout: 0,
        ...(this.#settings.dispatcher === undefined ? {} : { dispatcher: this.#settings.dispatcher }),
      });
      headers = plainHeaders(response.headers);
      if (response.statusCode < 200 || response.statusCode > 299) {
        const text = await beginningOf(response.body, errorBytes);
        return { ok: false, failure: failureOfStatus(response.statusCode, headers, text), headers };
      }
      reader = createReader(headers);
      await this.#feed(response.body, reader, clock);
      return { ok: true, value: reader, headers };
    } catch (thrown) {
      if (reader?.isDone === true) return { ok: true, value: reader, headers };
      if (asked.signal.aborted) throw asked.signal.reason;
      const failure = clock.hasTimedOut
        ? serverFailure("timeout", "no whole answer within the time limit")
        : failureOfThrown(thrown, reader !== undefined);
      return { ok: false, failure, headers };
    }
  }

  async #feed(body: AsyncIterable<unknown>, reader: BodyReader, clock: RequestClock): Promise<void> {
    const limit = this.#settings.maxAnswerBytes ?? 64 * 1024 * 1024;
    let numBytes = 0;
    for await (const chunk of body) {
      if (reader.isDone) continue;
      const bytes = chunk instanceof Uint8Array ? chunk : Buffer.from(String(chunk));
      numBytes += bytes.length;
      if (numBytes > limit)
        throw new OctavoError("payload_too_large", `the answer is longer than ${limit} bytes`);
      reader.push(bytes);
      if (reader.isDone) clock.restart(lingerMs);
    }
  }

  #urlOf(asked: ServerRequest): string {
    const base = asked.atRoot === true ? this.baseUrl.replace(/\/v\d+$/, "") : this.baseUrl;
    return `${base}${asked.path}`;
  }

  #headersOf(asked: ServerRequest): Record<string, string> {
    const key = asked.apiKey ?? this.#settings.apiKey;
    return {
      ...(asked.body === undefined ? {} : { "content-type": "application/json" }),
      ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
      ...this.#settings.headers,
      ...asked.headers,
    };
  }
}

function checkedUrl(baseUrl: string): string {
  const url = URL.canParse(baseUrl) ? new URL(baseUrl) : undefined;
  if (url === undefined || !["http:", "https:"].includes(url.protocol))
    throw new OctavoError(
      "invalid_option",
      `the base URL ${JSON.stringify(baseUrl.slice(0, 200))} is not an http or https URL; write it as http://HOST:PORT/v1`,
      { param: "baseUrl" },
    );
  const plain = baseUrl.replace(/\/+$/, "");
  return url.pathname === "/" && url.search === "" ? `${plain}/v1` : plain;
}

function failureOfThrown(thrown: unknown, hasBegun: boolean): ServerFailure {
  if (thrown instanceof OctavoError) return serverFailure(thrown.code, thrown.message, false);
  const message = thrown instanceof Error ? describe(thrown) : String(thrown);
  return hasBegun
    ? serverFailure("truncated", `the connection broke before the answer ended: ${message}`)
    : serverFailure("connection", message);
}

/** Node joins the attempts on several addresses in an error without a message of its own. */
function describe(error: Error): string {
  if (error instanceof AggregateError && error.message === "")
    return error.errors.map((one) => (one instanceof Error ? one.message : String(one))).join("; ");
  return error.message;
}

function plainHeaders(
  headers: Readonly<Record<string, string | string[] | undefined>>,
): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) =>
      value === undefined ? [] : [[name.toLowerCase(), Array.isArray(value) ? value.join(", ") : value]],
    ),
  );
}

async function beginningOf(body: AsyncIterable<unknown>, limit: number): Promise<string> {
  const chunks: Uint8Array[] = [];
  let numBytes = 0;
  for await (const chunk of body) {
    const bytes = chunk instanceof Uint8Array ? chunk : Buffer.from(String(chunk));
    chunks.push(bytes);
    numBytes += bytes.length;
    if (numBytes > limit) break;
  }
  return Buffer.concat(chunks).toString("utf8").slice(0, limit);
}
