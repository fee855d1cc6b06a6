import { performance } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import { OctavoError } from "@octavo/protocol";
import { Random } from "@octavo/statistics";
import { Pool } from "undici";
import { median } from "../support/median.js";
import type { BenchCase } from "../support/results.js";
import { cpuMicros } from "./call-cost.js";
import {
  allOn,
  ask,
  type GatewayContender,
  poolOf,
  passedChat,
  startHelper,
  startGateway,
  stop,
} from "./contenders.js";

const numStreams = 500;
const streamChunks = 64;
/** As a model of 25 tokens a second for each of 500 would. */
const streamGapMs = 40;
const loadOfCore = 0.7;
const openLoopSeconds = 5;

/** What answers, with the same headers: the target itself, or a gateway in front of it. */
type Way = Pick<GatewayContender, "pool" | "headers">;

function quantile(samples: readonly number[], at: number): number {
  const sorted = Float64Array.from(samples).toSorted();
  return sorted[Math.min(sorted.length - 1, Math.floor(at * sorted.length))] ?? Number.NaN;
}

/** Times of answers, in ms, from when each was due: calls are sent at random moments at this rate, however slow answers are. */
async function openLoop(way: Way, perSecond: number, seed: number): Promise<number[]> {
  const random = new Random(seed);
  const times: number[] = [];
  const body = passedChat(false);
  const running: Promise<void>[] = [];
  const begin = performance.now();
  for (let due = begin; due < begin + openLoopSeconds * 1000;) {
    due += (-Math.log(1 - random.uniform()) * 1000) / perSecond;
    const wait = due - performance.now();
    if (wait > 1) await sleep(wait);
    const sentFor = due;
    running.push(
      ask(way, body).then(() => {
        times.push(performance.now() - sentFor);
      }),
    );
  }
  await Promise.all(running);
  return times;
}

/** Calls per second that a whole core of the gateway would take, by its CPU time in this run. */
async function capacity(contender: GatewayContender): Promise<number> {
  const body = passedChat(false);
  const run = async (count: number): Promise<void> => {
    let left = count;
    await Promise.all(
      Array.from({ length: 32 }, async () => {
        while (left-- > 0) await ask(contender, body);
      }),
    );
  };
  await run(3000);
  const before = cpuMicros(contender);
  await run(10_000);
  return (1e6 * 10_000) / (cpuMicros(contender) - before);
}

/** From when the target wrote a chunk to when the client has it, in ms. */
async function chunkDelays({ pool, headers }: Way): Promise<number[]> {
  const delays: number[] = [];
  const stream = async (): Promise<void> => {
    await sleep(Math.random() * streamGapMs);
    const { statusCode, body } = await pool.request({
      method: "POST",
      path: "/v1/chat/completions",
      headers: { "content-type": "application/json", ...headers },
      body: passedChat(true),
    });
    if (statusCode !== 200) throw new OctavoError("internal_error", `status ${statusCode}`);
    let rest = "";
    let seen = 0;
    for await (const bytes of body) {
      const now = Number(process.hrtime.bigint());
      const lines = (rest + String(bytes)).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) {
        const sent = /"content":"(\d+) "/.exec(line)?.[1];
        if (sent === undefined) continue;
        seen += 1;
        delays.push((now - Number(sent)) / 1e6);
      }
    }
    if (seen !== streamChunks)
      throw new OctavoError("internal_error", `a stream of ${seen} chunks, not ${streamChunks}`);
  };
  await Promise.all(Array.from({ length: numStreams }, stream));
  return delays;
}

interface Pair {
  readonly direct: number;
  readonly through: number;
}

function added(name: string, atMost: number, pairs: readonly Pair[], details: object): BenchCase {
  return {
    name,
    unit: "ms",
    octavo: median(pairs.map(({ direct, through }) => through - direct)),
    target: { atMost },
    details: { pairs, ...details },
  };
}

/** What the gateway, with everything on, adds to the 99th percentile of answers at 70 % load and of chunks of 500 streams. */
export async function addedDelay(rounds: number): Promise<BenchCase[]> {
  const mock = await startHelper("mock-target", streamGapMs, "stamped");
  const gateway = await startGateway("octavo, open loop", [mock.port], allOn());
  const ways = [poolOf(mock.port, 600), poolOf(gateway.port, 600)].map((pool: Pool): Way => ({
    pool,
    headers: gateway.headers,
  }));
  const [direct, through] = ways as [Way, Way];
  try {
    const perSecond = loadOfCore * (await capacity(gateway));
    const calls: Pair[] = [];
    const chunks: Pair[] = [];
    for (let round = 0; round < rounds; round += 1) {
      const p99 = async (way: Way): Promise<number> => quantile(await openLoop(way, perSecond, round), 0.99);
      const chunkP99 = async (way: Way): Promise<number> => quantile(await chunkDelays(way), 0.99);
      calls.push({ direct: await p99(direct), through: await p99(through) });
      chunks.push({ direct: await chunkP99(direct), through: await chunkP99(through) });
    }
    return [
      added("p99 that the gateway adds to a call at 70 % load, open loop", 5, calls, { perSecond }),
      added(`p99 that it adds to a chunk of ${numStreams} streams`, 2, chunks, { streamGapMs }),
    ];
  } finally {
    for (const { pool } of ways) await pool.destroy();
    await stop(gateway);
    mock.process.kill("SIGTERM");
  }
}
