// What a span per request costs: octavo-mini serving the same load with tracing off and on, in turns, in one process. Spans go to
// an OTLP collector in a process of its own and, in a second comparison, to the local store. `--rounds N` and `--requests N` for shorter runs.
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
  options: { rounds: { type: "string", default: "7" }, requests: { type: "string", default: "400" } },
});
const rounds = Number(flags.rounds);
const concurrency = 8;
/** Short answers: what a request costs beside its tokens weighs most. */
const load = { inputTokens: 16, outputTokens: 16, numRequests: Number(flags.requests), warmupRequests: 16 };

const collectorSource = `
  const server = require("node:http").createServer((request, response) => {
    request.resume().on("end", () => response.writeHead(200, { "content-type": "application/json" }).end("{}"));
  });
  server.listen(0, "127.0.0.1", () => console.log(server.address().port));
`;

type Way = "off" | "otlp" | "store";

interface Sample {
  readonly requestsPerSecond: number;
  /** Of this process, engine included. */
  readonly cpuMsPerRequest: number;
}

async function measure(llm: LLM, way: Way, endpoint: string, folder: string): Promise<Sample> {
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
  const { summary } = await loadFromOutside(closedLoop(url, concurrency, load));
  const { user, system } = process.cpuUsage(before);
  const metrics = await (await fetch(`${url}/metrics`)).text();
  const counted = (name: string): number => Number(new RegExp(`^${name} (\\d+)$`, "m").exec(metrics)?.[1]);
  const made =
    counted('octavo:trace_spans_total\\{outcome="delivered"\\}') + counted("octavo:trace_spans_waiting");
  // the load client asks once more, to see that someone answers
  const numRequests = load.numRequests + load.warmupRequests;
  assert.ok(way === "off" ? made === 0 : made >= numRequests, `${made} spans of ${numRequests} requests`);
  return {
    requestsPerSecond: summary.requestsPerSecond,
    cpuMsPerRequest: (user + system) / 1000 / numRequests,
  };
}

const folder = await mkdtemp(join(tmpdir(), "octavo-tracing-bench-"));
const collector = spawn(process.execPath, ["-e", collectorSource], { stdio: ["ignore", "pipe", "inherit"] });
try {
  const [port]: unknown[] = await once(collector.stdout, "data");
  const endpoint = `http://127.0.0.1:${String(port).trim()}`;
  await using llm = await LLM.load(embeddedModel);
  await checkAnswers(llm);
  await measure(llm, "off", endpoint, folder);
  const samples: Readonly<Record<Way, Sample[]>> = { off: [], otlp: [], store: [] };
  const ways: readonly Way[] = ["off", "otlp", "store"];
  for (let round = 0; round < rounds; round++) {
    for (const way of round % 2 === 0 ? ways : ways.toReversed())
      samples[way].push(await measure(llm, way, endpoint, folder));
  }
  const rate = (way: Way): number => median(samples[way].map(({ requestsPerSecond }) => requestsPerSecond));
  const cpu = (way: Way): number => median(samples[way].map(({ cpuMsPerRequest }) => cpuMsPerRequest));
  /** Each round compared with itself, so that what drifts between rounds does not count. */
  const ratio = (way: Way): number =>
    median(
      samples[way].map(
        (sample, round) => sample.requestsPerSecond / (samples.off[round]?.requestsPerSecond ?? 1),
      ),
    );
  const cases: BenchCase[] = [
    {
      name: "tracing off",
      unit: "requests/s",
      octavo: rate("off"),
      details: { load, concurrency, samples: samples.off },
    },
  ];
  for (const way of ["otlp", "store"] as const) {
    const name = way === "otlp" ? "spans to a collector" : "spans to the local store";
    cases.push(
      {
        name: `${name}: throughput of what it is without`,
        unit: "ratio",
        octavo: ratio(way),
        target: { atLeast: 0.98 },
        details: { requestsPerSecond: rate(way), samples: samples[way] },
      },
      {
        name: `${name}: CPU of a request of what it is without`,
        unit: "ratio",
        octavo: cpu(way) / cpu("off"),
      },
    );
  }
  report("tracing", cases);
} finally {
  collector.kill();
  await rm(folder, { recursive: true });
}
