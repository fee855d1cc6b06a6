// What answers at addresses that pages name beside a server of Octavo: a Redis, a collector of spans, and models that write and judge.
import { spawn, spawnSync } from "node:child_process";
import { createServer } from "node:net";
import { startScriptedServer } from "../../packages/cli/dist/testing/scripted-server.js";

export const isInstalled = (program) =>
  spawnSync("sh", ["-c", `command -v ${program}`], { stdio: "ignore" }).status === 0;

export function freePort() {
  return new Promise((resolve, reject) => {
    const probe = createServer().once("error", reject);
    probe.listen(0, "127.0.0.1", () => {
      const { port: free } = probe.address();
      probe.close(() => resolve(free));
    });
  });
}

/** Neighbours, each started when a page first names it. */
export function createNeighbours() {
  const started = new Map();
  const lazily = (name, make) => () => {
    if (!started.has(name)) started.set(name, make());
    return started.get(name);
  };
  return {
    redis: lazily("redis", startRedis),
    collector: lazily("collector", startCollector),
    judge: lazily("judge", startJudge),
    async stop() {
      for (const neighbour of started.values()) (await neighbour).stop();
    },
  };
}

async function startRedis() {
  const port = await freePort();
  const flags = [
    "--port",
    String(port),
    "--bind",
    "127.0.0.1",
    "--save",
    "",
    "--maxmemory-policy",
    "noeviction",
  ];
  const child = spawn("redis-server", flags, { stdio: ["ignore", "pipe", "inherit"] });
  for await (const text of child.stdout) if (String(text).includes("Ready to accept connections")) break;
  child.stdout.resume();
  return { port, stop: () => child.kill() };
}

function portOf({ url }) {
  return Number(new URL(url).port);
}

/** Counts what is sent to it. */
async function startCollector() {
  const counts = { posts: 0 };
  const server = await startScriptedServer((request, _, response) => {
    counts.posts += request.method === "POST" ? 1 : 0;
    response.setHeader("content-type", "application/json");
    response.end("{}");
  });
  return { port: portOf(server), counts, stop: () => server.close() };
}

const words = ["please", "refund", "no", "yes", "thanks", "go", "now", "call"];

/** A judge that passes answers with "please", embeddings that count words, and a writer of criteria and prompts. */
async function startJudge() {
  const server = await startScriptedServer((request, asked, response) => {
    response.setHeader("content-type", "application/json");
    const send = (value) => response.end(JSON.stringify(value));
    if (request.url.endsWith("/embeddings")) {
      const embed = (text) => words.map((word) => text.split(/\W+/).filter((one) => one === word).length);
      send({ data: [asked.input].flat().map((text, index) => ({ index, embedding: embed(text) })) });
    } else if (request.method === "POST") {
      const message = { role: "assistant", content: answerOf(asked) };
      send({ choices: [{ index: 0, message, finish_reason: "stop" }] });
    } else send({ data: [{ id: "Qwen/Qwen3-8B" }] });
  });
  return { port: portOf(server), stop: () => server.close() };
}

function answerOf({ model, messages, response_format: format, structured_outputs: outputs }) {
  if (model === "large-model") return "<text>Answer in one short sentence.</text>";
  const labels = format?.json_schema?.schema?.properties?.verdict?.enum ?? outputs?.choice;
  if (labels === undefined) return "<criteria>0.0 for a promise of a refund.</criteria>";
  const passes = messages.some(({ role, content }) => role === "user" && /\bplease\b/i.test(content));
  const verdict =
    (passes ? ["pass", "0.9"] : ["fail", "0.1"]).find((label) => labels.includes(label)) ?? labels[0];
  return outputs === undefined ? JSON.stringify({ reason: "so it is", verdict }) : verdict;
}
