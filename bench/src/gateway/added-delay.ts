import { loadavg } from "node:os";
import { median } from "../support/median.js";
import type { BenchCase } from "../support/results.js";
import {
  allOn,
  type GatewayContender,
  passedChat,
  startGateway,
  startHelper,
  startMinimalProxy,
  stop,
} from "./contenders.js";
import type { LeanResult } from "./lean-client.js";
import { leanLoad, warmUpSeconds } from "./lean-load.js";

const numStreams = 500;
const streamChunks = 100;
/** As a model of 25 tokens a second for each of 500 would. */
const streamGapMs = 40;
const share = 0.7;
const openLoopSeconds = 5;

/** What answers: the target itself, or something in front of it. */
type Way = Pick<GatewayContender, "name" | "port" | "headers">;

const calls = ({ port, headers }: Way) => ({ port, headers, body: passedChat(false) });

/** Calls a second in a closed loop: all that the client, the target and what stands between them can do together here. */
async function capacityOf(way: Way): Promise<number> {
  const load = { ...calls(way), kind: "closed", clients: 32 } as const;
  await leanLoad({ ...load, seconds: warmUpSeconds });
  return (await leanLoad({ ...load, seconds: 3 })).perSecond;
}

type Round = Readonly<Record<string, LeanResult>>;

/** Each way in turn, in the other order every second round. */
async function inTurn(
  ways: readonly Way[],
  rounds: number,
  run: (way: Way, round: number) => Promise<LeanResult>,
): Promise<Round[]> {
  const all: Round[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const results: Record<string, LeanResult> = {};
    for (const way of round % 2 === 0 ? ways : ways.toReversed()) results[way.name] = await run(way, round);
    all.push(results);
  }
  return all;
}

/** Medians over rounds of the difference between two ways in the same round. */
function added(rounds: readonly Round[], of: string, to: string): number {
  return median(rounds.map((round) => (round[of]?.p99Ms ?? Number.NaN) - (round[to]?.p99Ms ?? Number.NaN)));
}

function rows(
  rounds: readonly Round[],
  name: (contender: string) => string,
  atMost: number,
  details: object,
): BenchCase[] {
  return Object.keys(rounds[0] ?? {})
    .filter((contender) => contender !== "direct")
    .map((contender) => ({
      name: name(contender),
      unit: "ms",
      octavo: added(rounds, contender, "direct"),
      ...(contender === "octavo, all on" && { target: { atMost } }),
      details: {
        ...details,
        loadAverage: loadavg()[0],
        beyondMinimal: added(rounds, contender, "minimal proxy"),
        rounds: rounds.map((round) => ({ [contender]: round[contender], direct: round["direct"] })),
      },
    }));
}

/**
 * What the gateway adds to the 99th percentile of answers at 70 % load and of chunks of 500 streams: beside the same load sent to the
 * target itself, and through the least proxy. 70 % is of what the gateway with everything on does in a closed loop on this machine,
 * client and target beside it.
 */
export async function addedDelay(rounds: number): Promise<BenchCase[]> {
  const target = await startHelper("lean-target", streamChunks, streamGapMs);
  const contenders: GatewayContender[] = [];
  try {
    contenders.push(await startMinimalProxy(target.port));
    contenders.push(await startGateway("octavo, bare", [target.port], `access_log: "off"\n`));
    contenders.push(await startGateway("octavo, all on", [target.port], allOn()));
    const ways: Way[] = [{ name: "direct", port: target.port, headers: {} }, ...contenders];
    const capacity: Record<string, number> = {};
    for (const way of ways) capacity[way.name] = await capacityOf(way);
    const perSecond = share * (capacity["octavo, all on"] ?? 0);
    const open = await inTurn(ways, rounds, (way, seed) =>
      leanLoad({ ...calls(way), kind: "open", perSecond, seconds: openLoopSeconds, seed }),
    );
    const chunks = await inTurn(ways, rounds, ({ port, headers }) =>
      leanLoad({
        port,
        headers,
        body: passedChat(true),
        kind: "streams",
        streams: numStreams,
        chunks: streamChunks,
        spreadMs: 10 * streamGapMs,
      }),
    );
    return [
      ...rows(open, (name) => `${name}: p99 added to a call at 70 % load, open loop`, 5, {
        perSecond,
        capacity,
      }),
      ...rows(chunks, (name) => `${name}: p99 added to a chunk of ${numStreams} streams`, 2, { streamGapMs }),
    ];
  } finally {
    for (const contender of contenders) await stop(contender);
    target.process.kill("SIGTERM");
  }
}
