import type { EvalCase } from "@octavo/evals";
import type { TaskName } from "@octavo/octavo-mini";
import { Random } from "@octavo/statistics";

/** A request of a plant's traffic. */
export interface PlantedRequest {
  readonly content: string;
  readonly atMs: number;
  readonly tenant?: string;
  readonly maxTokens: number;
  /** In place of the text, a case that ends by itself. */
  readonly asked?: EvalCase;
}

/** A server that is set up wrongly, traffic that shows it, and the setting that rights it. */
export interface Misconfiguration {
  readonly name: string;
  /** As a file of `octavo serve --config`. */
  readonly settings: Readonly<Record<string, string | number | boolean>>;
  /** Held-out cases of octavo-mini that its traffic is made of. */
  readonly golden?: TaskName;
  readonly traffic: (random: Random, golden: readonly EvalCase[]) => readonly PlantedRequest[];
  /** From where on a call is slow, in ms: by the plant's own traffic. */
  readonly limits: readonly string[];
  /** Scores answers, as evaluations of production do. */
  readonly evaluator?: unknown;
  /** What the proposed patch must set. */
  readonly right: string;
  /** Patches that look alike and right nothing. */
  readonly wrong: readonly (readonly [string, string])[];
}

const vocabulary = "paper leaf folded sheet quire binding margin letter column press ink type".split(" ");
const text = (random: Random, words: number): string =>
  Array.from({ length: words }, () => random.pick(vocabulary)).join(" ");

/** Requests in bursts: `count` at once, every `everyMs`. */
function bursts(
  random: Random,
  { bursts: number, count, everyMs }: { bursts: number; count: number; everyMs: number },
  make: (random: Random, index: number) => Omit<PlantedRequest, "atMs">,
): readonly PlantedRequest[] {
  return Array.from({ length: number * count }, (_, index) => ({
    ...make(random, index),
    atMs: Math.floor(index / count) * everyMs + (index % count),
  }));
}

const plain = (words: number, maxTokens: number) => (random: Random, index: number) => ({
  content: `${index}: ${text(random, words)}`,
  maxTokens,
});

/** Octavo-mini's own tasks, one after the other. */
const every = (ms: number) => (_: Random, golden: readonly EvalCase[]) =>
  golden.map((asked, index) => ({ asked, content: "", maxTokens: 0, atMs: ms * index }));

