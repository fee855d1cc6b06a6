import type { CaseSource, Message, TaskFamily } from "./task.js";

export const notFound = "Not found.";

type Entry = readonly [key: string, value: string];

interface Haystack {
  readonly name: string;
  /** Tokens that one entry takes beyond its key and value, for reaching a wanted length. */
  readonly overhead: number;
  /** One entry; the answer quotes it, so that finding it is a matter of matching the key. */
  readonly entry: (key: string, value: string) => string;
  readonly join: (entries: readonly string[]) => string;
}

const lines = (entries: readonly string[]): string => entries.join("\n");

const haystacks: readonly Haystack[] = [
  { name: "lines", overhead: 2, entry: (key, value) => `${key}: ${value}`, join: lines },
  { name: "equals", overhead: 2, entry: (key, value) => `${key} = ${value}`, join: lines },
  { name: "arrow", overhead: 2, entry: (key, value) => `${key} -> ${value}`, join: lines },
  {
    name: "json",
    overhead: 3,
    entry: (key, value) => `${JSON.stringify(key)}: ${JSON.stringify(value)}`,
    join: (entries) => `{${entries.join(", ")}}`,
  },
  {
    name: "prose",
    overhead: 7,
    entry: (key, value) => `The code for ${key} is ${value}.`,
    join: (entries) => entries.join(" "),
  },
  {
    name: "table",
    overhead: 4,
    entry: (key, value) => `| ${key} | ${value} |`,
    join: (entries) => lines(["| key | value |", "| --- | --- |", ...entries]),
  },
  {
    name: "csv",
    overhead: 2,
    entry: (key, value) => `${key},${value}`,
    join: (entries) => lines(["key,value", ...entries]),
  },
  {
    name: "log",
    overhead: 8,
    entry: (key, value) => `set ${key} to ${value};`,
    join: (entries) => lines(entries.map((entry, i) => `${i + 1}) ${entry}`)),
  },
];

const asks = [
  "Which entry has the key *?",
  "Quote the entry of *.",
  "Find *.",
  "Give me the entry for *.",
  "Look up *.",
  "What is the value of *?",
  "*?",
  "Return the entry with the key *.",
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
    const text = haystack.join(entries.map(([key, value]) => haystack.entry(key, value)));
    const questions =
      source.split === "heldout" ? 1 : random.int(4, Math.min(96, 6 + Math.floor(budget / 22)));
    const question = asks[ask] as string;
    const before = random.chance(0.2);
    const messages: Message[] = [];
    let gold = "";
    for (let i = 0; i < questions; i++) {
      const missing = random.chance(0.08);
      const [key, value] = random.pick(entries);
      const asked = question.replace("*", missing ? pools.word(random) : key);
      if (i === 0)
        messages.push({
          role: "user",
          content: before
            ? `${asked} Quote the entry.\n\n${text}`
            : `${introductions[intro] as string}\n\n${text}\n\n${asked}`,
        });
      else messages.push({ role: "assistant", content: gold }, { role: "user", content: asked });
      gold = missing ? notFound : haystack.entry(key, value);
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
