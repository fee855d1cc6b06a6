import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { JsonFields } from "@octavo/protocol";

/** How a fake target answers one call. */
export type Behaviour =
  | {
      readonly kind: "answer";
      readonly text?: string;
      readonly usage?: JsonFields;
      readonly delayMs?: number;
      /** Answers once it resolves. */
      readonly after?: Promise<void>;
    }
  | { readonly kind: "status"; readonly status: number; readonly retryAfter?: string; readonly body?: string }
  | { readonly kind: "hang" }
  /** A stream that stops: `hang` says nothing more, `cut` breaks the connection, `end` ends it without `[DONE]`. */
  | { readonly kind: "stream-then"; readonly events: number; readonly ending: "hang" | "cut" | "end" }
  | {
      readonly kind: "raw";
      readonly type: string;
      readonly chunks: readonly string[];
      readonly gapMs?: number;
    };

export interface SeenCall {
  readonly path: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: JsonFields;
  readonly text: string;
  /** Set when the connection closed before the answer was complete. */
  wasCut: boolean;
}

export const fakeText = "The quick brown fox jumps over the lazy dog.";

/** A server that speaks OpenAI's chat API as it is told, and keeps what it was asked. */
export class FakeTarget implements AsyncDisposable {
  readonly calls: SeenCall[] = [];
  behaviour: Behaviour | ((call: SeenCall, index: number) => Behaviour);
  isHealthy = true;
  readonly #server: Server;
  url = "";

  private constructor(behaviour: FakeTarget["behaviour"]) {
    this.behaviour = behaviour;
    this.#server = createServer((request, response) => void this.#answer(request, response));
  }

  static async start(behaviour: FakeTarget["behaviour"] = { kind: "answer" }): Promise<FakeTarget> {
    const target = new FakeTarget(behaviour);
    await new Promise<void>((resolve) => target.#server.listen(0, "127.0.0.1", resolve));
    target.url = `http://127.0.0.1:${(target.#server.address() as AddressInfo).port}`;
    return target;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.method === "GET") {
      response.writeHead(this.isHealthy ? 200 : 503).end("{}");
      return;
    }
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const text = Buffer.concat(chunks).toString("utf8");
    const call: SeenCall = {
      path: request.url ?? "",
      headers: request.headers,
      body: JSON.parse(text) as JsonFields,
      text,
      wasCut: false,
    };
    response.on("close", () => {
      call.wasCut = !response.writableFinished;
    });
    this.calls.push(call);
    const behaviour =
      typeof this.behaviour === "function" ? this.behaviour(call, this.calls.length - 1) : this.behaviour;
    await behave(call, response, behaviour);
  }
}

async function behave({ body }: SeenCall, response: ServerResponse, behaviour: Behaviour): Promise<void> {
  switch (behaviour.kind) {
    case "hang":
      return;
    case "status":
      response.writeHead(behaviour.status, {
        "content-type": "application/json",
        ...(behaviour.retryAfter !== undefined && { "retry-after": behaviour.retryAfter }),
      });
      response.end(
        behaviour.body ?? JSON.stringify({ error: { message: `status ${behaviour.status}`, type: "fake" } }),
      );
      return;
    case "raw":
      response.writeHead(200, { "content-type": behaviour.type });
      for (const chunk of behaviour.chunks) {
        if (response.destroyed) return;
        response.write(chunk);
        if (behaviour.gapMs !== undefined) await delay(behaviour.gapMs);
      }
      response.end();
      return;
    case "stream-then": {
      response.writeHead(200, { "content-type": "text/event-stream" });
      for (const event of chatEvents(body, fakeText).slice(0, behaviour.events)) response.write(event);
      await delay(5);
      if (behaviour.ending === "cut") response.destroy();
      if (behaviour.ending === "end") response.end();
      return;
    }
    case "answer": {
      if (behaviour.delayMs !== undefined) await delay(behaviour.delayMs);
      await behaviour.after;
      const text = behaviour.text ?? fakeText;
      if (body["stream"] === true) {
        response.writeHead(200, { "content-type": "text/event-stream" });
        for (const event of chatEvents(body, text, behaviour.usage)) response.write(event);
        response.end("data: [DONE]\n\n");
      } else {
        response.writeHead(200, { "content-type": "application/json" });
        response.end(JSON.stringify(chatAnswerOf(body, text, behaviour.usage)));
      }
    }
  }
}

export const fakeUsage = { prompt_tokens: 12, completion_tokens: 10, total_tokens: 22 };

function chatAnswerOf(body: JsonFields, text: string, usage: JsonFields = fakeUsage): JsonFields {
  return {
    id: "chatcmpl-1",
    object: "chat.completion",
    created: 1,
    model: body["model"],
    choices: [
      { index: 0, message: { role: "assistant", content: text }, logprobs: null, finish_reason: "stop" },
    ],
    usage,
  };
}

/** The events of a streamed answer, a word each, with usage at the end if it was asked for. */
export function chatEvents(body: JsonFields, text: string, usage: JsonFields = fakeUsage): readonly string[] {
  const head = { id: "chatcmpl-1", object: "chat.completion.chunk", created: 1, model: body["model"] };
  const event = (choices: readonly JsonFields[], more: JsonFields = {}): string =>
    `data: ${JSON.stringify({ ...head, choices, ...more })}\n\n`;
  const delta = (fields: JsonFields, finish: string | null = null): string =>
    event([{ index: 0, delta: fields, logprobs: null, finish_reason: finish }]);
  const asksUsage = (body["stream_options"] as JsonFields | undefined)?.["include_usage"] === true;
  return [
    delta({ role: "assistant", content: "" }),
    ...text.split(/(?<= )/).map((word) => delta({ content: word })),
    delta({}, "stop"),
    ...(asksUsage ? [event([], { usage })] : []),
  ];
}

function delay(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
