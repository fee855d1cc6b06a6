import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { brotliCompressSync, deflateSync, gzipSync } from "node:zlib";
import { type RunningOctavo, startOctavo } from "../testing/run-octavo.js";

const folder = mkdtempSync(join(tmpdir(), "octavo-floods-"));
after(() => rmSync(folder, { recursive: true }));

const path = "/v1/chat/completions";
const head = `POST ${path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n`;
const mebi = 2 ** 20;
const piece = Buffer.alloc(mebi, 32);
/** What bodies may hold by default, twice: as they came, and as text. All that is sent is some 600. */
const maxGrowthMiB = 2 * 256;

/** All that comes back; what is sent after the other side has had enough is lost. */
async function send(port: number, pieces: Iterable<Buffer | string>): Promise<string> {
  const socket = connect(port, "127.0.0.1");
  let answer = "";
  let isOpen = true;
  socket.on("data", (bytes) => (answer += bytes.toString("latin1")));
  socket.on("error", () => undefined);
  const closed = new Promise<void>((resolve) => {
    socket.on("close", () => {
      isOpen = false;
      resolve();
    });
  });
  for (const bytes of pieces) {
    if (!isOpen) break;
    if (!socket.write(bytes)) await Promise.race([once(socket, "drain").catch(() => undefined), closed]);
  }
  // a peer that answered and reads no more is not waited for
  const patience = setTimeout(() => socket.destroy(), 2000);
  await closed;
  clearTimeout(patience);
  return answer;
}

function* body(mebibytes: number, isChunked: boolean, missing = 0): Generator<Buffer | string> {
  const length = isChunked ? "transfer-encoding: chunked" : `content-length: ${mebibytes * mebi + missing}`;
  yield `${head}${length}\r\n\r\n`;
  for (let sent = 0; sent < mebibytes; sent += 1) {
    if (isChunked) yield `${mebi.toString(16)}\r\n`;
    yield piece;
    if (isChunked) yield "\r\n";
  }
  if (isChunked) yield "0\r\n\r\n";
}

interface Victim {
  readonly port: number;
  readonly octavo: RunningOctavo;
}

async function start(args: readonly string[]): Promise<Victim> {
  const octavo = startOctavo(args);
  const port = await new Promise<number>((resolve, reject) => {
    let said = "";
    for (const output of [octavo.child.stdout, octavo.child.stderr])
      output.on("data", (text: string) => {
        said += text;
        const found = /http:\/\/[\d.]+:(\d+)/.exec(said);
        if (found !== null) resolve(Number(found[1]));
      });
    void octavo.ended.then(({ err }) => reject(new TypeError(err)));
  });
  return { port, octavo };
}

