// `npm run demo:evals`: the embedded model in 4 bits against itself in bf16: answers scored, all ten serving checks made small,
// one page with what came of it. Everything runs on this machine, and every process ends with the demo.
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join, relative } from "node:path";
import { startServer } from "./lib/start-server.mjs";
import { fail, must, root, run, say } from "./lib/steps.mjs";
import { setup } from "./setup.mjs";

const begun = Date.now();
await setup();

const cli = join(root, "packages/cli/dist/main.js");
const model = join(root, "models/octavo-mini");
const folder = join(root, ".octavo/demo-evals");
const path = (name) => join(folder, name);
await rm(folder, { recursive: true, force: true });
await mkdir(folder, { recursive: true });

/** One process a thing: what a release has, on free ports. Small caches, so that a burst has something to evict. */
const servers = [];
const serve = async (...args) => {
  const server = await startServer(["--port", "0", "--threads", "1", "--log-level", "silent", ...args]);
  servers.push(server);
  return server.url;
};
const stopAll = () => Promise.all(servers.splice(0).map((server) => server.stop()));
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"])
  process.once(signal, () => void stopAll().then(() => process.exit(130)));

try {
  say("golden cases from the model's own generator");
  const golden = [];
  for (const [task, count] of [
    ["tools", 40],
    ["extraction", 40],
    ["grounded", 30],
    ["retrieval", 10],
  ]) {
    const file = path(`${task}.jsonl`);
    const length = task === "retrieval" ? ["--context-tokens", "1200"] : [];
    const flags = [
      "--task",
      task,
      "--split",
      "heldout",
      "--count",
      String(count),
      "--seed",
      "demo",
      "--out",
      file,
    ];
    await must("the generator", process.execPath, [
      join(root, "models/octavo-mini/dist/generator/main.js"),
      ...flags,
      ...length,
    ]);
    golden.push(await readFile(file, "utf8"));
  }
  await writeFile(path("golden.jsonl"), golden.join(""));

  say("the candidate: 4 bits a weight");
  await must("octavo quantize", process.execPath, [
    cli,
    "quantize",
    model,
    "--method",
    "gguf:Q4_0",
    "--out",
    path("int4"),
  ]);

  const traces = path("traces");
  const int4 = [path("int4/model-Q4_0.gguf"), "--served-model-name", "octavo-mini-int4"];
  const small = ["--enable-fault-injection", "--kv-cache-memory", "24MiB"];
  const baseline = await serve(model, "--served-model-name", "octavo-mini", "--trace-store", traces);
  const candidate = await serve(...int4, ...small);
  const replica = await serve(...int4, ...small);
  say(`bf16 at ${baseline}, 4 bits at ${candidate} and ${replica}`);

  say("a minute of production, as spans recorded it");
  const traffic = [
    "--base-url",
    baseline,
    "--endpoint",
    "chat",
    "--num-prompts",
    "48",
    "--request-rate",
    "6",
  ];
  const lengths = ["--input-len", "160", "--output-len", "24", "--range-ratio", "0.5", "--warmup", "0"];
  await must("octavo bench serve", process.execPath, [cli, "bench", "serve", ...traffic, ...lengths], {
    stdio: "ignore",
  });
  await must("octavo traces", process.execPath, [
    cli,
    "traces",
    "export",
    path("production.parquet"),
    "--store",
    traces,
  ]);

  await writeFile(path("eval.yaml"), configuration({ baseline, candidate, replica }));
  const outputs = ["html", "json", "junit", "markdown"].flatMap((kind) => [
    `--${kind}`,
    path({ html: "report.html", json: "report.json", junit: "report.xml", markdown: "report.md" }[kind]),
  ]);
  const code = await run(process.execPath, [cli, "eval", "gate", "--config", path("eval.yaml"), ...outputs]);
  // a verdict is what the demo is for, whichever it is
  if (![0, 2, 3].includes(code)) fail(`octavo eval gate ended with ${code}`);
  say(`${Math.round((Date.now() - begun) / 1000)} s; open ${relative(process.cwd(), path("report.html"))}`);
} finally {
  await stopAll();
}

function configuration({ baseline, candidate, replica }) {
  const late = [
    process.execPath,
    cli,
    "serve",
    path("int4/model-Q4_0.gguf"),
    "--port",
    "{port}",
    "--threads",
    "1",
  ];
  const startReplica = [
    ...late,
    "--log-level",
    "silent",
    "--enable-fault-injection",
    "--fault-start-delay",
    "2",
  ];
  return `version: 1
name: octavo-mini in 4 bits
seed: 1
timeout: 8m
targets:
  baseline: { base_url: "${baseline}" }
  candidate: { base_url: "${candidate}" }
  replicas:
    - { base_url: "${candidate}" }
    - { base_url: "${replica}" }
  start_replica: ${JSON.stringify(startReplica)}
parameters: { max_tokens: 96 }
datasets:
  golden: { path: golden.jsonl }
evaluators: [exact_match, json_schema, evaluate_function_calling]
health:
  quality:
    - delta pass_rate(exact_match) >= -0.05
    - delta pass_rate(evaluate_function_calling) >= -0.05
  latency:
    - ratio median(ttft_ms) <= 1.5
    - p90(duration_ms) <= 10s
  throughput:
    - ratio throughput >= 0.7
  error_rate:
    - error_rate <= 0.05
# every check made small, with margins as wide as so few cases need: to see them work, not to decide a real release
checks:
  quantization: { margin: 0.1, axis_tags: [] }
  tail: { prompt_edges: [128, 256], output_edges: [16, 48], part_tokens: 24, min_clusters: 5 }
  jitter: { rounds: 6, tokens: 96, slice_ms: 25, full_slice: 4, burst_prompts: 3, burst_prompt_tokens: 1200, replays: 3 }
  eviction: { difference_margin: 0.1, concurrency: 4 }
  fairness: { requests: 40, rounds: 2, small_requests_per_minute: 480, large_requests_per_minute: 600, large_output_tokens: 8 }
  replica-skew: { margin: 0.1 }
  autoscaling-lag: { requests: 24, idle_requests_per_second: 6, burst_requests_per_second: 20, replica_timeout_ms: 30000 }
  eviction-burst: { concurrency: 8, burst_in_flight: 6, burst_prompt_tokens: 600, burst_output_tokens: 16 }
  traffic-drift: { recording: production.parquet }
  tenant-fairness: { requests: 40, rounds: 2, small_requests_per_minute: 480, large_requests_per_minute: 600, large_output_tokens: 8 }
max_check_cases: 120
`;
}
