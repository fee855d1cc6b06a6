// `npm run demo:evals`: the embedded model in 4 bits against itself in bf16: answers scored, every serving check made small,
// one page with what came of it. Everything runs on this machine, and every process ends with the demo.
// `--only quantization,jitter` makes some of the checks.
import { spawn } from "node:child_process";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join, relative } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { demoConfiguration } from "./lib/demo-configuration.mjs";
import { startServer } from "./lib/start-server.mjs";
import { fail, root, say } from "./lib/steps.mjs";
import { setup } from "./setup.mjs";

const begun = Date.now();
const { values: given } = parseArgs({ options: { only: { type: "string" } } });
await setup();
const { checkNames } = await import(pathToFileURL(join(root, "packages/evals/dist/index.js")).href);
const only = given.only?.split(",") ?? checkNames;
const unknown = only.find((name) => !checkNames.includes(name));
if (unknown !== undefined) fail(`there is no check ${unknown}; there are ${checkNames.join(", ")}`);

const cli = join(root, "packages/cli/dist/main.js");
const generator = join(root, "models/octavo-mini/dist/generator/main.js");
const model = join(root, "models/octavo-mini");
const folder = join(root, ".octavo/demo-evals");
const path = (name) => join(folder, name);

// Children end with this process, and it ends with npm, which does not pass SIGTERM on.
const children = new Set();
process.on("exit", () => {
  for (const child of children) child.kill("SIGTERM");
});
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => process.exit(130));
const parent = process.ppid;
setInterval(() => {
  if (process.ppid !== parent) process.exit(143);
}, 500).unref();

/** Runs one of our own scripts to its end; `allowed` are the exit codes that are no failure. */
async function step(script, args, { allowed = [0], stdio = "inherit" } = {}) {
  const child = spawn(process.execPath, [script, ...args], { stdio });
  children.add(child);
  const code = await new Promise((resolve) => child.on("close", resolve));
  children.delete(child);
  if (!allowed.includes(code)) fail(`${args.slice(0, 3).join(" ")} ended with ${code}`);
}

/** Writes a few cases of each of the model's tasks with their right answers, and some with long prompts. */
async function writeGolden() {
  const golden = [];
  for (const [task, count] of Object.entries({ tools: 40, extraction: 40, grounded: 30, retrieval: 10 })) {
    const file = path(`${task}.jsonl`);
    const length = task === "retrieval" ? ["--context-tokens", "1200"] : [];
    const flags = ["--task", task, "--count", String(count), "--seed", "demo", "--out", file];
    await step(generator, [...flags, ...length]);
    golden.push(await readFile(file, "utf8"));
  }
  await writeFile(path("golden.jsonl"), golden.join(""));
}

/** Production, as the spans of a server recorded it: longer prompts than the golden cases have. */
async function recordProduction(url, store) {
  const traffic = ["--base-url", url, "--endpoint", "chat", "--num-prompts", "48", "--request-rate", "6"];
  const lengths = ["--input-len", "160", "--output-len", "24", "--range-ratio", "0.5", "--warmup", "0"];
  await step(cli, ["bench", "serve", ...traffic, ...lengths], { stdio: "ignore" });
  await step(cli, ["traces", "export", path("production.parquet"), "--store", store]);
}

await rm(folder, { recursive: true, force: true });
await mkdir(folder, { recursive: true });
say("golden cases from the model's own generator");
await writeGolden();
say("the candidate: 4 bits a weight");
await step(cli, ["quantize", model, "--method", "gguf:Q4_0", "--out", path("int4")]);

const quiet = ["--threads", "1", "--log-level", "silent"];
const int4 = [path("int4/model-Q4_0.gguf"), "--served-model-name", "octavo-mini-int4", ...quiet];
// a small cache, so that a burst has something to evict
const candidateFlags = [...int4, "--port", "0", "--enable-fault-injection", "--kv-cache-memory", "24MiB"];
const baselineFlags = [
  "--served-model-name",
  "octavo-mini",
  "--port",
  "0",
  "--trace-store",
  path("traces"),
  ...quiet,
];
const servers = [
  await startServer([model, ...baselineFlags]),
  await startServer(candidateFlags),
  await startServer(candidateFlags),
];
const [baseline, candidate, replica] = servers.map(({ url }) => url);
say(`bf16 at ${baseline}, 4 bits at ${candidate} and ${replica}`);
if (only.includes("traffic-drift")) {
  say("production, as spans recorded it");
  await recordProduction(baseline, path("traces"));
}

// one that takes a while to come up
const late = ["--port", "{port}", "--enable-fault-injection", "--fault-start-delay", "2"];
const startReplica = [process.execPath, cli, "serve", ...int4, ...late];
const servedAt = { baseline, candidate, replica, startReplica };
await writeFile(path("eval.yaml"), demoConfiguration({ ...servedAt, only }));
const outputs = [
  ["--html", path("report.html")],
  ["--json", path("report.json")],
  ["--junit", path("report.xml")],
  ["--markdown", path("report.md")],
].flat();
// pass, fail and inconclusive are all what the demo is for
await step(cli, ["eval", "gate", "--config", path("eval.yaml"), ...outputs], { allowed: [0, 2, 3] });
const { checks } = JSON.parse(await readFile(path("report.json"), "utf8"));
for (const { check, summary } of checks)
  if (summary.startsWith("Could not be made")) fail(`${check}: ${summary}`);
if (checks.length !== only.length) fail(`${checks.length} of ${only.length} checks were made`);
say(`${Math.round((Date.now() - begun) / 1000)} s; open ${relative(process.cwd(), path("report.html"))}`);
await Promise.all(servers.map((server) => server.stop("SIGKILL")));
process.exit(0);
