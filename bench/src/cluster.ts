// A cluster of octavo-mini: how long a second replica takes to be ready, and one to be replaced after kill -9 under load, how many
// requests fail meanwhile, and what a new replica has cached.
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { OctavoError } from "@octavo/protocol";
import { askCluster, uncachedPrompt, ClusterProcess, warmUp } from "./cluster/cluster-process.js";
import { median } from "./support/median.js";
import { report } from "./support/results.js";

/** Milliseconds from kill -9 until a new replica takes calls, and what was asked meanwhile. */
async function killOne(cluster: ClusterProcess) {
  const over = new AbortController();
  const answers: boolean[] = [];
  const clients = Array.from({ length: 8 }, async () => {
    while (!over.signal.aborted) answers.push((await askCluster(cluster.url, uncachedPrompt(30), 40)).isOk);
  });
  await sleep(500);
  const { pid } = cluster.process;
  const [victim] = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ");
  const replacedMs = await cluster.msToReady(() => process.kill(Number(victim), "SIGKILL"));
  over.abort();
  await Promise.all(clients);
  return { replacedMs, numRequests: answers.length, numFailed: answers.filter((isOk) => !isOk).length };
}

/** Milliseconds to the first token at a replica, of prompts whose prefix it computed before its first request, and of others. */
async function firstTokens(url: string, hot: readonly (readonly number[])[], replica: string) {
  const [warm, cold]: [number[], number[]] = [[], []];
  for (const prefix of hot)
    for (const [of, begin] of [
      [cold, uncachedPrompt(prefix.length)],
      [warm, prefix],
    ] as const)
      of.push((await askCluster(url, [...begin, ...uncachedPrompt(8)], 2, replica)).firstMs);
  return { warmMs: median(warm), coldMs: median(cold) };
}

await using cluster = await ClusterProcess.start();
await warmUp(cluster.url, 150);
const hot = Array.from({ length: 8 }, () => uncachedPrompt(768));
for (const prefix of [...hot, ...hot, ...hot])
  await askCluster(cluster.url, [...prefix, ...uncachedPrompt(8)], 2);
const secondReadyMs = await cluster.addReplica();
const firsts = await firstTokens(cluster.url, hot, "mini-1");
await warmUp(cluster.url, 150, 4);
const kill = await killOne(cluster);
report("cluster", [
  {
    name: "second replica ready, a standby process waiting",
    unit: "ms",
    octavo: secondReadyMs,
    target: { atMost: 1000 },
  },
  {
    name: "first token at the new replica, hot prefix to any other of the same length",
    unit: "×",
    octavo: firsts.warmMs / firsts.coldMs,
    details: firsts,
  },
  {
    name: "replaced after kill -9 under load",
    unit: "ms",
    octavo: kill.replacedMs,
    target: { atMost: 3000 },
  },
  {
    name: "failed requests",
    unit: "",
    octavo: kill.numFailed,
    target: { atMost: 0 },
    details: { ...kill },
  },
]);
if (kill.numFailed > 0)
  throw new OctavoError("internal_error", `${kill.numFailed} requests failed after kill -9`);