/** The most resident memory that the process ever had. */
const peakMiB = ({ octavo }: Victim): number =>
  Number(
    /VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${octavo.child.pid ?? 0}/status`, "utf8"))?.[1] ?? Number.NaN,
  ) / 1024;

const victims: Readonly<Record<string, () => Promise<readonly [Victim, () => void]>>> = {
  "octavo serve": async () => [
    await start(["serve", "--port", "0", "--threads", "1", "--max-model-len", "512"]),
    () => undefined,
  ],
  "octavo gateway": async () => {
    const target = createServer((request, response) => {
      request.resume().on("end", () => {
        response.setHeader("content-type", "application/json");
        response.end(JSON.stringify({ object: "chat.completion", choices: [] }));
      });
    });
    await new Promise<void>((resolve) => target.listen(0, "127.0.0.1", resolve));
    const config = join(folder, "gateway.yaml");
    const { port } = target.address() as AddressInfo;
    writeFileSync(
      config,
      `version: 1\nlisten: { port: 0 }\naccess_log: "off"\ntargets: { one: { provider: openai-compatible, url: "http://127.0.0.1:${port}", models: [octavo-mini] } }\n`,
    );
    return [
      await start(["gateway", "--config", config]),
      () => {
        target.close();
        target.closeAllConnections();
      },
    ];
  },
};

// peaks of memory are read from Linux's /proc
describe("floods", { skip: process.platform !== "linux" }, () => {
  for (const [name, begin] of Object.entries(victims))
    it(`of bodies, bombs and headers end with named errors, and ${name} stands with bounded memory`, async () => {
      const [victim, stop] = await begin();
      const { port, octavo } = victim;
      const ask = async (more: RequestInit = {}): Promise<Response> =>
        fetch(`http://127.0.0.1:${port}${path}`, {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify({
            model: "octavo-mini",
            max_tokens: 2,
            messages: [{ role: "user", content: "hi" }],
          }),
          ...more,
        });
      try {
        assert.equal((await ask()).status, 200);
        const before = peakMiB(victim);

        for (const isChunked of [false, true])
          assert.match(
            await send(port, body(100, isChunked)),
            /^HTTP\/1\.1 413 [^]*payload_too_large/,
            isChunked ? "chunked" : "announced",
          );
        // each is small enough alone, and none is complete
        const many = await Promise.all(Array.from({ length: 16 }, () => send(port, body(29, false, 1))));
        assert(
          many.some((answer) => /^HTTP\/1\.1 503 [^]*overloaded/.test(answer)),
          "no body was too much",
        );
        for (const answer of many) assert.match(answer, /^$|^HTTP\/1\.1 503 /);

        const zeros = Buffer.alloc(64 * mebi);
        for (const [encoding, compress] of Object.entries({
          gzip: gzipSync,
          deflate: deflateSync,
          br: (bytes: Buffer) => brotliCompressSync(bytes, { params: { 1: 0 } }),
        })) {
          const answer = await ask({
            headers: { "content-type": "application/json", "content-encoding": encoding },
            body: compress(zeros),
          });
          assert.deepEqual(
            [answer.status, answer.headers.get("x-octavo-error-code")],
            [415, "unsupported_media_type"],
          );
          await answer.text();
        }

        for (const lengths of [
          "content-length: 5\r\ncontent-length: 6\r\n",
          "content-length: 5\r\ntransfer-encoding: chunked\r\n",
          "transfer-encoding: chunked\r\ntransfer-encoding: identity\r\n",
        ]) {
          const answer = await send(port, [
            `${head}${lengths}\r\n0\r\n\r\nGET /health HTTP/1.1\r\nhost: x\r\n\r\n`,
          ]);
          assert.match(answer, /^HTTP\/1\.1 400 [^]*connection: close/i, lengths);
          assert.equal(answer.split("HTTP/1.1 ").length, 2, `a second request was smuggled in: ${lengths}`);
        }

        const line = `x-flood: ${"y".repeat(8000)}\r\n`;
        const short = Array.from({ length: 10_000 }, (_, at) => `x-${at}: y\r\n`);
        for (const flood of [Array.from({ length: 12 }, () => line), short])
          assert.match(
            await send(port, [[head, ...flood, "\r\n"].join("")]),
            /^HTTP\/1\.1 431 [^]*headers_too_large/,
          );
        // a peer that goes on sending loses the answer with the connection
        assert.match(
          await send(port, [head, ...Array.from({ length: 1000 }, () => line)]),
          /^$|^HTTP\/1\.1 431 /,
        );

        // none of many is dropped: the last one still counts
        const shortest = "a:b\r\n".repeat(2200);
        assert.match(
          await send(port, [
            `${head}${shortest}x-request-id: the-last-one\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}`,
          ]),
          /^HTTP\/1\.1 400 [^]*request-id: the-last-one/i,
        );

        const grewMiB = peakMiB(victim) - before;
        assert(grewMiB < maxGrowthMiB, `${name} grew by ${grewMiB} MiB`);
        assert.equal((await ask()).status, 200);
        assert.equal(octavo.child.exitCode, null);
      } finally {
        octavo.child.kill("SIGTERM");
        await octavo.ended;
        stop();
      }
    });
});
