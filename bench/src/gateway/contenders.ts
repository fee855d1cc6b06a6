import { type ChildProcess, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdtempSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { OctavoError } from "@octavo/protocol";
import { Pool } from "undici";

/** A gateway or proxy in a process of its own, in front of the same targets as all others. */
export interface GatewayContender {
  readonly name: string;
  readonly process: ChildProcess;
  readonly port: number;
  readonly pool: Pool;
  readonly headers: Readonly<Record<string, string>>;
  /** Whether it streams at all here. */
  readonly streams: boolean;
}

/** Connections of the client: calls that are under way at the same time. */
export const numClients = 32;
export const folder = mkdtempSync(join(tmpdir(), "octavo-bench-gateway-"));

const octavoMain = fileURLToPath(new URL("../../../packages/cli/dist/main.js", import.meta.url));
const key = "bench-key-of-a-client-0123456789";

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  await new Promise<void>((resolve) => server.close(() => resolve()));
  return typeof address === "object" && address !== null ? address.port : 0;
}

export function poolOf(port: number, connections = numClients): Pool {
  return new Pool(`http://127.0.0.1:${port}`, { connections });
}

function start(command: string, args: readonly string[], env: NodeJS.ProcessEnv = {}): ChildProcess {
  return spawn(command, args, {
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, NODE_ENV: "production", ...env },
  });
}

async function firstLine(child: ChildProcess): Promise<string> {
  return new Promise((resolve) =>
    child.stdout?.once("data", (text: Buffer) => resolve(text.toString().trim())),
  );
}

export interface Helper {
  readonly process: ChildProcess;
  readonly port: number;
}

/** One of the programs beside this file; it prints its port. */
export async function startHelper(name: string, ...args: readonly (string | number)[]): Promise<Helper> {
  const path = fileURLToPath(new URL(`./${name}.js`, import.meta.url));
  const child = start(process.execPath, [path, ...args.map(String)]);
  return { process: child, port: Number(await firstLine(child)) };
}

/** `sections` is the rest of gateway.yaml behind its targets. */
export async function startGateway(
  name: string,
  targetPorts: readonly number[],
  sections: string,
): Promise<GatewayContender> {
  const port = await freePort();
  const path = join(folder, `${name.replaceAll(/\W/g, "-")}-${port}.yaml`);
  const targets = targetPorts.map(
    (targetPort, index) =>
      `  mock-${index}: { provider: openai-compatible, url: "http://127.0.0.1:${targetPort}", connections: 600, models: { mock: { input: 1, output: 2 } } }\n`,
  );
  writeFileSync(path, `version: 1\nlisten: { port: ${port} }\ntargets:\n${targets.join("")}${sections}`);
  const child = start(process.execPath, [octavoMain, "gateway", "--config", path]);
  await firstLine(child);
  return {
    name,
    process: child,
    port,
    pool: poolOf(port),
    headers: { authorization: `Bearer ${key}` },
    streams: true,
  };
}

/** Keys, limits, a budget, guardrails and the log. */
export function allOn(): string {
  return `access_log: ${join(folder, "all-on.log")}
callers: { keys: [{ id: bench, sha256: ${createHash("sha256").update(key).digest("hex")}, tenant: bench }] }
rate_limits: { max_tokens: 4096, rules: [{ name: all, per: key, requests_per_minute: 10000000, tokens_per_minute: 1000000000, concurrent: 100000 }] }
budgets: [{ name: month, per: tenant, dollars: 1000000 }]
guardrails:
  rules:
    - { name: pii, check: pii, on: [request], action: block }
    - { name: injection, check: injection, on: [request], action: block }
    - { name: secrets, check: secrets, on: [request], action: block }
`;
}

export async function startMinimalProxy(targetPort: number): Promise<GatewayContender> {
  const { process: child, port } = await startHelper("minimal-proxy", targetPort);
  return { name: "minimal proxy", process: child, port, pool: poolOf(port), headers: {}, streams: true };
}

