// The client process of the gateway's measurements: HTTP/1.1 over plain sockets, its requests written once, so that the generator takes little
// of the processor that the gateway needs. Takes a `LeanLoad` as JSON, prints a `LeanResult`.
import { connect, type Socket } from "node:net";
import { performance } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import { OctavoError } from "@octavo/protocol";
import { Random } from "@octavo/statistics";

export type LeanLoad = {
  readonly port: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
} & (
  | { readonly kind: "closed"; readonly clients: number; readonly seconds: number }
  | { readonly kind: "open"; readonly perSecond: number; readonly seconds: number; readonly seed: number }
  | { readonly kind: "streams"; readonly streams: number; readonly chunks: number; readonly spreadMs: number }
);

export interface LeanResult {
  readonly numCalls: number;
  readonly perSecond: number;
  /** From when calls were due to when their answer was complete, or from when the target wrote a chunk to when it was read. */
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** From when calls were sent. */
  readonly sentP99Ms: number;
  /** How late calls were sent. */
  readonly lateP99Ms: number;
}

/** Beyond these, calls wait for a connection; the wait is part of their time. */
const maxConnections = 2000;
const headEnd = Buffer.from("\r\n\r\n");
const lastChunk = Buffer.from("0\r\n\r\n");

/** One connection: a call at a time. */
class Connection {
  readonly socket: Socket;
  #waiting: Buffer | undefined;
  #done: (() => void) | undefined;
  #fail: ((cause: Error) => void) | undefined;

  constructor(port: number) {
    this.socket = connect({ port, host: "127.0.0.1", noDelay: true });
    this.socket.on("data", (bytes) => this.#take(bytes));
    this.socket.on("error", (cause) => this.#fail?.(cause));
    this.socket.on("close", () => this.#fail?.(new OctavoError("internal_error", "the connection closed")));
  }

  call(request: Buffer): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#done = resolve;
      this.#fail = reject;
      this.socket.write(request);
    });
  }

  #take(bytes: Buffer): void {
    const all = this.#waiting === undefined ? bytes : Buffer.concat([this.#waiting, bytes]);
    const head = all.indexOf(headEnd);
    this.#waiting = all;
    if (head < 0) return;
    const text = all.toString("latin1", 0, head);
    const length = /content-length: (\d+)/i.exec(text)?.[1];
    const isWhole =
      length === undefined
        ? all.subarray(-lastChunk.length).equals(lastChunk)
        : all.length >= head + headEnd.length + Number(length);
    if (!isWhole) return;
    this.#waiting = undefined;
    if (text.startsWith("HTTP/1.1 200")) this.#done?.();
    else this.#fail?.(new OctavoError("internal_error", all.toString("latin1", 0, 500)));
  }
}

function requestOf({ headers, body }: LeanLoad): Buffer {
  const lines = Object.entries({ host: "127.0.0.1", "content-type": "application/json", ...headers });
  return Buffer.from(
    `POST /v1/chat/completions HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join("")}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
}

function quantile(samples: readonly number[], at: number): number {
  const sorted = Float64Array.from(samples).toSorted();
  return sorted[Math.min(sorted.length - 1, Math.floor(at * sorted.length))] ?? 0;
}

function resultOf(perSecond: number, times: number[], sent: number[], late: number[]): LeanResult {
  return {
    numCalls: times.length,
    perSecond,
    p50Ms: quantile(times, 0.5),
    p99Ms: quantile(times, 0.99),
    sentP99Ms: quantile(sent, 0.99),
    lateP99Ms: quantile(late, 0.99),
  };
}

async function closedLoop(load: LeanLoad & { readonly kind: "closed" }): Promise<LeanResult> {
  const request = requestOf(load);
  const times: number[] = [];
  const begin = performance.now();
  const until = begin + load.seconds * 1000;
  await Promise.all(
    Array.from({ length: load.clients }, async () => {
      const connection = new Connection(load.port);
      for (let now = performance.now(); now < until;) {
        await connection.call(request);
        const end = performance.now();
        times.push(end - now);
        now = end;
      }
      connection.socket.destroy();
    }),
  );
  return resultOf((times.length * 1000) / (performance.now() - begin), times, times, []);
}

/** Calls leave at random moments at this rate, however slow answers are. */
async function openLoop(load: LeanLoad & { readonly kind: "open" }): Promise<LeanResult> {
  const request = requestOf(load);
  const random = new Random(load.seed);
  const times: number[] = [];
  const sentTimes: number[] = [];
  const late: number[] = [];
  // connections stand before the clock runs; more are made as they are needed
  const idle = Array.from({ length: 64 }, () => new Connection(load.port));
  const all = [...idle];
  await sleep(200);
  const waiting: number[] = [];
  const running: Promise<void>[] = [];
  const send = (connection: Connection, due: number): void => {
    const sent = performance.now();
    late.push(sent - due);
    running.push(
      connection.call(request).then(() => {
        const end = performance.now();
        times.push(end - due);
        sentTimes.push(end - sent);
        const next = waiting.shift();
        if (next === undefined) idle.push(connection);
        else send(connection, next);
      }),
    );
  };
  const begin = performance.now();
  const until = begin + load.seconds * 1000;
  for (let due = begin; due < until;) {
    const now = performance.now();
    for (; due <= now && due < until; due += (-Math.log(1 - random.uniform()) * 1000) / load.perSecond) {
      let connection = idle.pop();
      if (connection === undefined && all.length < maxConnections)
        all.push((connection = new Connection(load.port)));
      if (connection === undefined) waiting.push(due);
      else send(connection, due);
    }
    await sleep(1);
  }
  for (let settled = 0; settled < running.length; settled += 1) await running[settled];
  for (const { socket } of all) socket.destroy();
  return resultOf((times.length * 1000) / (performance.now() - begin), times, sentTimes, late);
}

/** Streams whose chunks hold the moment at which the target wrote them, on the machine's monotonic clock. */
async function streams(load: LeanLoad & { readonly kind: "streams" }): Promise<LeanResult> {
  const request = requestOf(load);
  const delays: number[] = [];
  const begin = performance.now();
  await Promise.all(
    Array.from({ length: load.streams }, async (_, index) => {
      await sleep((index * load.spreadMs) / load.streams);
      const socket = connect({ port: load.port, host: "127.0.0.1", noDelay: true });
      socket.write(request);
      let rest = "";
      let seen = 0;
      for await (const bytes of socket as AsyncIterable<Buffer>) {
        const now = Number(process.hrtime.bigint());
        const text = rest + bytes.toString("latin1");
        let last = 0;
        for (const found of text.matchAll(/"content":"(\d+) "/g)) {
          delays.push((now - Number(found[1])) / 1e6);
          seen += 1;
          last = found.index + found[0].length;
        }
        rest = text.slice(Math.max(last, text.length - 64));
        if (text.includes("data: [DONE]")) break;
      }
      socket.destroy();
      if (seen !== load.chunks)
        throw new OctavoError("internal_error", `a stream of ${seen} chunks, not ${load.chunks}`);
    }),
  );
  return resultOf((delays.length * 1000) / (performance.now() - begin), delays, [], []);
}

const load = JSON.parse(process.argv[2] ?? "{}") as LeanLoad;
const result = await (load.kind === "closed"
  ? closedLoop(load)
  : load.kind === "open"
    ? openLoop(load)
    : streams(load));
process.stdout.write(JSON.stringify(result));
process.exit(0);
