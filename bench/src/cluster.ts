// A cluster of octavo-mini: how long a second replica takes to be ready, how long one takes to be replaced after kill -9 under load and
// how many requests fail meanwhile, and what the simulator predicts of one and two replicas against what they do.
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { autoscalingSchema, generateCalls, measureCosts, reportOf, simulateCluster } from "@octavo/cluster";
import { OctavoError } from "@octavo/protocol";
import { request } from "undici";
import { median } from "./support/median.js";
import { report } from "./support/results.js";

const octavoMain = fileURLToPath(new URL("../../packages/cli/dist/main.js", import.meta.url));
const path = join(mkdtempSync(join(tmpdir(), "octavo-bench-cluster-")), "cluster.yaml");
const key = "bench-key-of-an-operator";

function configure(replicas: number): void {
  writeFileSync(
    path,
    `version: 1
driver: { kind: local, log: "off" }
gateway: { listen: { port: 0 }, admin: { port: 0, key: ${key} }, access_log: "off" }
deployments:
  - name: mini
    model_loading_config: { model_id: octavo-mini }
    engine_kwargs: { max_model_len: 1024 }
    max_ongoing_requests: 64
    num_replicas: ${replicas}
`,
  );
}

let said = "";

async function heard(pattern: RegExp, from = 0): Promise<RegExpExecArray> {
  for (;;) {
    const found = pattern.exec(said.slice(from));
    if (found !== null) return found;
    await sleep(2);
  }
}

interface Asked {
  readonly isOk: boolean;
  readonly firstMs: number;
}

async function ask(
  url: string,
  prompt: readonly number[],
  outputTokens: number,
  replica?: string,
): Promise<Asked> {
  const startMs = performance.now();
  try {
    const answer = await request(`${url}/v1/completions`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        ...(replica !== undefined && { "x-octavo-replica-id": replica }),
      },
      body: JSON.stringify({
        model: "octavo-mini",
        prompt,
        max_tokens: outputTokens,
        ignore_eos: true,
        stream: true,
      }),
    });
    let firstMs = 0;
    let text = "";
    for await (const chunk of answer.body) {
      if (firstMs === 0) firstMs = performance.now() - startMs;
      text += String(chunk);
    }
    return {
      isOk: answer.statusCode === 200 && text.includes("[DONE]") && !text.includes("error_code"),
      firstMs,
    };
  } catch {
    return { isOk: false, firstMs: 0 };
  }
}

/** Milliseconds from kill -9 until a new replica takes calls, and what was asked meanwhile. */
async function killOne(child: ChildProcess, url: string) {
  const over = new AbortController();
  const answers: boolean[] = [];
  const clients = Array.from({ length: 8 }, async () => {
    while (!over.signal.aborted) answers.push((await ask(url, randomTokens(30), 40)).isOk);
  });
  await sleep(500);
  const [victim] = readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, "utf8").split(" ");
  const from = said.length;
  const startMs = performance.now();
  process.kill(Number(victim), "SIGKILL");
  await heard(/is ready/, from);
  const replacedMs = performance.now() - startMs;
  over.abort();
  await Promise.all(clients);
  return { replacedMs, numRequests: answers.length, numFailed: answers.filter((isOk) => !isOk).length };
}

/** Milliseconds to the first token at a replica, of prompts whose prefix it computed before its first request, and of others. */
async function firstTokens(url: string, hot: readonly (readonly number[])[], replica: string) {
  const [warm, cold]: [number[], number[]] = [[], []];
  for (const prefix of hot)
    for (const [of, begin] of [
      [cold, randomTokens(prefix.length)],
      [warm, prefix],
    ] as const)
      of.push((await ask(url, [...begin, ...randomTokens(8)], 2, replica)).firstMs);
  return { warmMs: median(warm), coldMs: median(cold) };
}

function randomTokens(count: number): readonly number[] {
  return Array.from({ length: count }, () => 40 + Math.floor(Math.random() * 200));
}

/** Until the standby process has started, and what serves is compiled: costs and what is predicted from them are those of a warm replica. */
async function warmUp(url: string, replicas: number): Promise<void> {
  await sleep(3000);
  const clients = Array.from({ length: 2 * replicas }, async () => {
    for (let count = 0; count < 150; count += 1) await ask(url, randomTokens(60), 10);
  });
  await Promise.all(clients);
}

