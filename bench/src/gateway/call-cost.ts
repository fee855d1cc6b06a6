import { readdirSync, readFileSync } from "node:fs";
import { OctavoError } from "@octavo/protocol";
import { median } from "../support/median.js";
import type { BenchCase } from "../support/results.js";
import {
  allOn,
  ask,
  numClients,
  type GatewayContender,
  passedChat,
  startHelper,
  startLiteLlm,
  startMinimalProxy,
  startGateway,
  startPortkey,
  startVllmRouter,
  stop,
} from "./contenders.js";
import { leanLoad, warmUpSeconds } from "./lean-load.js";

export interface CallCostOptions {
  /** Of calls, a round. */
  readonly seconds: number;
  readonly streams: number;
  readonly rounds: number;
  /** The folder that has them; undefined without. */
  readonly peers: string | undefined;
}

/** CPU time of a call, in microseconds, on a quiet machine. */
const limits: Readonly<Record<string, number>> = { "octavo, bare": 60, "octavo, all on": 100 };
/** How many times the peer's requests per CPU second are wanted. */
const wanted: Readonly<Record<string, number>> = { Portkey: 4, LiteLLM: 20, "vllm-router": 0.5 };
/** Of the streams of the others: it needs so much more for each that fewer tell enough. */
const share = (name: string): number => (name === "LiteLLM" ? 0.04 : 1);

/** The calls of a run: in a process of their own, which takes little of the processors that the gateway needs. */
async function callsOf(contender: GatewayContender, seconds: number): Promise<number> {
  const { port, headers } = contender;
  const body = passedChat(false);
  return (await leanLoad({ port, headers, body, kind: "closed", clients: numClients, seconds })).numCalls;
}

async function streamsOf(contender: GatewayContender, count: number): Promise<number> {
  const body = passedChat(true);
  let left = count;
  const run = async (): Promise<void> => {
    while (left-- > 0) await ask(contender, body);
  };
  await Promise.all(Array.from({ length: numClients }, run));
  return count;
}

/** Time that a process's threads ran, in microseconds, as the scheduler counts it: in nanoseconds, where `stat` has hundredths of a second. */
function cpuMicros({ process: child }: GatewayContender): number {
  const folder = `/proc/${child.pid ?? 0}/task`;
  let nanoseconds = 0;
  for (const thread of readdirSync(folder))
    nanoseconds += Number(readFileSync(`${folder}/${thread}/schedstat`, "utf8").split(" ")[0]);
  return nanoseconds / 1000;
}

interface Chunk {
  readonly choices: readonly { readonly delta?: { readonly content?: string } }[];
}

async function checkAnswers(contender: GatewayContender): Promise<void> {
  const whole = JSON.parse(await ask(contender, passedChat(false))) as {
    choices: { message: { content: string } }[];
  };
  if (whole.choices[0]?.message.content !== "x".repeat(200))
    throw new OctavoError("internal_error", `${contender.name} gives another answer`);
  if (!contender.streams) return;
  const text = (await ask(contender, passedChat(true)))
    .split("\n")
    .filter((line) => line.startsWith("data: {"))
    .map((line) => (JSON.parse(line.slice(6)) as Chunk).choices[0]?.delta?.content ?? "")
    .join("");
  if (!/^(?:\d+ ){64}$/.test(text))
    throw new OctavoError("internal_error", `${contender.name} streams ${JSON.stringify(text)}`);
}

interface Samples {
  readonly call: number[];
  readonly stream: number[];
}

/** CPU time of the gateway process for a call that it passes on and for a stream of 64 chunks, by turns. */
export async function callCost({ seconds, streams, rounds, peers }: CallCostOptions): Promise<BenchCase[]> {
  const mock = await startHelper("lean-target", 64, 4);
  const contenders: GatewayContender[] = [];
  try {
    contenders.push(await startGateway("octavo, bare", [mock.port], `access_log: "off"\n`));
    contenders.push(await startGateway("octavo, all on", [mock.port], allOn()));
    contenders.push(await startMinimalProxy(mock.port));
    if (peers !== undefined) {
      contenders.push(await startPortkey(peers, mock.port));
      contenders.push(await startVllmRouter(peers, [mock.port], "round_robin"));
      contenders.push(await startLiteLlm(peers, mock.port));
    }
    const cost = new Map<string, Samples>(contenders.map(({ name }) => [name, { call: [], stream: [] }]));
    for (const contender of contenders) {
      await checkAnswers(contender);
      await callsOf(contender, warmUpSeconds);
      if (contender.streams) await streamsOf(contender, Math.ceil(64 * share(contender.name)));
    }
    for (let round = 0; round < rounds; round += 1)
      for (const contender of round % 2 === 0 ? contenders : contenders.toReversed()) {
        const samples = cost.get(contender.name);
        const take = async (kind: keyof Samples, run: () => Promise<number>): Promise<void> => {
          const before = cpuMicros(contender);
          const count = await run();
          samples?.[kind].push((cpuMicros(contender) - before) / count);
        };
        await take("call", () => callsOf(contender, seconds));
        if (contender.streams)
          await take("stream", () => streamsOf(contender, Math.ceil(streams * share(contender.name))));
      }
    return [...cost].flatMap(([name, own]) => rows(name, own, cost));
  } finally {
    for (const contender of contenders) await stop(contender);
    mock.process.kill("SIGTERM");
  }
}

function rows(name: string, own: Samples, cost: ReadonlyMap<string, Samples>): BenchCase[] {
  const least = cost.get("minimal proxy") ?? own;
  const atMost = limits[name];
  const row = (what: keyof Samples, shown: string): BenchCase => ({
    name: `${name}: CPU of a ${shown}`,
    unit: "µs",
    octavo: median(own[what]),
    ...(what === "call" && atMost !== undefined && { target: { atMost } }),
    details: {
      samples: own[what],
      least: Math.min(...own[what]),
      ratioToMinimal: median(own[what]) / median(least[what]),
      concurrency: numClients,
    },
  });
  const bare = cost.get("octavo, bare") ?? own;
  const full = cost.get("octavo, all on") ?? own;
  const atLeast = wanted[name];
  const ratio = (what: keyof Samples): number => median(own[what]) / median(bare[what]);
  return [
    row("call", "call passed on"),
    ...(own.stream.length === 0 ? [] : [row("stream", "stream of 64 chunks")]),
    ...(atLeast === undefined
      ? []
      : [
          {
            name: `calls per CPU second, octavo bare against ${name}`,
            unit: "x",
            octavo: ratio("call"),
            target: { atLeast },
            details: {
              ...(own.stream.length > 0 && { streams: ratio("stream") }),
              allOn: median(own.call) / median(full.call),
            },
          },
        ]),
  ];
}
