import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { asRecord, encodeSseJson, parseJson, sseDone } from "@octavo/protocol";

export interface FakeRequest {
  readonly path: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Readonly<Record<string, unknown>>;
  /** Counts from 0 over the requests of this path. */
  readonly index: number;
}

export type FakeHandler = (request: FakeRequest, response: ServerResponse) => void | Promise<void>;

export interface FakeOpenAiServer extends AsyncDisposable {
  readonly baseUrl: string;
  readonly requests: readonly FakeRequest[];
}

/** A server on a free port that answers as a test wants, well or badly. Paths without a handler are 404. */
export async function startFakeOpenAi(
  handlers: Readonly<Record<string, FakeHandler>>,
): Promise<FakeOpenAiServer> {
  const requests: FakeRequest[] = [];
  const server = createServer((incoming, response) => {
    const chunks: Buffer[] = [];
    incoming.on("data", (bytes: Buffer) => chunks.push(bytes));
    incoming.on("end", () => {
      const path = incoming.url ?? "/";
      const request: FakeRequest = {
        path,
        headers: incoming.headers,
        body: asRecord(parseJson(Buffer.concat(chunks).toString("utf8"))?.value),
        index: requests.filter((earlier) => earlier.path === path).length,
      };
      requests.push(request);
      const handler = handlers[path];
      if (handler === undefined) replyJson(response, 404, { detail: "Not Found" });
      else void Promise.resolve(handler(request, response)).catch(() => response.destroy());
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    baseUrl: `http://127.0.0.1:${port}/v1`,
    requests,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

export function replyJson(
  response: ServerResponse,
  status: number,
  value: unknown,
  headers: Readonly<Record<string, string>> = {},
): void {
  response.writeHead(status, { "content-type": "application/json", ...headers });
  response.end(JSON.stringify(value));
}

export function beginStream(response: ServerResponse, headers: Readonly<Record<string, string>> = {}): void {
  response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8", ...headers });
}

/** A whole stream: these events, then `[DONE]`. */
export function sendStream(
  response: ServerResponse,
  events: readonly unknown[],
  headers: Readonly<Record<string, string>> = {},
): void {
  beginStream(response, headers);
  response.end(events.map((event) => encodeSseJson(event)).join("") + sseDone);
}

/** A chunk of a stream with a delta of the first choice. */
export function completionChunk(delta: unknown, finishReason: string | null = null): unknown {
  return {
    id: "chatcmpl-1",
    object: "chat.completion.chunk",
    model: "fake",
    choices: [{ index: 0, delta, finish_reason: finishReason }],
  };
}

/** A whole chat completion with this text. */
export function chatCompletion(text: string, more: Readonly<Record<string, unknown>> = {}): unknown {
  return {
    id: "chatcmpl-1",
    object: "chat.completion",
    model: "fake",
    choices: [{ index: 0, message: { role: "assistant", content: text }, finish_reason: "stop", ...more }],
    usage: { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 },
  };
}
