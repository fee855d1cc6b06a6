import { once } from "node:events";
import { createWriteStream } from "node:fs";
import { parseArgs } from "node:util";
import { cases } from "./families.js";
import { CaseRandom } from "./random.js";
import { type GoldenCase, type Message, type TaskName, taskNames } from "./task.js";

/**
 * Writes the training text in the order it should be read, one conversation a
 * line. Copying and short look-ups come first, since everything else is built
 * on them; long contexts come last, since they are the dearest to train on.
 */
interface Stage {
  /** Where the stage ends, as a share of all conversations. */
  readonly until: number;
  readonly weights: Readonly<Record<TaskName, number>>;
  readonly retrievalTokens: readonly (readonly [weight: number, tokens: number])[];
}

const stages: readonly Stage[] = [
  {
    until: 0.02,
    weights: { chat: 25, extraction: 10, tools: 5, grounded: 15, copying: 35, retrieval: 20 },
    retrievalTokens: [
      [1, 80],
      [1, 160],
    ],
  },
  {
    until: 0.5,
    weights: { chat: 10, extraction: 24, tools: 28, grounded: 15, copying: 14, retrieval: 12 },
    retrievalTokens: [
      [3, 80],
      [4, 200],
      [3, 400],
      [2, 900],
      [1, 1500],
    ],
  },
  {
    until: 0.8,
    weights: { chat: 8, extraction: 30, tools: 24, grounded: 14, copying: 9, retrieval: 15 },
    retrievalTokens: [
      [2, 200],
      [3, 500],
      [4, 1000],
      [7, 2000],
      [1, 4000],
    ],
  },
  {
    until: 1,
    weights: { chat: 8, extraction: 34, tools: 28, grounded: 12, copying: 6, retrieval: 12 },
    retrievalTokens: [
      [1, 500],
      [3, 1000],
      [7, 2000],
      [1, 4000],
    ],
  },
];

export interface TrainingConversation {
  readonly messages: readonly Message[];
  readonly tools?: GoldenCase["tools"];
}

export function* corpus(count: number, seed: string): Generator<TrainingConversation> {
  const random = new CaseRandom(`corpus-${seed}`);
  const streams = new Map(taskNames.map((task) => [task, cases({ task, split: "train", seed })]));
  const haystacks = new Map<number, ReturnType<typeof cases>>();
  for (let i = 0; i < count; i++) {
    const stage = stages.find(({ until }) => i / count < until) as Stage;
    const task = random.weighted(taskNames.map((name) => [stage.weights[name], name] as const));
    let stream = streams.get(task) as ReturnType<typeof cases>;
    if (task === "retrieval") {
      const contextTokens = random.weighted(stage.retrievalTokens);
      stream = haystacks.get(contextTokens) ?? cases({ task, split: "train", seed, contextTokens });
      haystacks.set(contextTokens, stream);
    }
    const { messages, gold, tools } = stream.next().value;
    const complete: Message[] = [...messages, { role: "assistant", content: gold }];
    yield tools === undefined ? { messages: complete } : { messages: complete, tools };
  }
}

const { values } = parseArgs({
  options: { count: { type: "string" }, seed: { type: "string", default: "1" }, out: { type: "string" } },
});
if (values.count === undefined || values.out === undefined) {
  process.stderr.write("usage: corpus --count CONVERSATIONS --out FILE [--seed TEXT]\n");
  process.exit(2);
}
const out = createWriteStream(values.out);
for (const conversation of corpus(Number(values.count), values.seed)) {
  if (!out.write(`${JSON.stringify(conversation)}\n`)) await once(out, "drain");
}
out.end();
await once(out, "finish");
