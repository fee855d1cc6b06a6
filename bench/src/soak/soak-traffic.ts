// The client process of the soak: clients that each send one request after another, of all kinds, and leave many before their end.
import { TestRandom } from "@octavo/text/testing/random";

export interface SoakTraffic {
  readonly baseUrl: string;
  readonly seconds: number;
  readonly clients: number;
  readonly seed: number;
}

export interface SoakCounts {
  /** Requests by what they were. */
  readonly sent: Record<string, number>;
  readonly completed: number;
  /** Left by the client before they ended. */
  readonly aborted: number;
  /** Answered with a 4xx, as they had to be. */
  readonly refused: number;
  /** What should not have happened, with examples. */
  readonly unexpected: number;
  readonly examples: string[];
}

type Mutable<T> = { -readonly [Key in keyof T]: T[Key] };

interface Kind {
  readonly name: string;
  readonly path: string;
  readonly body?: (random: TestRandom) => object;
  readonly isBad?: boolean;
}

const words =
  "the server keeps its blocks and gives them back when clients leave before an answer ends".split(" ");
const text = (random: TestRandom, most: number): string =>
  Array.from({ length: 1 + random.below(most) }, () => words[random.below(words.length)]).join(" ");
const chat = (random: TestRandom, more: object = {}): object => ({
  messages: [{ role: "user", content: text(random, random.below(8) === 0 ? 300 : 30) }],
  max_tokens: 1 + random.below(96),
  seed: random.below(1000),
  stream: random.below(4) > 0,
  ...more,
});
const schema = {
  type: "object",
  properties: {
    name: { type: "string", maxLength: 20 },
    tags: { type: "array", items: { enum: ["a", "b"] } },
  },
  required: ["name"],
};
const tool = { type: "function", function: { name: "find", parameters: schema } };

const kinds: readonly Kind[] = [
  { name: "chat", path: "/v1/chat/completions", body: (random) => chat(random) },
  {
    name: "chat, several",
    path: "/v1/chat/completions",
    body: (random) => chat(random, { n: 2 + random.below(3) }),
  },
  {
    name: "JSON schema",
    path: "/v1/chat/completions",
    body: (random) => {
      // a schema of its own at times, so that grammars come and go
      const own = random.below(4) === 0 ? { ...schema, title: text(random, 4) } : schema;
      return chat(random, {
        response_format: { type: "json_schema", json_schema: { name: "s", schema: own } },
      });
    },
  },
  {
    name: "tool call",
    path: "/v1/chat/completions",
    body: (random) =>
      chat(random, { tools: [tool], tool_choice: random.below(2) === 0 ? "required" : "auto" }),
  },
  {
    name: "completion",
    path: "/v1/completions",
    body: (random) => ({ prompt: text(random, 60), max_tokens: 1 + random.below(64), logprobs: 2 }),
  },
  {
    name: "response",
    path: "/v1/responses",
    body: (random) => ({ input: text(random, 40), max_output_tokens: 1 + random.below(64) }),
  },
  { name: "tokenize", path: "/tokenize", body: (random) => ({ prompt: text(random, 2000) }) },
  { name: "metrics", path: "/metrics" },
  {
    name: "too long",
    path: "/v1/completions",
    isBad: true,
    body: () => ({ prompt: "x ".repeat(100_000) }),
  },
  {
    name: "bad schema",
    path: "/v1/chat/completions",
    isBad: true,
    body: (random) =>
      chat(random, {
        response_format: { type: "json_schema", json_schema: { name: "s", schema: { type: "no" } } },
      }),
  },
];

const answerMs = new Map<Kind, number>();

async function send(traffic: SoakTraffic, random: TestRandom, counts: Mutable<SoakCounts>): Promise<void> {
  const kind = kinds[random.below(kinds.length)]!;
  counts.sent[kind.name] = (counts.sent[kind.name] ?? 0) + 1;
  const abort = new AbortController();
  // half of the requests are left at some moment of the time that the last whole answer of their kind took
  const patienceMs = random.next() * (answerMs.get(kind) ?? 50);
  const timer = random.below(2) === 0 ? setTimeout(() => abort.abort(), patienceMs) : undefined;
  const startMs = performance.now();
  try {
    const body = kind.body?.(random);
    const response = await fetch(traffic.baseUrl + kind.path, {
      signal: abort.signal,
      ...(body === undefined
        ? {}
        : { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) }),
    });
    const answer = await response.text();
    answerMs.set(kind, performance.now() - startMs);
    const isStream = response.headers.get("content-type")?.startsWith("text/event-stream") === true;
    const isWhole =
      !isStream || /data: \[DONE\]\s*$/.test(answer) || answer.includes("event: response.completed");
    if (response.status >= 400 && response.status < 500) counts.refused += 1;
    else if (response.ok && isWhole) counts.completed += 1;
    if (response.status >= 500 || (response.ok ? kind.isBad === true || !isWhole : kind.isBad !== true)) {
      counts.unexpected += 1;
      if (counts.examples.length < 5)
        counts.examples.push(`${kind.name}: ${response.status} ${answer.slice(-200)}`);
    }
  } catch (thrown) {
    if (abort.signal.aborted) counts.aborted += 1;
    else {
      counts.unexpected += 1;
      if (counts.examples.length < 5) counts.examples.push(`${kind.name}: ${String(thrown)}`);
    }
  } finally {
    clearTimeout(timer);
  }
}

const traffic = JSON.parse(process.argv[2] ?? "{}") as SoakTraffic;
const counts: Mutable<SoakCounts> = {
  sent: {},
  completed: 0,
  aborted: 0,
  refused: 0,
  unexpected: 0,
  examples: [],
};
const endMs = Date.now() + traffic.seconds * 1000;
await Promise.all(
  Array.from({ length: traffic.clients }, async (_, client) => {
    const random = new TestRandom(traffic.seed + client);
    while (Date.now() < endMs) await send(traffic, random, counts);
  }),
);
process.stdout.write(JSON.stringify(counts));
