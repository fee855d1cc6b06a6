import { writeJson } from "./json.js";
import type { CaseSource, Message, TaskFamily } from "./task.js";

export const notFound = "Not found.";

type Entry = readonly [key: string, value: string];

interface Haystack {
  readonly name: string;
  /** Tokens that one entry takes beyond its key and value, for reaching a wanted length. */
  readonly overhead: number;
  readonly write: (entries: readonly Entry[]) => string;
}

const haystacks: readonly Haystack[] = [
  {
    name: "lines",
    overhead: 2,
    write: (entries) => entries.map(([key, value]) => `${key}: ${value}`).join("\n"),
  },
  {
    name: "equals",
    overhead: 2,
    write: (entries) => entries.map(([key, value]) => `${key} = ${value}`).join("\n"),
  },
  {
    name: "arrow",
    overhead: 2,
    write: (entries) => entries.map(([key, value]) => `${key} -> ${value}`).join("\n"),
  },
  { name: "json", overhead: 3, write: (entries) => writeJson(Object.fromEntries(entries)) },
  {
    name: "prose",
    overhead: 7,
    write: (entries) => entries.map(([key, value]) => `The code for ${key} is ${value}.`).join(" "),
  },
  {
    name: "table",
    overhead: 4,
    write: (entries) =>
      ["| key | value |", "| --- | --- |", ...entries.map(([key, value]) => `| ${key} | ${value} |`)].join(
        "\n",
      ),
  },
  {
    name: "csv",
    overhead: 2,
    write: (entries) => ["key,value", ...entries.map(([key, value]) => `${key},${value}`)].join("\n"),
  },
  {
    name: "log",
    overhead: 8,
    write: (entries) => entries.map(([key, value], i) => `${i + 1}) set ${key} to ${value};`).join("\n"),
  },
];

const asks = [
  "What is the value of *?",
  "What is the value for *?",
  "Find *.",
  "Give me the value of *.",
  "Look up *.",
  "Which value belongs to *?",
  "*?",
  "Return the value of the key *.",
];

const introductions = [
  "Here is a list of keys and values.",
  "Use this data.",
  "Look at these entries.",
  "The following table holds keys and their values.",
  "Data:",
  "Remember these values.",
];

/** About how many tokens a text of made-up words and digits takes. */
function roughTokens(text: string): number {
  let tokens = 0;
  for (const run of text.match(/[a-zA-Z]+|[0-9]|[^a-zA-Z0-9\s]/g) ?? [])
    tokens += /[a-z]/i.test(run) ? Math.max(1, run.length / 2.4) : 1;
  return tokens;
}

function drawEntries(budget: number, overhead: number, source: CaseSource): Entry[] {
  const { random, pools } = source;
  const keyForm = random.int(0, 4);
  const valueForm = random.int(0, 4);
  const draw = (form: number): string => {
    if (form === 0) return pools.word(random);
    if (form === 1) return pools.code(random);
    if (form === 2) return `${pools.word(random)} ${random.pick(pools.nouns)}`;
    if (form === 3) return pools.digits(random, random.int(4, 7));
    return pools.value(random);
  };
  const entries = new Map<string, string>();
  let spent = 0;
  while (spent < budget || entries.size < 2) {
    const key = draw(keyForm).replaceAll(",", "");
    if (entries.has(key)) continue;
    const value = draw(valueForm);
    entries.set(key, value);
    spent += roughTokens(key) + roughTokens(value) + overhead;
  }
  return [...entries];
}

export const retrieval: TaskFamily<"retrieval"> = {
  name: "retrieval",
  generate(source) {
    const { random, pools } = source;
    const budget =
      source.contextTokens ??
      random.weighted([
        [4, 80],
        [4, 200],
        [3, 400],
        [2, 800],
      ] as const);
    let intro = 0;
    let ask = 0;
    let form = 0;
    do {
      intro = random.int(0, introductions.length - 1);
      ask = random.int(0, asks.length - 1);
      form = random.int(0, haystacks.length - 1);
    } while (!pools.owns(`retrieval ${intro} ${ask} ${form}`));
    const haystack = haystacks[form] as Haystack;
    const entries = drawEntries(budget - 30, haystack.overhead, source);
    const text = haystack.write(entries);
    const questions =
      source.split === "heldout" ? 1 : random.int(2, Math.min(24, 4 + Math.floor(budget / 50)));
    const question = asks[ask] as string;
    const before = random.chance(0.2);
    const messages: Message[] = [];
    let gold = "";
    for (let i = 0; i < questions; i++) {
      const missing = random.chance(0.08);
      const [key, value] = missing ? [pools.word(random), notFound] : random.pick(entries);
      const asked = question.replace("*", key);
      if (i === 0)
        messages.push({
          role: "user",
          content: before
            ? `${asked} Answer with the value only.\n\n${text}`
            : `${introductions[intro] as string}\n\n${text}\n\n${asked}`,
        });
      else messages.push({ role: "assistant", content: gold }, { role: "user", content: asked });
      gold = value;
    }
    return {
      task: "retrieval",
      kind: gold === notFound ? "missing" : haystack.name,
      messages,
      context: text,
      gold,
    };
  },
};
