import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { OctavoError } from "@octavo/protocol";
import { Random } from "@octavo/statistics";
import { median } from "../support/median.js";
import type { BenchCase } from "../support/results.js";
import { ask, type GatewayContender, poolOf, startGateway, startVllmRouter, stop } from "./contenders.js";

const numReplicas = 4;
const numSessions = 192;
const numTurns = 6;
/** Sessions at the same time; each sends its next turn as soon as it has the answer to the last. */
const clients = 48;
/** What a replica's cache compares and keeps, in characters. */
const blockChars = 64;
/** Of a replica: room for the sessions of its share that are under way, and little more. */
const maxBlocks = 1500;

interface Message {
  readonly role: string;
  readonly content: string;
}

/** A model's server as far as its prefix cache goes: what it has not cached takes time, and the least recently used goes first. */
class Replica {
  readonly #server: Server;
  readonly #blocks = new Map<string, true>();
  numCalls = 0;
  numChars = 0;
  numCached = 0;

  constructor() {
    this.#server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("end", () => {
        response.setHeader("content-type", "application/json");
        if (request.method !== "POST") {
          response.end("{}");
          return;
        }
        const { messages } = JSON.parse(Buffer.concat(chunks).toString()) as { messages: Message[] };
        const text = messages.map(({ role, content }) => `${role}: ${content}\n`).join("");
        const uncached = text.length - this.#take(text);
        setTimeout(() => response.end(JSON.stringify(answerTo(text))), 10 + uncached / 200);
      });
    });
  }

  async listen(): Promise<number> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return (this.#server.address() as AddressInfo).port;
  }

  /** Characters that were cached. */
  #take(text: string): number {
    let prefix = "";
    let cached = 0;
    let isCached = true;
    for (let at = 0; at + blockChars <= text.length; at += blockChars) {
      prefix = text.slice(0, at + blockChars);
      isCached &&= this.#blocks.delete(prefix);
      if (isCached) cached += blockChars;
      this.#blocks.set(prefix, true);
    }
    for (const oldest of this.#blocks.keys()) {
      if (this.#blocks.size <= maxBlocks) break;
      this.#blocks.delete(oldest);
    }
    this.numCalls += 1;
    this.numChars += text.length;
    this.numCached += cached;
    return cached;
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }
}

const words =
  "the of model token cache block replica engine prompt answer city river people number year".split(" ");

function sentence(random: Random, length: number): string {
  let text = "";
  while (text.length < length) text += `${words[Math.floor(random.uniform() * words.length)]} `;
  return text;
}

/** The same text for the same prompt, whoever answers. */
function answerTo(prompt: string): object {
  const random = new Random(prompt.length);
  return {
    id: "chatcmpl-1",
    object: "chat.completion",
    created: 1,
    model: "mock",
    choices: [
      {
        index: 0,
        message: { role: "assistant", content: sentence(random, 200) },
        logprobs: null,
        finish_reason: "stop",
      },
    ],
    usage: { prompt_tokens: 20, completion_tokens: 50, total_tokens: 70 },
  };
}

interface Measured {
  readonly hitRatio: number;
  /** Calls of the busiest replica against the mean. */
  readonly imbalance: number;
}

/** Conversations over four system prompts through a contender. */
async function measure(
  seed: number,
  begin: (ports: readonly number[]) => Promise<GatewayContender>,
): Promise<Measured> {
  const replicas = Array.from({ length: numReplicas }, () => new Replica());
  const ports = await Promise.all(replicas.map((replica) => replica.listen()));
  const begun = await begin(ports);
  const contender = { ...begun, pool: poolOf(begun.port, clients) };
  const callsBefore = replicas.map(({ numCalls }) => numCalls);
  try {
    const shared = new Random(seed);
    const systems = Array.from({ length: 4 }, () => sentence(shared, 1500));
    let next = 0;
    const client = async (): Promise<void> => {
      while (next < numSessions) {
        const session = next++;
        const random = new Random(seed * 10_007 + session);
        const messages: Message[] = [{ role: "system", content: systems[session % systems.length] ?? "" }];
        for (let turn = 0; turn < numTurns; turn += 1) {
          messages.push({ role: "user", content: `${session}: ${sentence(random, 300)}` });
          const answer = JSON.parse(await ask(contender, JSON.stringify({ model: "mock", messages }))) as {
            choices: { message: Message }[];
          };
          const content = answer.choices[0]?.message.content;
          if (content === undefined)
            throw new OctavoError("internal_error", `${contender.name} gives no answer`);
          messages.push({ role: "assistant", content });
        }
      }
    };
    await Promise.all(Array.from({ length: clients }, client));
    const calls = replicas.map(({ numCalls }, index) => numCalls - (callsBefore[index] ?? 0));
    const sum = (of: (replica: Replica) => number): number =>
      replicas.reduce((total, replica) => total + of(replica), 0);
    return {
      hitRatio: sum(({ numCached }) => numCached) / sum(({ numChars }) => numChars),
      imbalance: (Math.max(...calls) * numReplicas) / calls.reduce((total, count) => total + count, 0),
    };
  } finally {
    await contender.pool.destroy();
    await stop(begun);
    for (const replica of replicas) replica.close();
  }
}

/** How much of the prompts a replica has cached when they arrive, over four replicas and conversations of six turns. */
export async function prefixHits({
  rounds,
  peers,
}: {
  readonly rounds: number;
  readonly peers: string | undefined;
}): Promise<BenchCase[]> {
  const tokenizer = fileURLToPath(new URL("../../../models/octavo-mini", import.meta.url));
  const octavo = (strategy: string) => (ports: readonly number[]) =>
    startGateway(
      `octavo, ${strategy}`,
      ports,
      `access_log: "off"
routes:
  all: { models: [mock], strategy: ${strategy}, targets: [${ports.map((_, index) => `mock-${index}`).join(", ")}], prefix: { tokenizer: "${tokenizer}" } }
`,
    );
  const contenders = new Map<string, (ports: readonly number[]) => Promise<GatewayContender>>([
    ["octavo, prefix_aware", octavo("prefix_aware")],
    ["octavo, round_robin", octavo("round_robin")],
  ]);
  if (peers !== undefined)
    contenders.set("vllm-router, cache_aware", (ports) => startVllmRouter(peers, ports, "cache_aware"));
  const measured = new Map<string, Measured[]>([...contenders.keys()].map((name) => [name, []]));
  for (let round = 0; round < rounds; round += 1)
    for (const [name, begin] of contenders) measured.get(name)?.push(await measure(round + 1, begin));
  const peer = measured.get("vllm-router, cache_aware");
  return [...measured].map(([name, samples]) => ({
    name: `${name}: prompts' characters that were cached, ${numReplicas} replicas`,
    unit: "share",
    octavo: median(samples.map(({ hitRatio }) => hitRatio)),
    ...(name === "octavo, prefix_aware" &&
      peer !== undefined && { target: { atLeast: median(peer.map(({ hitRatio }) => hitRatio)) } }),
    details: { samples },
  }));
}
