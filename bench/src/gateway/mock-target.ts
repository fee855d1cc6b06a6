// A server of models that answers at once: its time is not what is measured. Prints its port.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { mockCompletion } from "./mock-completion.js";

const answer = Buffer.from(mockCompletion);

/** Between the chunks of a stream, as a model would take. */
const gapMs = 4;
const numChunks = 64;

const event = (choices: readonly object[], more: object = {}): string =>
  `data: ${JSON.stringify({ id: "chatcmpl-1", object: "chat.completion.chunk", created: 1, model: "mock", choices, ...more })}\n\n`;
const chunk = event([{ index: 0, delta: { content: "word " }, logprobs: null, finish_reason: null }]);
const last =
  event([{ index: 0, delta: {}, logprobs: null, finish_reason: "stop" }]) +
  event([], { usage: { prompt_tokens: 20, completion_tokens: numChunks, total_tokens: 84 } }) +
  "data: [DONE]\n\n";

const server = createServer((request, response) => {
  let isStream = false;
  request.on("data", (bytes: Buffer) => {
    isStream ||= bytes.includes('"stream":true');
  });
  request.on("end", () => {
    if (!isStream) {
      response.writeHead(200, { "content-type": "application/json", "content-length": answer.length });
      response.end(answer);
      return;
    }
    response.writeHead(200, { "content-type": "text/event-stream" });
    let sent = 0;
    const timer = setInterval(() => {
      response.write(chunk);
      sent += 1;
      if (sent < numChunks) return;
      clearInterval(timer);
      response.end(last);
    }, gapMs);
  });
});
server.keepAliveTimeout = 60_000;
server.listen(0, "127.0.0.1", () => process.stdout.write(`${(server.address() as AddressInfo).port}\n`));
