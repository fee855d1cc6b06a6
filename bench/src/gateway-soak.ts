// A gateway with everything on under streams and aborts: 500 streams at once, 10,000 calls left at random moments, then mixed traffic
// at half of what it can do, of which 30 % is left, for `--seconds N` (1800). What it holds afterwards must be what it held before.
import { fork, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { OctavoError } from "@octavo/protocol";
import { Random } from "@octavo/statistics";
import { Pool } from "undici";
import type { Holdings } from "./gateway/holdings.js";
import { median } from "./support/median.js";
import { report } from "./support/results.js";

const { values: flags } = parseArgs({
  options: {
    seconds: { type: "string", default: "1800" },
    streams: { type: "string", default: "500" },
    aborts: { type: "string", default: "10000" },
  },
});
const seconds = Number(flags.seconds);
const numStreams = Number(flags.streams);
const numAborts = Number(flags.aborts);
if (!(seconds >= 10)) throw new OctavoError("invalid_option", "--seconds: at least 10");

const folder = mkdtempSync(join(tmpdir(), "octavo-gateway-soak-"));
const mock = spawn(
  process.execPath,
  [fileURLToPath(new URL("./gateway/lean-target.js", import.meta.url)), "64", "4"],
  {
    stdio: ["ignore", "pipe", "inherit"],
  },
);
const [port] = (await once(mock.stdout, "data")) as [Buffer];
const path = join(folder, "gateway.yaml");
writeFileSync(
  path,
  `version: 1
access_log: ${join(folder, "access.log")}
targets:
  mock:
    provider: openai-compatible
    url: "http://127.0.0.1:${port.toString().trim()}"
    connections: 1000
    models: { mock: { input: 1, output: 2 } }
rate_limits: { rules: [{ name: all, requests_per_minute: 100000000, tokens_per_minute: 10000000000, concurrent: 1000 }] }
budgets: [{ name: month, dollars: 1000000 }]
guardrails: { rules: [{ name: pii, check: pii, on: [request, response], action: redact }] }
`,
);
const gateway = fork(fileURLToPath(new URL("./gateway/watched-gateway.js", import.meta.url)), [path], {
  execArgv: ["--expose-gc"],
});
const [url] = (await once(gateway, "message")) as [string];

async function holdings(): Promise<Holdings> {
  gateway.send("holdings");
  const [held] = (await once(gateway, "message")) as [Holdings];
  return held;
}

/** What is held once all clients are gone; sockets and timers of the pool to targets may stay for a while. */
async function atRest(): Promise<Holdings> {
  let held = await holdings();
  for (let waited = 0; waited < 100 && held.calls + held.outstanding > 0; waited += 1)
    held = await holdings();
  return held;
}

const content = "Write to max@example.com, and then say what the capital of France is. ".repeat(4);

interface Outcome {
  completed: number;
  left: number;
  unexpected: number;
}

/** One call, left after a number of chunks where one is given. */
async function call(
  pool: Pool,
  stream: boolean,
  leaveAfter: number | undefined,
  outcome: Outcome,
): Promise<void> {
  const leaving = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  try {
    if (leaveAfter === 0) timer = setTimeout(() => leaving.abort(), 2);
    const { statusCode, body } = await pool.request({
      method: "POST",
      path: "/v1/chat/completions",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ model: "mock", messages: [{ role: "user", content }], max_tokens: 64, stream }),
      signal: leaving.signal,
    });
    let chunks = 0;
    let end = "";
    for await (const chunk of body) {
      end = String(chunk).slice(-16);
      chunks += 1;
      if (leaveAfter !== undefined && chunks >= leaveAfter) leaving.abort();
    }
    if (statusCode === 200 && (!stream || end.endsWith("[DONE]\n\n"))) outcome.completed += 1;
    else outcome.unexpected += 1;
  } catch (thrown) {
    if (leaving.signal.aborted) outcome.left += 1;
    else {
      outcome.unexpected += 1;
      if (outcome.unexpected === 1) process.stderr.write(`${String(thrown)}\n`);
    }
  } finally {
    clearTimeout(timer);
  }
}