/** The same arrivals and lengths, asked and simulated. */
async function compare(
  url: string,
  replicas: number,
  costs: Awaited<ReturnType<typeof measureCosts>>,
  rate: number,
) {
  const durationS = 20;
  const phases = [{ fromS: 0, requestsPerSecond: rate * replicas }];
  const calls = generateCalls({
    phases,
    durationS,
    burstiness: 1,
    promptTokens: 60,
    outputTokens: 40,
    seed: replicas,
  }).map((call) => ({
    ...call,
    promptTokens: Math.min(400, call.promptTokens),
    outputTokens: Math.min(200, call.outputTokens),
  }));
  const startMs = performance.now();
  const answers = await Promise.all(
    calls.map(async ({ atS, promptTokens, outputTokens }) => {
      await sleep(atS * 1000);
      return ask(url, randomTokens(promptTokens), outputTokens);
    }),
  );
  const tookS = (performance.now() - startMs) / 1000;
  const firsts = answers.map(({ firstMs }) => firstMs).toSorted((a, b) => a - b);
  const autoscaling = autoscalingSchema.parse({ min_replicas: replicas, max_replicas: replicas });
  const simulated = simulateCluster({ calls, costs, autoscaling, maxOngoing: 64, maxQueued: -1, seed: 1 });
  const predicted = reportOf(simulated, { firstTokenMs: 1000, tokenMs: 100 });
  const measured = {
    firstTokenP50Ms: firsts[firsts.length >> 1] ?? 0,
    requestsPerSecond: calls.length / tookS,
  };
  return {
    replicas,
    numFailed: answers.filter(({ isOk }) => !isOk).length,
    measured,
    predicted: {
      firstTokenP50Ms: predicted.firstTokenMs.p50,
      requestsPerSecond: predicted.requestsPerSecond,
    },
    firstTokenRatio: predicted.firstTokenMs.p50 / measured.firstTokenP50Ms,
    throughputRatio: predicted.requestsPerSecond / measured.requestsPerSecond,
  };
}

configure(1);
const child = spawn(process.execPath, [octavoMain, "cluster", "--config", path], {
  stdio: ["ignore", "pipe", "pipe"],
});
for (const stream of [child.stdout, child.stderr])
  stream.on("data", (text: Buffer) => (said += text.toString()));
try {
  const [, url = ""] = await heard(/cluster: (http:\S+)\/v1,/);
  await heard(/is ready/);
  await warmUp(url, 1);
  const costs = await measureCosts(url, "octavo-mini");
  // a quarter of what one replica does alone: its clients and the gateway compute on the same processors
  const rate =
    250 /
    (costs.per_request_ms + 60 * costs.per_prompt_token_ms + 40 * (costs.base_ms + costs.per_sequence_ms));
  const one = await compare(url, 1, costs, rate);
  const hot = Array.from({ length: 8 }, () => randomTokens(768));
  for (const prefix of [...hot, ...hot, ...hot]) await ask(url, [...prefix, ...randomTokens(8)], 2);
  const from = said.length;
  configure(2);
  const startMs = performance.now();
  child.kill("SIGHUP");
  await heard(/is ready/, from);
  const secondReadyMs = performance.now() - startMs;
  const firsts = await firstTokens(url, hot, "mini-1");
  await warmUp(url, 2);
  const two = await compare(url, 2, costs, rate);
  const kill = await killOne(child, url);
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
    ...[one, two].flatMap((run) => [
      {
        name: `${run.replicas} replicas: predicted to measured first token, p50`,
        unit: "×",
        octavo: run.firstTokenRatio,
        target: { atLeast: 0.85, atMost: 1.15 },
        details: { ...run, costs },
      },
      {
        name: `${run.replicas} replicas: predicted to measured throughput`,
        unit: "×",
        octavo: run.throughputRatio,
        target: { atLeast: 0.85, atMost: 1.15 },
      },
    ]),
  ]);
  if (kill.numFailed > 0)
    throw new OctavoError("internal_error", `${kill.numFailed} requests failed after kill -9`);
} finally {
  child.kill("SIGTERM");
}
