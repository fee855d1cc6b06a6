// `npm run demo:gateway`: the gateway in front of the embedded model in bf16 and of the same in 2 bits, a canary that was spoiled.
// Calls for JSON go through the gateway; it compares the arms' answers, rolls the canary back, and a page explains the decision.
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join, relative } from "node:path";
import { pathToFileURL } from "node:url";
import { rolloutPage } from "./lib/rollout-page.mjs";
import { startServer } from "./lib/start-server.mjs";
import { fail, root, run, say } from "./lib/steps.mjs";
import { setup } from "./setup.mjs";

const begun = Date.now();
await setup();
const load = (path) => import(pathToFileURL(join(root, path)).href);
const { serveGateway } = await load("packages/gateway/dist/index.js");
const kit = await load("packages/report/dist/index.js");

const model = join(root, "models/octavo-mini");
const folder = join(root, ".octavo/demo-gateway");
const path = (name) => join(folder, name);
const adminKey = "demo-gateway-admin-key";
/** Calls at the same time, and at most. */
const clients = 4;
const mostCalls = 400;
const callsAfter = 20;

await rm(folder, { recursive: true, force: true });
await mkdir(folder, { recursive: true });
say("the canary: 2 bits a weight, rounded without care");
const cli = join(root, "packages/cli/dist/main.js");
const quantized = await run(process.execPath, [
  cli,
  "quantize",
  model,
  "--method",
  "gptq",
  "--bits",
  "2",
  "--round-to-nearest",
  "--out",
  path("int2"),
]);
if (quantized !== 0) fail("quantize failed");
const prompts = path("extraction.jsonl");
const generated = await run(process.execPath, [
  join(root, "models/octavo-mini/dist/generator/main.js"),
  "--task",
  "extraction",
  "--count",
  "200",
  "--seed",
  "demo",
  "--out",
  prompts,
]);
if (generated !== 0) fail("the prompts could not be made");
const cases = (await readFile(prompts, "utf8"))
  .trim()
  .split("\n")
  .map((line) => JSON.parse(line).messages);

const flags = ["--served-model-name", "mini", "--port", "0", "--threads", "1", "--log-level", "silent"];
const servers = [await startServer([model, ...flags]), await startServer([path("int2"), ...flags])];
const [primary, canary] = servers.map(({ url }) => url);
say(`bf16 at ${primary}, 2 bits at ${canary}`);

const target = (url) => ({ provider: "octavo", url, models: ["mini"] });
await writeFile(
  path("gateway.yaml"),
  // YAML reads JSON
  JSON.stringify({
    version: 1,
    listen: { port: 0 },
    admin: { port: 0, key: adminKey },
    access_log: path("access.jsonl"),
    targets: { bf16: target(primary), int2: target(canary) },
    routes: { mini: { models: ["mini"], targets: ["bf16"] } },
    rollouts: [
      {
        name: "int2",
        model: "mini",
        primary: { target: "bf16" },
        canary: { target: "int2" },
        key: "user",
        pair_share: 1,
        stages: [
          { mode: "shadow", share: 0.25, min_pairs: 10 },
          { share: 0.05, min_pairs: 50 },
          { share: 0.25, min_pairs: 50 },
          { share: 1, min_pairs: 50 },
        ],
        gates: [{ check: "json_valid" }, { check: "finished" }],
      },
    ],
  }),
);
const gateway = await serveGateway({ path: path("gateway.yaml"), environment: {} });

async function rollout() {
  const headers = { authorization: `Bearer ${adminKey}` };
  const response = await fetch(`${gateway.adminUrl}/admin/rollouts/int2`, { headers });
  return response.json();
}

async function ask(url, index) {
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      model: "mini",
      user: `user-${index % 50}`,
      messages: cases[index % cases.length],
      temperature: 0,
      max_tokens: 160,
    }),
  });
  const json = await response.json();
  if (!response.ok) fail(`a call failed: ${JSON.stringify(json)}`);
  return { target: response.headers.get("x-octavo-target"), text: json.choices[0].message.content };
}

say("calls through the gateway until it decides");
const progress = [];
const served = { total: 0, canary: 0, after: 0, canaryAfter: 0 };
let state = await rollout();
let next = 0;
const client = async () => {
  while (next < mostCalls && state.status === "running") {
    const { target: by } = await ask(gateway.url, next++);
    served.total++;
    if (by === "int2") served.canary++;
    state = await rollout();
    progress.push({ pairs: state.pairs, harm: state.harm });
  }
};
await Promise.all(Array.from({ length: clients }, client));
const decidedMs = Date.now();
say(`${state.status} after ${state.pairs} pairs: ${state.journal.at(-1)?.reason ?? "no decision"}`);
for (; served.after < callsAfter; served.after++) {
  const { target: by } = await ask(gateway.url, next++);
  served.total++;
  if (by === "int2") served.canaryAfter++;
}
served.canary += served.canaryAfter;
const prompt = cases[0].at(-1).content;
const example = {
  prompt,
  primary: (await ask(primary, 0)).text,
  canary: (await ask(canary, 0)).text,
};
const seconds = Math.round((decidedMs - begun) / 1000);
const page = rolloutPage(kit, {
  report: await rollout(),
  progress: progress.toSorted((a, b) => a.pairs - b.pairs),
  example,
  served,
  seconds,
});
await writeFile(path("rollout.html"), page);
await gateway.stop();
await Promise.all(servers.map((server) => server.stop("SIGKILL")));
if (state.status !== "rolled_back") fail(`the spoiled canary was not rolled back: ${state.status}`);
if (served.canaryAfter > 0)
  fail(`${served.canaryAfter} calls were answered by the canary after it was rolled back`);
say(`${Math.round((Date.now() - begun) / 1000)} s; open ${relative(process.cwd(), path("rollout.html"))}`);
process.exit(0);