/** Resident memory of the gateway, as the kernel counts it: no collection is forced for it. */
function residentNow(): number {
  const kiB = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${gateway.pid ?? 0}/status`, "utf8"))?.[1];
  return Number(kiB) / 2 ** 10;
}

async function sample(until: number, everyMs: number, take: () => unknown): Promise<void> {
  while (Date.now() < until) {
    await sleep(everyMs);
    await take();
  }
}

/** Enough to keep the gateway's core busy: most of a stream is waiting. */
const soakClients = 64;
const none = (): Outcome => ({ completed: 0, left: 0, unexpected: 0 });
const random = new Random(20);

/** Clients that call until told to stop. */
async function traffic(
  clients: number,
  isOver: () => boolean,
  next: (pool: Pool) => Promise<void>,
): Promise<void> {
  const pool = new Pool(url, { connections: clients });
  await Promise.all(
    Array.from({ length: clients }, async () => {
      while (!isOver()) await next(pool);
    }),
  );
  await pool.destroy();
}

try {
  const warm = none();
  let left = 500;
  await traffic(
    32,
    () => left-- <= 0,
    (pool) => call(pool, random.uniform() < 0.3, undefined, warm),
  );
  const before = await atRest();

  const streams = none();
  let open = numStreams;
  await traffic(
    numStreams,
    () => open-- <= 0,
    (pool) => call(pool, true, undefined, streams),
  );
  const afterStreams = await atRest();

  const aborts = none();
  await traffic(
    64,
    () => aborts.left >= numAborts,
    (pool) => call(pool, random.uniform() < 0.7, Math.floor(random.uniform() * 8), aborts),
  );
  const afterAborts = await atRest();

  const mixed = (pool: Pool, outcome: Outcome): Promise<void> => {
    const isLeft = random.uniform() < 0.3;
    return call(pool, random.uniform() < 0.3, isLeft ? Math.floor(random.uniform() * 8) : undefined, outcome);
  };
  const full = none();
  const probeSeconds = Math.min(20, seconds / 5);
  const probeUntil = Date.now() + probeSeconds * 1000;
  await traffic(
    soakClients,
    () => Date.now() >= probeUntil,
    (pool) => mixed(pool, full),
  );
  const perSecond = (full.completed + full.left) / probeSeconds;

  const soak = none();
  const heapMiB: number[] = [];
  const residentMiB: number[] = [];
  const until = Date.now() + seconds * 1000;
  const sampling = Promise.all([
    sample(until, Math.min(60_000, seconds * 25), async () => heapMiB.push((await holdings()).heapMiB)),
    sample(until, Math.min(5000, seconds * 25), () => residentMiB.push(residentNow())),
  ]);
  // clients take turns at moments that are due, so that a slow answer does not slow what follows
  let due = performance.now();
  await traffic(
    soakClients,
    () => Date.now() >= until,
    async (pool) => {
      due = Math.max(due, performance.now() - 1000) + 2000 / perSecond;
      await sleep(due - performance.now());
      await mixed(pool, soak);
    },
  );
  await sampling;
  const afterSoak = await atRest();

  const grew = (samples: readonly number[]): number => {
    const fifth = Math.ceil(samples.length / 5);
    return median(samples.slice(-fifth)) / median(samples.slice(0, fifth));
  };
  const leftOver = [afterStreams, afterAborts, afterSoak];
  const most = (of: (held: Holdings) => number): number => Math.max(...leftOver.map(of));
  report("gateway-soak", [
    {
      name: `${numStreams} streams at once, complete`,
      unit: "streams",
      octavo: streams.completed,
      target: { atLeast: numStreams },
    },
    {
      name: "calls left by their clients",
      unit: "calls",
      octavo: aborts.left,
      target: { atLeast: numAborts },
      details: { ...aborts },
    },
    {
      name: "calls in the soak",
      unit: "calls",
      octavo: soak.completed + soak.left,
      details: { seconds, perSecondAtMost: perSecond, ...soak },
    },
    {
      name: "answers that should not have been",
      unit: "answers",
      octavo: warm.unexpected + streams.unexpected + aborts.unexpected + soak.unexpected,
      target: { atMost: 0 },
    },
    { name: "calls left over", unit: "calls", octavo: most(({ calls }) => calls), target: { atMost: 0 } },
    {
      name: "attempts at targets left over",
      unit: "attempts",
      octavo: most(({ outstanding }) => outstanding),
      target: { atMost: 0 },
    },
    {
      name: "reservations left over",
      unit: "nanodollars",
      octavo: most(({ reserved }) => reserved),
      target: { atMost: 0 },
    },
    {
      name: "timers beyond those before",
      unit: "timers",
      octavo: most(({ timers }) => timers) - before.timers,
      target: { atMost: 0 },
    },
    {
      name: "heap after collection, last fifth of the soak against the first",
      unit: "x",
      octavo: grew(heapMiB),
      target: { atMost: 1.02 },
      details: { before, afterStreams, afterAborts, afterSoak },
    },
    {
      name: "resident memory, last fifth of the soak against the first",
      unit: "x",
      octavo: grew(residentMiB),
      target: { atMost: 1.02 },
      details: { first: residentMiB[0] ?? 0, last: residentMiB.at(-1) ?? 0 },
    },
  ]);
} finally {
  gateway.disconnect();
  mock.kill("SIGTERM");
  rmSync(folder, { recursive: true });
}
