import { writeJson } from "./json.js";
import type { CaseSource, TaskFamily } from "./task.js";

interface Exercise {
  readonly kind: string;
  readonly prompt: string;
  readonly gold: string;
}

function verbatim({ random, pools }: CaseSource): Exercise {
  const words = random.int(2, 40);
  const piece = random.weighted<() => string>([
    [4, () => pools.word(random)],
    [2, () => pools.value(random)],
    [2, () => random.pick(pools.nouns)],
    [2, () => pools.noise(random)],
    [1, () => pools.digits(random, random.int(2, 8))],
    [1, () => pools.code(random)],
  ]);
  const text = Array.from({ length: words }, piece).join(random.pick([" ", " ", " ", ", ", "\n", "; "]));
  const ask = random.pick([
    "Repeat this text exactly:",
    "Copy the following text word for word:",
    "Write exactly this:",
    "Say this again, unchanged:",
    "Copy:",
    "Echo the text below.",
    "Repeat after me:",
  ]);
  return { kind: "copy", prompt: `${ask}${random.pick(["\n", "\n\n", " "])}${text}`, gold: text };
}

function drawItems(source: CaseSource, most: number): string[] {
  const { random, pools } = source;
  const piece = random.weighted<() => string>([
    [4, () => pools.word(random)],
    [3, () => random.pick(pools.nouns)],
    [2, () => pools.value(random)],
    [1, () => pools.person(random)],
    [1, () => pools.code(random)],
  ]);
  return pools.distinct(random.int(2, most), piece);
}

function enumerate(source: CaseSource): Exercise {
  const { random } = source;
  const items = drawItems(source, 30);
  const given = items.join(random.pick([", ", "\n", "; "]));
  const form = random.int(0, 4);
  const asks = [
    ["Write these as a numbered list:", "Number these items:", "Make a numbered list of:"],
    ["Write these as a bullet list:", "Make a bullet list of:", "Put a dash before each item:"],
    [
      "Write these as a JSON array:",
      "Turn this list into a JSON array:",
      "Make a JSON array of these items:",
    ],
    ["Write these one per line:", "Put each item on its own line:"],
    ["Write these separated by commas:", "Join these items with commas:"],
  ];
  const golds = [
    items.map((item, i) => `${i + 1}. ${item}`).join("\n"),
    items.map((item) => `- ${item}`).join("\n"),
    writeJson(items),
    items.join("\n"),
    items.join(", "),
  ];
  return {
    kind: form === 2 ? "json-array" : "enumerate",
    prompt: `${random.pick(asks[form] ?? [])}\n${given}`,
    gold: golds[form] as string,
  };
}

function reverse(source: CaseSource): Exercise {
  const { random } = source;
  const items = drawItems(source, 10);
  const separator = random.pick([", ", "\n"]);
  const ask = random.pick([
    "Write this list in reverse order:",
    "Reverse the order of these items:",
    "List these from last to first:",
  ]);
  return {
    kind: "reverse",
    prompt: `${ask}\n${items.join(separator)}`,
    gold: items.toReversed().join(separator),
  };
}

function select(source: CaseSource): Exercise {
  const { random } = source;
  const items = drawItems(source, 15);
  const index = random.int(0, Math.min(items.length, 10) - 1);
  const ordinals = [
    "first",
    "second",
    "third",
    "fourth",
    "fifth",
    "sixth",
    "seventh",
    "eighth",
    "ninth",
    "tenth",
  ];
  const last = random.chance(0.3);
  const ask = last ? "What is the last item?" : `What is the ${ordinals[index] as string} item?`;
  const listed = items.map((item, i) => `${i + 1}. ${item}`).join("\n");
  return {
    kind: "select",
    prompt: random.chance(0.5) ? `${listed}\n\n${ask}` : `${ask}\n\n${listed}`,
    gold: (last ? items[items.length - 1] : items[index]) as string,
  };
}

/** One line many times over: long output whose end the model has to count to. */
function repeat(source: CaseSource): Exercise {
  const { random, pools } = source;
  const count = random.int(2, 12);
  const item = random.chance(0.5) ? pools.word(random) : random.pick(pools.nouns);
  const ask = random.pick([
    `Write "${item}" ${count} times, numbered.`,
    `Number ${count} lines that all say "${item}".`,
  ]);
  return {
    kind: "repeat",
    prompt: ask,
    gold: Array.from({ length: count }, (_, i) => `${i + 1}. ${item}`).join("\n"),
  };
}

export const copying: TaskFamily<"copying"> = {
  name: "copying",
  generate(source) {
    const draw = source.random.weighted([
      [45, verbatim],
      [30, enumerate],
      [10, reverse],
      [10, select],
      [5, repeat],
    ] as const);
    const { kind, prompt, gold } = draw(source);
    return { task: "copying", kind, messages: [{ role: "user", content: prompt }], context: null, gold };
  },
};
