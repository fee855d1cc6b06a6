import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { busyStatuses, type TargetAnswer } from "@octavo/optimize";
import { asRecord, listenAt, parseJson } from "@octavo/protocol";

/** What a stand-in is asked, and what it says. */
export interface StandInCall {
  /** As `x-request-id` names it. */
  readonly id: string;
  /** How often it was asked for it before. */
  readonly turn: number;
  /** Other calls that it has. */
  readonly besides: number;
}

export interface StandInAnswer {
  /** Times are the replay's own. */
  readonly what: TargetAnswer;
  readonly promptTokens: number;
  readonly cachedTokens: number;
  readonly outputTokens: number;
  /** After which the target may be asked again, where it refuses because it has too much to do. */
  readonly retryAfterS: number;
}

/** Pieces in which a stream's text comes, evenly between its first byte and its end. */
const mostPieces = 16;

/** In place of a target: a server of OpenAI's chat API on this machine that behaves as it is told. */
export class StandInTarget implements AsyncDisposable {
  readonly #server: Server;
  readonly #answerTo: (call: StandInCall) => StandInAnswer;
  readonly #turns = new Map<string, number>();
  readonly url: string;
  #open = 0;

  private constructor(server: Server, url: string, answerTo: (call: StandInCall) => StandInAnswer) {
    this.#server = server;
    this.#answerTo = answerTo;
    this.url = url;
    server.on("request", (request: IncomingMessage, response: ServerResponse) => {
      this.#take(request, response).catch(() => response.destroy());
    });
  }

  static async start(answerTo: (call: StandInCall) => StandInAnswer): Promise<StandInTarget> {
    const server = createServer();
    const { url } = await listenAt(server, { host: "127.0.0.1", port: 0 });
    return new StandInTarget(server, url, answerTo);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#server.close(() => resolve());
      this.#server.closeAllConnections();
    });
  }

  async #take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const id = String(request.headers["x-request-id"]);
    const turn = this.#turns.get(id) ?? 0;
    this.#turns.set(id, turn + 1);
    const beginMs = performance.now();
    const answer = this.#answerTo({ id, turn, besides: this.#open });
    const left = new AbortController();
    this.#open += 1;
    response.once("close", () => {
      this.#open -= 1;
      left.abort();
    });
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const { stream, model } = asRecord(parseJson(Buffer.concat(chunks).toString("utf8"))?.value);
    const until = (ms: number) =>
      sleep(Math.max(0, beginMs + ms - performance.now()), undefined, { signal: left.signal });
    await say(response, answer, { isStream: stream === true, model, until });
  }
}

interface Saying {
  readonly isStream: boolean;
  readonly model: unknown;
  /** Resolves so many milliseconds after the call came; rejects once the gateway has left. */
  readonly until: (ms: number) => Promise<void>;
}

async function say(response: ServerResponse, answer: StandInAnswer, saying: Saying): Promise<void> {
  const { what, retryAfterS } = answer;
  const { isStream, until } = saying;
  switch (what.kind) {
    case "silent":
      return;
    case "status":
      await until(what.durationMs);
      response.writeHead(what.status, {
        "content-type": "application/json",
        ...(busyStatuses.has(what.status) && { "retry-after": String(retryAfterS) }),
      });
      response.end(JSON.stringify({ error: { message: `status ${what.status}`, type: "recorded" } }));
      return;
    case "invalid":
      await until(what.durationMs);
      response.writeHead(200, { "content-type": isStream ? "text/event-stream" : "application/json" });
      response.end(isStream ? "" : "[]");
      return;
    case "broken":
      if (isStream && what.firstByteMs !== undefined)
        await pieces(response, { ...saying, fromMs: what.firstByteMs, toMs: what.durationMs, count: 2 });
      else await until(what.durationMs);
      response.destroy();
      return;
    case "answer":
      await complete(response, answer, what, saying);
  }
}

async function complete(
  response: ServerResponse,
  { promptTokens, cachedTokens, outputTokens }: StandInAnswer,
  { firstByteMs, durationMs }: Extract<TargetAnswer, { readonly kind: "answer" }>,
  saying: Saying,
): Promise<void> {
  const { isStream, model, until } = saying;
  const usage = {
    prompt_tokens: promptTokens,
    completion_tokens: outputTokens,
    total_tokens: promptTokens + outputTokens,
    prompt_tokens_details: { cached_tokens: cachedTokens },
  };
  if (isStream) {
    const count = Math.max(1, Math.min(mostPieces, outputTokens));
    await pieces(response, { ...saying, fromMs: firstByteMs, toMs: durationMs, count });
    response.write(event(model, [{ index: 0, delta: {}, finish_reason: "stop" }]));
    response.end(`${event(model, [], usage)}data: [DONE]\n\n`);
    return;
  }
  await until(durationMs);
  response.writeHead(200, { "content-type": "application/json" });
  const choices = [{ index: 0, message: { role: "assistant", content: "recorded" }, finish_reason: "stop" }];
  response.end(
    JSON.stringify({ id: "chatcmpl-0", object: "chat.completion", created: 0, model, choices, usage }),
  );
}

async function pieces(
  response: ServerResponse,
  {
    fromMs,
    toMs,
    count,
    model,
    until,
  }: Saying & { readonly fromMs: number; readonly toMs: number; readonly count: number },
): Promise<void> {
  for (let at = 0; at < count; at++) {
    await until(fromMs + ((toMs - fromMs) * at) / Math.max(1, count));
    if (at === 0) response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(event(model, [{ index: 0, delta: { content: "recorded " }, finish_reason: null }]));
  }
  await until(toMs);
}

function event(model: unknown, choices: readonly object[], usage?: object): string {
  const chunk = { id: "chatcmpl-0", object: "chat.completion.chunk", created: 0, model, choices, usage };
  return `data: ${JSON.stringify(chunk)}\n\n`;
}
