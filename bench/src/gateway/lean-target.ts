// A server of models that answers at once, over plain sockets with bytes that were written once: next to nothing of its time is in
// what is measured. Chunks of a stream say when they were written, on the machine's monotonic clock. Prints its port. Takes the
// number of a stream's chunks and the milliseconds between them.
import { type AddressInfo, createServer, type Socket } from "node:net";

const [numChunks = 64, gapMs = 40] = process.argv.slice(2).map(Number);
const completion = JSON.stringify({
  id: "chatcmpl-1",
  object: "chat.completion",
  created: 1,
  model: "mock",
  choices: [
    {
      index: 0,
      message: { role: "assistant", content: "x".repeat(200) },
      logprobs: null,
      finish_reason: "stop",
    },
  ],
  usage: { prompt_tokens: 20, completion_tokens: 50, total_tokens: 70 },
});
const answer = Buffer.from(
  `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: keep-alive\r\ncontent-length: ${completion.length}\r\n\r\n${completion}`,
);
const chunked = (text: string): string => `${text.length.toString(16)}\r\n${text}\r\n`;
const event = (choices: string, more = ""): string =>
  chunked(
    `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"mock","choices":[${choices}]${more}}\n\n`,
  );
const chunk = (content: string): string =>
  event(`{"index":0,"delta":{"content":"${content}"},"logprobs":null,"finish_reason":null}`);
const last =
  event('{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}') +
  event("", `,"usage":{"prompt_tokens":20,"completion_tokens":${numChunks},"total_tokens":84}`) +
  chunked("data: [DONE]\n\n") +
  "0\r\n\r\n";

function stream(socket: Socket): void {
  socket.write(
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: keep-alive\r\ntransfer-encoding: chunked\r\n\r\n",
  );
  let sent = 0;
  const timer = setInterval(() => {
    sent += 1;
    socket.write(chunk(`${process.hrtime.bigint()} `) + (sent < numChunks ? "" : last), "latin1");
    if (sent === numChunks || socket.destroyed) clearInterval(timer);
  }, gapMs);
}

const server = createServer({ noDelay: true }, (socket) => {
  let waiting = "";
  socket.on("data", (bytes) => {
    waiting += bytes.toString("latin1");
    const head = waiting.indexOf("\r\n\r\n");
    if (head < 0) return;
    const length = Number(/content-length: (\d+)/i.exec(waiting.slice(0, head))?.[1] ?? 0);
    if (waiting.length < head + 4 + length) return;
    const isStream = waiting.includes('"stream":true', head);
    waiting = "";
    if (isStream) stream(socket);
    else socket.write(answer);
  });
  socket.on("error", () => socket.destroy());
});
server.listen(0, "127.0.0.1", () => process.stdout.write(`${(server.address() as AddressInfo).port}\n`));
