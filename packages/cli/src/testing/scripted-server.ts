import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { encodeSseJson, sseDone } from "@octavo/protocol";

export interface ScriptedServer {
  readonly url: string;
  close(): void;
}

/** What tests read of a question. */
export interface AskedBody {
  readonly model?: string;
  readonly prompt?: string;
  readonly messages?: readonly { readonly content: string }[];
}

/** A server on a free port. `answer` is given the body of what was asked, which is empty where nothing was sent. */
export async function startScriptedServer(
  answer: (request: IncomingMessage, asked: AskedBody, response: ServerResponse) => void,
): Promise<ScriptedServer> {
  const server = createServer((request, response) => {
    let body = "";
    request.setEncoding("utf8").on("data", (text: string) => (body += text));
    request.on("end", () => answer(request, body === "" ? {} : (JSON.parse(body) as AskedBody), response));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

export function sendModels(response: ServerResponse, id: string): void {
  response.setHeader("content-type", "application/json");
  response.end(JSON.stringify({ object: "list", data: [{ id, object: "model", owned_by: "test" }] }));
}

/** A whole answer, as a stream. */
export function streamAnswer(response: ServerResponse, model: string, content: string): void {
  const event = { id: "x", object: "chat.completion.chunk", created: 0, model };
  const choices = [{ index: 0, delta: { role: "assistant", content }, finish_reason: "stop" }];
  response.setHeader("content-type", "text/event-stream");
  response.end(encodeSseJson({ ...event, choices }) + sseDone);
}