/** Portkey's gateway (npm). 1.15 answers streamed calls with 500 on Node: it appends to the headers of fetch's own answer. */
export async function startPortkey(peers: string, targetPort: number): Promise<GatewayContender> {
  const main = peerFile(peers, "portkey/node_modules/@portkey-ai/gateway/build/start-server.js");
  const port = await freePort();
  const child = start(process.execPath, [main, `--port=${port}`, "--headless"]);
  return ready({
    name: "Portkey",
    process: child,
    port,
    pool: poolOf(port),
    headers: {
      authorization: "Bearer none",
      "x-portkey-provider": "openai",
      "x-portkey-custom-host": `http://127.0.0.1:${targetPort}/v1`,
    },
    streams: false,
  });
}

/** LiteLLM's proxy (PyPI), one worker, without a database and without keys. */
export async function startLiteLlm(peers: string, targetPort: number): Promise<GatewayContender> {
  const main = peerFile(peers, "litellm/bin/litellm");
  const port = await freePort();
  const path = join(folder, "litellm.yaml");
  writeFileSync(
    path,
    `model_list:
  - model_name: mock
    litellm_params: { model: openai/mock, api_base: "http://127.0.0.1:${targetPort}/v1", api_key: none }
`,
  );
  const child = start(main, ["--config", path, "--host", "127.0.0.1", "--port", String(port)], {
    LITELLM_LOG: "ERROR",
    LITELLM_LOCAL_MODEL_COST_MAP: "True",
    LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY: "true",
  });
  return ready({ name: "LiteLLM", process: child, port, pool: poolOf(port), headers: {}, streams: true });
}

/** vLLM's router in Rust (PyPI). */
export async function startVllmRouter(
  peers: string,
  targetPorts: readonly number[],
  policy: "round_robin" | "cache_aware",
  settings: readonly string[] = [],
): Promise<GatewayContender> {
  const main = peerFile(peers, "vllm-router/bin/vllm-router");
  const [port, metricsPort] = [await freePort(), await freePort()];
  const urls = targetPorts.map((targetPort) => `http://127.0.0.1:${targetPort}`);
  const ports = ["--port", String(port), "--prometheus-port", String(metricsPort)];
  const child = start(
    main,
    ["--worker-urls", ...urls, "--policy", policy, ...ports, "--log-level", "error"].concat(settings),
  );
  return ready({ name: "vllm-router", process: child, port, pool: poolOf(port), headers: {}, streams: true });
}

function peerFile(peers: string, path: string): string {
  const full = join(peers, path);
  if (existsSync(full)) return full;
  throw new OctavoError("invalid_option", `--peers: there is no ${full}`, { param: "peers" });
}

/** Nobody reads what a peer prints; it takes calls once it answers one. */
async function ready(contender: GatewayContender): Promise<GatewayContender> {
  contender.process.stdout?.resume();
  for (let waited = 0; waited < 600; waited += 1) {
    if (
      await ask(contender, passedChat(false)).then(
        () => true,
        () => false,
      )
    )
      return contender;
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  contender.process.kill("SIGKILL");
  throw new OctavoError("internal_error", `${contender.name} does not answer`);
}

const messages = [
  { role: "system", content: "You are a helpful assistant that answers in one sentence." },
  { role: "user", content: "What is the capital of France, and how many people live there? ".repeat(4) },
];

export function passedChat(stream: boolean): string {
  return JSON.stringify({ model: "mock", messages, max_tokens: 64, ...(stream && { stream: true }) });
}

/** The answer's text. Throws for any status but 200. */
export async function ask(
  { pool, headers }: Pick<GatewayContender, "pool" | "headers">,
  body: string,
): Promise<string> {
  const { statusCode, body: answer } = await pool.request({
    method: "POST",
    path: "/v1/chat/completions",
    headers: { "content-type": "application/json", ...headers },
    body,
  });
  const text = await answer.text();
  if (statusCode !== 200)
    throw new OctavoError("internal_error", `status ${statusCode}: ${text.slice(0, 500)}`);
  return text;
}

export async function stop({ process: child, pool }: GatewayContender): Promise<void> {
  await pool.destroy();
  child.kill("SIGTERM");
}
