// What a span per request costs: octavo-mini serving the same loads with tracing off and on, in turns, in one process. Spans go to
// an OTLP collector in a process of its own and, in a second comparison, to the local store. `--rounds N` for shorter runs.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { LLM } from "@octavo/engine";
import { createServer, type ServerConfig } from "@octavo/server";
import { SpanStore } from "@octavo/tracing/store";
import { median } from "./support/median.js";
import { type BenchCase, report } from "./support/results.js";
import { checkAnswers, closedLoop, embeddedModel, loadFromOutside } from "./support/served-model.js";

const { values: flags } = parseArgs({
  options: { rounds: { type: "string", default: "13" } },
});
const rounds = Number(flags.rounds);
const concurrency = 8;

interface Load {
  readonly name: string;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly numRequests: number;
  readonly target?: BenchCase["target"];
}

const loads: readonly Load[] = [
  {
    name: "256 tokens in, 128 out",
    inputTokens: 256,
    outputTokens: 128,
    numRequests: 96,
    target: { atLeast: 0.98 },
  },
  // what a request costs beside its tokens weighs most here: the worst that tracing can do
  { name: "16 tokens in, 16 out", inputTokens: 16, outputTokens: 16, numRequests: 400 },
];
const warmupRequests = 16;

const collectorSource = `
  const server = require("node:http").createServer((request, response) => {
    request.resume().on("end", () => response.writeHead(200, { "content-type": "application/json" }).end("{}"));
  });
  server.listen(0, "127.0.0.1", () => console.log(server.address().port));
`;

type Way = "off" | "otlp" | "store";

interface Sample {
  readonly requestsPerSecond: number;
  /** CPU time of this process, engine included. */
  readonly cpuMsPerRequest: number;
}

async function measure(
  llm: LLM,
  way: Way,
  { inputTokens, outputTokens, numRequests }: Load,
  endpoint: string,
  folder: string,
): Promise<Sample> {
  const config: Partial<ServerConfig> = {
    port: 0,
    logLevel: "silent",
    accessLog: false,
    ...(way === "otlp" ? { otlpEndpoint: endpoint } : {}),
  };
  const store = way === "store" ? await SpanStore.open({ folder }) : undefined;
  await using server = createServer({ model: llm, config, spanSinks: store === undefined ? [] : [store] });
  const { url } = await server.listen();
  const before = process.cpuUsage();
  const { summary } = await loadFromOutside(
    closedLoop(url, concurrency, { inputTokens, outputTokens, numRequests, warmupRequests }),
  );
  const { user, system } = process.cpuUsage(before);
  const metrics = await (await fetch(`${url}/metrics`)).text();
  const counted = (name: string): number => Number(new RegExp(`^${name} (\\d+)$`, "m").exec(metrics)?.[1]);
  const made =
    counted('octavo:trace_spans_total\\{outcome="delivered"\\}') + counted("octavo:trace_spans_waiting");
  // the load client asks once more, to see that someone answers
  const served = numRequests + warmupRequests;
  assert.ok(way === "off" ? made === 0 : made >= served, `${made} spans of ${served} requests`);
  return {
    requestsPerSecond: summary.requestsPerSecond,
    cpuMsPerRequest: (user + system) / 1000 / served,
  };
}

/** The ways in turns, each round compared with itself, so that what drifts between rounds does not count. */
async function compare(llm: LLM, load: Load, endpoint: string, folder: string): Promise<BenchCase[]> {
  await measure(llm, "off", load, endpoint, folder);
  const samples: Readonly<Record<Way, Sample[]>> = { off: [], otlp: [], store: [] };
  const ways: readonly Way[] = ["off", "otlp", "store"];
  for (let round = 0; round < rounds; round++) {
    for (const way of round % 2 === 0 ? ways : ways.toReversed())
      samples[way].push(await measure(llm, way, load, endpoint, folder));
  }
  const ratio = (way: Way, key: keyof Sample): number =>
    median(samples[way].map((sample, round) => sample[key] / (samples.off[round]?.[key] ?? Number.NaN)));
  const rate = (way: Way): number => median(samples[way].map(({ requestsPerSecond }) => requestsPerSecond));
  const cases: BenchCase[] = [
    {
      name: `${load.name}: tracing off`,
      unit: "requests/s",
      octavo: rate("off"),
      details: { concurrency, numRequests: load.numRequests, samples: samples.off },
    },
  ];
  for (const way of ["otlp", "store"] as const) {
    const name = `${load.name}: spans to ${way === "otlp" ? "a collector" : "the local store"}`;
    cases.push(
      {
        name: `${name}, throughput of what it is without`,
        unit: "ratio",
        octavo: ratio(way, "requestsPerSecond"),
        ...(load.target === undefined ? {} : { target: load.target }),
        details: { requestsPerSecond: rate(way), samples: samples[way] },
      },
      {
        name: `${name}, processor time of what it is without`,
        unit: "ratio",
        octavo: ratio(way, "cpuMsPerRequest"),
      },
    );
  }
  return cases;
}

const folder = await mkdtemp(join(tmpdir(), "octavo-tracing-bench-"));
const collector = spawn(process.execPath, ["-e", collectorSource], { stdio: ["ignore", "pipe", "inherit"] });
try {
  const [port]: unknown[] = await once(collector.stdout, "data");
  const endpoint = `http://127.0.0.1:${String(port).trim()}`;
  await using llm = await LLM.load(embeddedModel);
  await checkAnswers(llm);
  const cases: BenchCase[] = [];
  for (const load of loads) cases.push(...(await compare(llm, load, endpoint, folder)));
  report("tracing", cases);
} finally {
  collector.kill();
  await rm(folder, { recursive: true });
}
