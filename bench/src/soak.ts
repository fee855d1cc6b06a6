// A server under mixed traffic, of which clients leave many before they are answered, for 15 minutes: whether memory stays, whether the
// event loop turns, and whether anything is left over. `--seconds N` for a shorter one.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { loadavg } from "node:os";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { OctavoError } from "@octavo/protocol/errors";
import type { SoakCounts, SoakTraffic } from "./soak/soak-traffic.js";
import { median } from "./support/median.js";
import { report } from "./support/results.js";
import { embeddedModel, withServer } from "./support/served-model.js";

const resolutionMs = 1;
const blockedMs = (nanoseconds: number): number => Math.max(0, nanoseconds / 1e6 - resolutionMs);
const { values } = parseArgs({ options: { seconds: { type: "string", default: "900" } } });
const seconds = Number(values.seconds);
if (!(seconds >= 10)) throw new OctavoError("invalid_option", "--seconds: at least 10");

async function run(traffic: SoakTraffic): Promise<SoakCounts> {
  const client = fileURLToPath(new URL("soak/soak-traffic.js", import.meta.url));
  const child = spawn(process.execPath, [client, JSON.stringify(traffic)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const chunks: Buffer[] = [];
  child.stdout.on("data", (chunk: Buffer) => chunks.push(chunk));
  const [code]: unknown[] = await once(child, "close");
  if (code !== 0) throw new OctavoError("internal_error", `the client ended with ${String(code)}`);
  return JSON.parse(Buffer.concat(chunks).toString()) as SoakCounts;
}

/** A small cache is full soon, so that its memory does not look like a leak. */
const loading = { kvCacheMemoryBytes: 64 * 2 ** 20 } as const;

await withServer(embeddedModel, loading, async (baseUrl, llm) => {
  const load = [loadavg()[0]];
  const delay = monitorEventLoopDelay({ resolution: resolutionMs });
  const rssMiB: number[] = [];
  // caches fill to their bounds and code is compiled first
  await run({ baseUrl, seconds: Math.min(120, seconds / 5), clients: 12, seed: 1 });
  delay.enable();
  const second = monitorEventLoopDelay({ resolution: resolutionMs });
  second.enable();
  const longestMsBySecond: number[] = [];
  const memoryMiB = (): Record<string, number> =>
    Object.fromEntries(
      Object.entries(process.memoryUsage()).map(([kind, bytes]) => [kind, Math.round(bytes / 2 ** 20)]),
    );
  const memoryBefore = memoryMiB();
  const sampler = setInterval(() => {
    rssMiB.push(process.memoryUsage.rss() / 2 ** 20);
    longestMsBySecond.push(blockedMs(second.max));
    second.reset();
  }, 1000);
  const counts = await run({ baseUrl, seconds, clients: 12, seed: 1000 });
  clearInterval(sampler);
  delay.disable();
  second.disable();
  load.push(loadavg()[0]);
  const fifth = Math.ceil(rssMiB.length / 5);
  const [first, last] = [median(rssMiB.slice(0, fifth)), median(rssMiB.slice(-fifth))];
  // what clients left is given up within a step
  for (let waited = 0; llm.engine.stats.running + llm.engine.stats.waiting > 0 && waited < 100; waited += 1)
    await new Promise((resolve) => setTimeout(resolve, 50));
  const { running, waiting, totalBlocks, freeBlocks, cachedBlocks } = llm.engine.stats;
  const { sent, completed, aborted, refused, unexpected, examples } = counts;
  const details = {
    seconds,
    sent,
    completed,
    aborted,
    refused,
    examples,
    loadAverage: load,
    memoryMiB: [memoryBefore, memoryMiB()],
    // the ten seconds in which the loop stood longest
    blocked: longestMsBySecond
      .map((ms, atSecond) => ({ atSecond, ms: Math.round(ms) }))
      .sort((a, b) => b.ms - a.ms)
      .slice(0, 10),
  };
  report("soak", [
    {
      name: "requests, mixed",
      unit: "requests",
      octavo: completed + aborted + refused,
      details,
    },
    { name: "of them left by the client before they ended", unit: "requests", octavo: aborted },
    { name: "answers that should not have been", unit: "answers", octavo: unexpected, target: { atMost: 0 } },
    {
      name: "resident memory, last fifth of the time against the first",
      unit: "x",
      octavo: last / first,
      target: { atMost: 1.05 },
    },
    { name: "sequences left over", unit: "sequences", octavo: running + waiting, target: { atMost: 0 } },
    {
      name: "blocks neither free nor cached",
      unit: "blocks",
      octavo: totalBlocks - freeBlocks - cachedBlocks,
      target: { atMost: 0 },
    },
    {
      name: "event loop blocked, p99.9",
      unit: "ms",
      octavo: blockedMs(delay.percentile(99.9)),
      target: { atMost: 20 },
    },
    {
      name: "event loop blocked, longest",
      unit: "ms",
      octavo: blockedMs(delay.max),
      target: { atMost: 200 },
    },
  ]);
});
