import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { bodyOf, RawSocket } from "../testing/raw-socket.js";
import { startTestServer, type TestServer } from "../testing/test-server.js";

const chatBody = JSON.stringify({ messages: [{ role: "user", content: "hi" }] });
const chatHead = "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n";

/** The server still answers, and nothing is left running in it. */
async function assertHealthy(server: TestServer): Promise<void> {
  const response = await server.post("/v1/chat/completions", chatBody);
  assert.equal(response.status, 200);
  await response.json();
  await server.model.engine.whenIdle();
}

async function exchange(server: TestServer, ...pieces: readonly (string | Uint8Array)[]): Promise<string> {
  using socket = await RawSocket.open(server.port);
  for (const piece of pieces) socket.send(piece);
  return await socket.untilClosed();
}

/** Open connections, the one that asks included. */
async function numConnections(server: TestServer): Promise<number> {
  const text = await (await fetch(`${server.url}/metrics`)).text();
  return Number(/^octavo:http_connections (\d+)$/m.exec(text)?.[1]);
}

describe("hostile HTTP", () => {
  it("refuses a body that is not UTF-8", async () => {
    await using server = await startTestServer();
    const body = Buffer.concat([Buffer.from('{"prompt":"'), Buffer.from([0xc3, 0x28]), Buffer.from('"}')]);
    const head = `POST /v1/completions HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n`;
    const answer = await exchange(server, head, body);
    assert.match(answer, /^HTTP\/1\.1 400 /);
    assert.match(bodyOf(answer).error.message, /not valid UTF-8/);
    assert.match(answer, /x-octavo-error-code: invalid_json/i);
    await assertHealthy(server);
  });

  it("ends a chunked body that never ends at the size limit", async () => {
    await using server = await startTestServer({ maxBodyBytes: 64 * 1024 });
    using socket = await RawSocket.open(server.port);
    socket.send(`${chatHead}transfer-encoding: chunked\r\n\r\n`);
    const chunk = `1000\r\n${" ".repeat(4096)}\r\n`;
    let sent = 0;
    while (!socket.isClosed && sent < 4096) {
      socket.send(chunk);
      sent++;
      await new Promise((resolve) => setImmediate(resolve));
    }
    const answer = await socket.untilClosed();
    assert.match(answer, /^HTTP\/1\.1 413 /);
    assert.match(answer, /connection: close/i);
    assert.match(answer, /at most 65536 bytes/);
    await assertHealthy(server);
  });

  it("refuses a declared length over the limit before the body, with and without Expect", async () => {
    await using server = await startTestServer({ maxBodyBytes: 1024 });
    const plain = await exchange(server, `${chatHead}content-length: 99999999\r\n\r\n`);
    assert.match(plain, /^HTTP\/1\.1 413 /);
    const expecting = await exchange(
      server,
      `${chatHead}expect: 100-continue\r\ncontent-length: 99999999\r\n\r\n`,
    );
    assert.match(expecting, /^HTTP\/1\.1 413 /);
    assert.doesNotMatch(expecting, /100 Continue/);
    await assertHealthy(server);
  });

  it("bounds the bodies of all requests together, and takes new ones when others are over", async () => {
    const body = 40_000;
    await using server = await startTestServer({ maxBodyBytes: 48 * 1024, maxBodyMemoryBytes: 100_000 });
    const begin = async (): Promise<RawSocket> => {
      const socket = await RawSocket.open(server.port);
      socket.send(`${chatHead}connection: close\r\ncontent-length: ${body}\r\n\r\n{`);
      socket.send(" ".repeat(body - 1000));
      return socket;
    };
    const unfinished = [await begin(), await begin()];
    await new Promise((resolve) => setTimeout(resolve, 50));
    for (let tries = 0; tries < 3; tries += 1) {
      using refused = await begin();
      const answer = await refused.untilClosed();
      assert.match(answer, /^HTTP\/1\.1 503 /);
      assert.match(answer, /retry-after: 1/i);
      assert.match(answer, /x-octavo-error-code: overloaded/i);
    }
    await assertHealthy(server);
    for (const socket of unfinished) socket[Symbol.dispose]();
    await new Promise((resolve) => setTimeout(resolve, 50));
    for (let times = 0; times < 5; times += 1) {
      using taken = await begin();
      taken.send(" ".repeat(1000));
      assert.match(await taken.untilClosed(), /^HTTP\/1\.1 400 /, "not JSON, but read whole");
    }
  });

  it("says continue to a body it will take", async () => {
    await using server = await startTestServer();
    using socket = await RawSocket.open(server.port);
    socket.send(
      `${chatHead}expect: 100-continue\r\nconnection: close\r\ncontent-length: ${chatBody.length}\r\n\r\n`,
    );
    await socket.until((received) => received.includes("100 Continue"));
    socket.send(chatBody);
    assert.match(await socket.untilClosed(), /HTTP\/1\.1 200 /);
  });

  it("cuts off a body that trickles", async () => {
    await using server = await startTestServer({ bodyTimeoutMs: 60 });
    using socket = await RawSocket.open(server.port);
    socket.send(`${chatHead}content-length: 1000\r\n\r\n{`);
    const trickle = setInterval(() => socket.send(" "), 5);
    const answer = await socket.untilClosed();
    clearInterval(trickle);
    assert.match(answer, /^HTTP\/1\.1 408 /);
    assert.match(bodyOf(answer).error.message, /did not arrive within 60 ms/);
    await assertHealthy(server);
  });

  it("cuts off headers that trickle", async () => {
    await using server = await startTestServer({ headersTimeoutMs: 60 });
    using socket = await RawSocket.open(server.port);
    socket.send("GET /health HTTP/1.1\r\nhost: x\r\n");
    const trickle = setInterval(() => socket.send("a: b\r\n"), 10);
    const answer = await socket.untilClosed();
    clearInterval(trickle);
    assert.match(answer, /^HTTP\/1\.1 408 /);
    assert.equal(bodyOf(answer).error.code, 408);
  });

  it("refuses giant headers and giant targets with 431", async () => {
    await using server = await startTestServer({ maxHeaderBytes: 4096 });
    const header = await exchange(
      server,
      `GET /health HTTP/1.1\r\nhost: x\r\nx: ${"a".repeat(10_000)}\r\n\r\n`,
    );
    assert.match(header, /^HTTP\/1\.1 431 /);
    assert.equal(bodyOf(header).error.code, 431);
    const target = await exchange(server, `GET /${"a".repeat(10_000)} HTTP/1.1\r\nhost: x\r\n\r\n`);
    assert.match(target, /^HTTP\/1\.1 431 /);
    await assertHealthy(server);
  });

  for (const [name, head] of [
    [
      "both lengths",
      `${chatHead}content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\nGET /health HTTP/1.1\r\nhost: x\r\n\r\n`,
    ],
    ["two lengths", `${chatHead}content-length: 5\r\ncontent-length: 6\r\n\r\nabcdef`],
    ["a length that is no number", `${chatHead}content-length: +5\r\n\r\nabcde`],
    ["an unknown transfer coding last", `${chatHead}transfer-encoding: chunked, gzip\r\n\r\n0\r\n\r\n`],
    [
      "a space before the colon",
      `POST /v1/completions HTTP/1.1\r\nhost: x\r\ntransfer-encoding : chunked\r\n\r\n0\r\n\r\n`,
    ],
    ["a bare line feed in a header", `GET /health HTTP/1.1\r\nhost: x\r\nx: a\nb: c\r\n\r\n`],
    ["no host", "GET /health HTTP/1.1\r\n\r\n"],
    ["no HTTP at all", "\u0016\u0003\u0001\u0002\u0000\u0001\u0000"],
    ["a chunk size that is no number", `${chatHead}transfer-encoding: chunked\r\n\r\nzz\r\n`],
  ] as const) {
    it(`answers ${name} with one 400 and closes`, async () => {
      await using server = await startTestServer();
      const answer = await exchange(server, head);
      assert.match(answer, /^HTTP\/1\.1 400 /);
      assert.equal(answer.split("HTTP/1.1 ").length, 2, "a second request was smuggled in");
      await assertHealthy(server);
    });
  }

  it("answers pipelined requests in order", async () => {
    await using server = await startTestServer();
    const chat = `${chatHead}content-length: ${chatBody.length}\r\n\r\n${chatBody}`;
    const last = "GET /version HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    const answer = await exchange(server, chat + chat + last);
    assert.equal(answer.match(/HTTP\/1\.1 200 /g)?.length, 3);
    assert.ok(answer.indexOf("chat.completion") < answer.lastIndexOf('"version"'));
  });

  it("aborts every pipelined request when the connection goes", async () => {
    await using server = await startTestServer({}, { stepDelayMs: 5 });
    const chat = `${chatHead}content-length: ${chatBody.length}\r\n\r\n${chatBody}`;
    {
      using socket = await RawSocket.open(server.port);
      socket.send(chat.repeat(4));
      while (server.model.engine.requests.length < 4) await new Promise((resolve) => setTimeout(resolve, 1));
    }
    await server.model.engine.whenIdle();
    assert.equal(server.model.engine.aborted.length, 4);
  });

  it("cuts off a client that does not read its stream", async () => {
    // logprobs make a thousand bytes of every token, far more than the sockets' buffers hold
    const reply = (): string => "x".repeat(20_000);
    await using server = await startTestServer(
      { stallTimeoutMs: 50 },
      { reply, tokensPerStep: 100, maxModelLen: 50_000 },
    );
    using socket = await RawSocket.open(server.port);
    socket.pause();
    const body = JSON.stringify({
      messages: [{ role: "user", content: "hi" }],
      stream: true,
      logprobs: true,
      top_logprobs: 20,
    });
    socket.send(`${chatHead}content-length: ${body.length}\r\n\r\n${body}`);
    while (server.model.engine.requests.length === 0) await new Promise((resolve) => setTimeout(resolve, 1));
    await server.model.engine.whenIdle();
    assert.equal(server.model.engine.aborted.length, 1);
  });

  it("disconnects a client that never reads a complete answer", async () => {
    const reply = (): string => "x".repeat(40_000);
    await using server = await startTestServer(
      { stallTimeoutMs: 50 },
      { reply, tokensPerStep: 10_000, maxModelLen: 50_000 },
    );
    using socket = await RawSocket.open(server.port);
    socket.pause();
    const body = JSON.stringify({
      messages: [{ role: "user", content: "hi" }],
      logprobs: true,
      top_logprobs: 20,
    });
    socket.send(`${chatHead}content-length: ${body.length}\r\n\r\n${body}`);
    while (server.model.engine.requests.length === 0) await new Promise((resolve) => setTimeout(resolve, 1));
    while ((await numConnections(server)) > 1) await new Promise((resolve) => setTimeout(resolve, 5));
  });

  it("streams many prompts to a slow reader without warnings", async () => {
    const warnings: string[] = [];
    const onWarning = ({ message }: Error): void => void warnings.push(message);
    process.on("warning", onWarning);
    const reply = (): string => "x".repeat(2000);
    await using server = await startTestServer({}, { reply, tokensPerStep: 50, maxModelLen: 50_000 });
    using socket = await RawSocket.open(server.port);
    socket.pause();
    const prompt = Array.from({ length: 30 }, (_, index) => `prompt ${index}`);
    const body = JSON.stringify({ prompt, stream: true, logprobs: 20, max_tokens: 2000 });
    socket.send(
      `POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    );
    while (server.model.engine.requests.length < 30) await new Promise((resolve) => setTimeout(resolve, 1));
    await new Promise((resolve) => setTimeout(resolve, 50));
    socket.resume();
    await socket.until((received) => received.includes("data: [DONE]"));
    await server.model.engine.whenIdle();
    process.off("warning", onWarning);
    assert.deepEqual(warnings, []);
  });

  it("ignores unknown expectations", async () => {
    await using server = await startTestServer();
    const answer = await exchange(
      server,
      "GET /version HTTP/1.1\r\nhost: x\r\nexpect: miracles\r\nconnection: close\r\n\r\n",
    );
    assert.match(answer, /^HTTP\/1\.1 200 /);
  });

  it("answers absolute targets and refuses broken escapes", async () => {
    await using server = await startTestServer();
    const absolute = await exchange(
      server,
      "GET http://example.org/version HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n",
    );
    assert.match(absolute, /^HTTP\/1\.1 200 /);
    const broken = await exchange(server, "GET /%zz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    assert.match(broken, /^HTTP\/1\.1 400 /);
  });

  it("drops connections over the bound", async () => {
    await using server = await startTestServer({ maxConnections: 1 });
    using first = await RawSocket.open(server.port);
    first.send("GET /version HTTP/1.1\r\nhost: x\r\n\r\n");
    await first.until((received) => received.includes("version"));
    using second = await RawSocket.open(server.port);
    second.send("GET /version HTTP/1.1\r\nhost: x\r\n\r\n");
    assert.equal(await second.untilClosed(), "");
  });
});
