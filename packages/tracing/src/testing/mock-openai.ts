import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface SeenRequest {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Readonly<Record<string, unknown>>;
}

export type MockAnswer = (response: ServerResponse, request: SeenRequest) => Promise<void> | void;

export interface MockOpenAI extends AsyncDisposable {
  readonly baseURL: string;
  readonly requests: SeenRequest[];
  answer: MockAnswer;
}

/** A server on a free port that answers as a test says. */
export async function startMockOpenAI(answer: MockAnswer = () => {}): Promise<MockOpenAI> {
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const text = Buffer.concat(chunks).toString("utf8");
      const seen: SeenRequest = {
        path: request.url ?? "",
        headers: request.headers,
        body: text === "" ? {} : (JSON.parse(text) as SeenRequest["body"]),
      };
      mock.requests.push(seen);
      response.on("error", () => {});
      void mock.answer(response, seen);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const mock: MockOpenAI = {
    baseURL: `http://127.0.0.1:${port}/v1`,
    requests: [],
    answer,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return mock;
}

export function jsonAnswer(value: unknown, status = 200): MockAnswer {
  return (response) => {
    response.writeHead(status, { "content-type": "application/json", "x-request-id": "req-1" });
    response.end(JSON.stringify(value));
  };
}

/** Events as `data:` lines, with `[DONE]` unless the stream is left open. */
export function events(values: readonly unknown[], end: "done" | "open" | "cut" = "done"): MockAnswer {
  return (response) => {
    response.writeHead(200, { "content-type": "text/event-stream", "x-request-id": "req-1" });
    for (const value of values) {
      const type = (value as { readonly type?: string }).type;
      response.write(`${type === undefined ? "" : `event: ${type}\n`}data: ${JSON.stringify(value)}\n\n`);
    }
    if (end === "done") response.end("data: [DONE]\n\n");
    if (end === "cut") setImmediate(() => response.destroy());
  };
}
