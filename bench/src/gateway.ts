// CPU time that a gateway process takes for a call that it passes on, and for a stream of 64 chunks, beside the least that any
// proxy on Node takes, by turns in one run.
import { type ChildProcess, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { OctavoError } from "@octavo/protocol";
import { Pool } from "undici";
import { median } from "./support/median.js";
import { report } from "./support/results.js";

const { values: flags } = parseArgs({
  options: {
    requests: { type: "string", default: "10000" },
    streams: { type: "string", default: "300" },
    rounds: { type: "string", default: "3" },
  },
});
const numRequests = Number(flags.requests);
const numStreams = Number(flags.streams);
const concurrency = 32;
/** CPU time of a call, in microseconds, on a quiet machine. */
const limits: Readonly<Record<string, number>> = { "octavo, bare": 60, "octavo, all on": 100 };

interface Contender {
  readonly name: string;
  readonly process: ChildProcess;
  readonly pool: Pool;
  readonly headers: Readonly<Record<string, string>>;
}

const octavoMain = fileURLToPath(new URL("../../packages/cli/dist/main.js", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "octavo-bench-gateway-"));
const key = "bench-key-of-a-client-0123456789";

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  await new Promise<void>((resolve) => server.close(() => resolve()));
  return typeof address === "object" && address !== null ? address.port : 0;
}

function start(args: readonly string[]): ChildProcess {
  return spawn(process.execPath, args, {
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, NODE_ENV: "production" },
  });
}

async function firstLine(child: ChildProcess): Promise<string> {
  return new Promise((resolve) =>
    child.stdout?.once("data", (text: Buffer) => resolve(text.toString().trim())),
  );
}

async function octavo(name: string, mockPort: number, sections: string): Promise<Contender> {
  const port = await freePort();
  const path = join(folder, `${name.replaceAll(/\W/g, "-")}.yaml`);
  writeFileSync(
    path,
    `version: 1
listen: { port: ${port} }
targets:
  mock: { provider: openai-compatible, url: "http://127.0.0.1:${mockPort}", models: { mock: { input: 1, output: 2 } } }
${sections}`,
  );
  const child = start([octavoMain, "gateway", "--config", path]);
  await firstLine(child);
  return { name, process: child, pool: poolOf(port), headers: { authorization: `Bearer ${key}` } };
}

/** Keys, limits, a budget, guardrails and the log. */
function allOn(): string {
  return `access_log: ${join(folder, "all-on.log")}
callers: { keys: [{ id: bench, sha256: ${createHash("sha256").update(key).digest("hex")}, tenant: bench }] }
rate_limits: { max_tokens: 4096, rules: [{ name: all, per: key, requests_per_minute: 10000000, tokens_per_minute: 1000000000, concurrent: 1000 }] }
budgets: [{ name: month, per: tenant, dollars: 1000000 }]
guardrails:
  rules:
    - { name: pii, check: pii, on: [request], action: block }
    - { name: injection, check: injection, on: [request], action: block }
    - { name: secrets, check: secrets, on: [request], action: block }
`;
}

async function minimalProxy(mockPort: number): Promise<Contender> {
  const child = start([
    fileURLToPath(new URL("./gateway/minimal-proxy.js", import.meta.url)),
    String(mockPort),
  ]);
  const port = Number(await firstLine(child));
  return { name: "minimal proxy", process: child, pool: poolOf(port), headers: {} };
}

function poolOf(port: number): Pool {
  return new Pool(`http://127.0.0.1:${port}`, { connections: concurrency });
}

const messages = [
  { role: "system", content: "You are a helpful assistant that answers in one sentence." },
  { role: "user", content: "What is the capital of France, and how many people live there? ".repeat(4) },
];

async function ask({ pool, headers }: Contender, stream: boolean): Promise<string> {
  const { statusCode, body } = await pool.request({
    method: "POST",
    path: "/v1/chat/completions",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify({ model: "mock", messages, max_tokens: 64, ...(stream && { stream: true }) }),
  });
  const text = await body.text();
  if (statusCode !== 200)
    throw new OctavoError("internal_error", `status ${statusCode}: ${text.slice(0, 500)}`);
  return text;
}

async function load(contender: Contender, stream: boolean, count: number): Promise<void> {
  let left = count;
  const run = async (): Promise<void> => {
    while (left-- > 0) await ask(contender, stream);
  };
  await Promise.all(Array.from({ length: concurrency }, run));
}

/** User and system time of a process and of its threads, in microseconds; the kernel counts in hundredths of a second. */
function cpuMicros({ process: child }: Contender): number {
  const stat = readFileSync(`/proc/${child.pid ?? 0}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) * 10_000;
}

async function checkAnswers(contender: Contender): Promise<void> {
  const whole = JSON.parse(await ask(contender, false)) as { choices: { message: { content: string } }[] };
  if (whole.choices[0]?.message.content !== "x".repeat(200))
    throw new OctavoError("internal_error", `${contender.name} gives another answer`);
  const words = (await ask(contender, true)).match(/"content":"word "/g)?.length;
  if (words !== 64) throw new OctavoError("internal_error", `${contender.name} gives ${words} of 64 chunks`);
}

const mock = start([fileURLToPath(new URL("./gateway/mock-target.js", import.meta.url))]);
const mockPort = Number(await firstLine(mock));
const contenders = [await octavo("octavo, bare", mockPort, `access_log: "off"\n`)];
contenders.push(await octavo("octavo, all on", mockPort, allOn()));
contenders.push(await minimalProxy(mockPort));
try {
  const cost = new Map(
    contenders.map(({ name }) => [name, { call: [] as number[], stream: [] as number[] }]),
  );
  for (const contender of contenders) {
    await checkAnswers(contender);
    await load(contender, false, 3000);
    await load(contender, true, 64);
  }
  for (let round = 0; round < Number(flags.rounds); round += 1) {
    for (const contender of round % 2 === 0 ? contenders : contenders.toReversed()) {
      for (const [stream, count] of [
        [false, numRequests],
        [true, numStreams],
      ] as const) {
        const before = cpuMicros(contender);
        await load(contender, stream, count);
        cost.get(contender.name)?.[stream ? "stream" : "call"].push((cpuMicros(contender) - before) / count);
      }
    }
  }
  const least = cost.get("minimal proxy");
  report(
    "gateway",
    contenders.flatMap(({ name }) => {
      const own = cost.get(name) ?? { call: [], stream: [] };
      const rows = [
        {
          what: "call",
          samples: own.call,
          atMost: limits[name],
        },
        { what: "stream", samples: own.stream, atMost: undefined as number | undefined },
      ] as const;
      return rows.map(({ what, samples, atMost }) => ({
        name: `${name}: CPU of a ${what === "call" ? "call passed on" : "stream of 64 chunks"}`,
        unit: "µs",
        octavo: median(samples),
        ...(atMost !== undefined && { target: { atMost } }),
        details: { samples, ratioToMinimal: median(samples) / median(least?.[what] ?? samples), concurrency },
      }));
    }),
  );
} finally {
  for (const { process: child, pool } of contenders) {
    await pool.destroy();
    child.kill("SIGTERM");
  }
  mock.kill("SIGTERM");
}