export const misconfigurations: readonly Misconfiguration[] = [
  {
    name: "KV cache too small for what runs at once",
    settings: { "kv-cache-memory": "2MiB", "max-model-len": 512 },
    traffic: (random) => bursts(random, { bursts: 3, count: 10, everyMs: 900 }, plain(60, 48)),
    limits: ["--slow-first-token", "150", "--slow-gap", "100"],
    right: "kv-cache-memory",
    wrong: [
      ["max-num-seqs", "1024"],
      ["max-queued-requests", "4096"],
    ],
  },
  {
    name: "steps without a bound on prompts",
    settings: { "max-num-batched-tokens": 8192, "max-prefill-step-ms": 0, "kv-cache-memory": "64MiB" },
    traffic: (random) => [
      ...Array.from({ length: 6 }, (_, index) => ({ ...plain(8, 160)(random, index), atMs: 5 * index })),
      ...Array.from({ length: 6 }, (_, index) => ({
        ...plain(700, 2)(random, 100 + index),
        atMs: 150 + 150 * index,
      })),
    ],
    limits: ["--slow-first-token", "100000", "--slow-gap", "60"],
    right: "max-prefill-step-ms",
    wrong: [
      ["max-num-seqs", "512"],
      ["max-queued-requests", "4096"],
    ],
  },
  {
    name: "prefix caching off",
    settings: { "enable-prefix-caching": false, "kv-cache-memory": "64MiB" },
    traffic: (random) => {
      const shared = text(random, 500);
      return Array.from({ length: 16 }, (_, index) => ({
        content: `${shared} ${index}: ${text(random, 6)}`,
        maxTokens: 4,
        atMs: 250 * index,
      }));
    },
    limits: ["--slow-first-token", "40", "--slow-gap", "100000"],
    right: "enable-prefix-caching",
    wrong: [
      ["max-num-seqs", "512"],
      ["kv-cache-memory", "128MiB"],
    ],
  },
  {
    name: "too few sequences at once",
    settings: { "max-num-seqs": 1, "kv-cache-memory": "64MiB" },
    traffic: (random) => bursts(random, { bursts: 3, count: 8, everyMs: 900 }, plain(20, 40)),
    limits: ["--slow-first-token", "150", "--slow-gap", "100000"],
    right: "max-num-seqs",
    wrong: [
      ["kv-cache-memory", "128MiB"],
      ["max-queued-requests", "4096"],
    ],
  },
  {
    name: "a chat template of another model",
    settings: {
      "chat-template": "{% for message in messages %}[INST] {{ message.content }} [/INST]{% endfor %}",
      "kv-cache-memory": "64MiB",
    },
    golden: "extraction",
    traffic: every(140),
    limits: ["--slow-first-token", "100000", "--slow-gap", "100000"],
    evaluator: { name: "is_json" },
    right: "chat-template",
    wrong: [
      ["max-num-seqs", "512"],
      ["kv-cache-memory", "128MiB"],
    ],
  },
  {
    name: "tool calls left in the text",
    settings: { "tool-call-parser": "none", "kv-cache-memory": "64MiB" },
    golden: "tools",
    traffic: every(140),
    limits: ["--slow-first-token", "100000", "--slow-gap", "100000"],
    evaluator: {
      name: "regex",
      as: "no_tool_call_in_text",
      not: true,
      options: { pattern: "tool_call|arguments" },
    },
    right: "tool-call-parser",
    wrong: [
      ["max-num-seqs", "512"],
      ["kv-cache-memory", "128MiB"],
    ],
  },
  {
    name: "context too short for the prompts",
    settings: { "max-model-len": 160, "kv-cache-memory": "64MiB" },
    traffic: (random) =>
      Array.from({ length: 24 }, (_, index) => ({
        ...plain(index % 2 === 0 ? 20 : 200, 16)(random, index),
        atMs: 80 * index,
      })),
    limits: ["--slow-first-token", "100000", "--slow-gap", "100000"],
    right: "max-model-len",
    wrong: [
      ["kv-cache-memory", "128MiB"],
      ["max-num-seqs", "512"],
    ],
  },
  {
    name: "a small tenant behind a large one",
    settings: { "scheduling-policy": "fcfs", "max-num-seqs": 4, "kv-cache-memory": "64MiB" },
    traffic: (random) =>
      [
        ...bursts(random, { bursts: 2, count: 30, everyMs: 1500 }, plain(20, 32)).map((one) => ({
          ...one,
          tenant: "large",
        })),
        ...Array.from({ length: 10 }, (_, index) => ({
          ...plain(10, 8)(random, 500 + index),
          tenant: "small",
          atMs: 60 + 280 * index,
        })),
      ].toSorted((a, b) => a.atMs - b.atMs),
    limits: ["--slow-first-token", "150", "--slow-gap", "100000"],
    right: "scheduling-policy",
    wrong: [
      ["kv-cache-memory", "128MiB"],
      ["max-queued-requests", "4096"],
    ],
  },
  {
    name: "a queue that refuses",
    settings: { "max-queued-requests": 1, "max-num-seqs": 2, "kv-cache-memory": "64MiB" },
    traffic: (random) => bursts(random, { bursts: 3, count: 8, everyMs: 900 }, plain(20, 24)),
    limits: ["--slow-first-token", "100000", "--slow-gap", "100000"],
    right: "max-queued-requests",
    wrong: [
      ["kv-cache-memory", "128MiB"],
      ["max-model-len", "1024"],
    ],
  },
  {
    name: "a time limit below what answers take",
    settings: { "request-timeout": 0.1, "kv-cache-memory": "64MiB" },
    traffic: (random) =>
      Array.from({ length: 20 }, (_, index) => ({
        ...plain(20, index % 2 === 0 ? 4 : 120)(random, index),
        atMs: 200 * index,
      })),
    limits: ["--slow-first-token", "100000", "--slow-gap", "100000"],
    right: "request-timeout",
    wrong: [
      ["kv-cache-memory", "128MiB"],
      ["max-num-seqs", "512"],
    ],
  },
];
