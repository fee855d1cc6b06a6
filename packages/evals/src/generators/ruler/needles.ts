import type { Random } from "@octavo/statistics";
import type { RulerDraft, RulerSource, RulerTask } from "./ruler-task.js";
import { drawName, drawNumber, drawUuid } from "./words.js";

/** RULER's filler without information. */
export const noiseSentences =
  "The grass is green. The sky is blue. The sun is yellow. Here we go. There and back again.";

type Kind = "word" | "number" | "uuid";
const drawKind: Readonly<Record<Kind, (random: Random) => string>> = {
  word: drawName,
  number: drawNumber,
  uuid: drawUuid,
};

interface NeedleSettings {
  readonly haystack: "noise" | "text" | "needles";
  readonly key: Kind;
  readonly value: Kind;
  readonly numKeys: number;
  readonly numValues: number;
  readonly numQueries: number;
}

interface Needle {
  readonly key: string;
  readonly value: string;
}

const one = { key: "word", value: "number", numKeys: 1, numValues: 1, numQueries: 1 } as const;

/** RULER's `niah` configurations: the kind of needle, the haystack, and how many needles are asked for. */
const settings = {
  niah_single_1: { ...one, haystack: "noise" },
  niah_single_2: { ...one, haystack: "text" },
  niah_single_3: { ...one, haystack: "text", value: "uuid" },
  niah_multikey_1: { ...one, haystack: "text", numKeys: 4 },
  niah_multikey_2: { ...one, haystack: "needles" },
  niah_multikey_3: { ...one, haystack: "needles", key: "uuid", value: "uuid" },
  niah_multivalue: { ...one, haystack: "text", numValues: 4 },
  niah_multiquery: { ...one, haystack: "text", numKeys: 4, numQueries: 4 },
} as const satisfies Partial<Record<RulerTask["name"], NeedleSettings>>;

export const needleTasks: readonly RulerTask[] = (Object.keys(settings) as (keyof typeof settings)[]).map(
  (name): RulerTask => ({
    name,
    answerTokens: 128,
    match: "all",
    needs: settings[name].haystack === "text" ? "text" : "nothing",
    draw: (source) => drawNeedles(settings[name], source),
  }),
);

function drawNeedles(wanted: NeedleSettings, { random, sentences }: RulerSource): RulerDraft {
  const keys = drawDistinct(wanted.numKeys, () => drawKind[wanted.key](random));
  const needles = keys.flatMap((key) =>
    drawDistinct(wanted.numValues, () => drawKind[wanted.value](random)).map((value): Needle => ({
      key,
      value,
    })),
  );
  const queries = random.shuffle(keys).slice(0, wanted.numQueries);
  // in parts of the haystack that stands before; RULER has forty depths as well
  const depths = needles.map(() => random.integer(0, 40) / 40);
  const filler = fillerOf(wanted, random.fork(1), sentences, new Set(keys));
  const isMany = wanted.numValues * wanted.numQueries > 1;
  const asked = isMany
    ? `which are all the special magic ${kindPlural[wanted.value]}`
    : `which is the special magic ${wanted.value}`;
  return {
    references: needles.filter(({ key }) => queries.includes(key)).map(({ value }) => value),
    minSize: 1,
    maxSize: Infinity,
    prompt(size) {
      const placed = needles.map((needle, index) => ({
        sentence: needleSentence(needle, wanted.value),
        at: Math.round((depths[index] ?? 0) * size),
      }));
      const lines: string[] = [];
      for (let at = 0; at <= size; at++) {
        for (const needle of placed) if (needle.at === at) lines.push(needle.sentence);
        if (at < size) lines.push(filler(at));
      }
      return [
        `The text below hides some special magic ${kindPlural[wanted.value]}. Keep them in mind: you will be asked for them at the end.`,
        "",
        lines.join(wanted.haystack === "text" ? " " : "\n"),
        "",
        `According to the text, ${asked} for ${listOf(queries)}? Reply with ${isMany ? "all of them" : "it"} and nothing else.`,
      ].join("\n");
    },
  };
}

/** The sentence in which RULER hides a value. */
function needleSentence({ key, value }: Needle, kind: Kind): string {
  return `One of the special magic ${kindPlural[kind]} for ${key} is: ${value}.`;
}

const kindPlural: Readonly<Record<Kind, string>> = { word: "words", number: "numbers", uuid: "uuids" };

/** Text at a position of the haystack, independent of its length. */
function fillerOf(
  { haystack, key, value }: NeedleSettings,
  random: Random,
  sentences: readonly string[],
  keys: ReadonlySet<string>,
): (at: number) => string {
  switch (haystack) {
    case "noise":
      return () => noiseSentences;
    case "text": {
      const start = random.integer(0, sentences.length - 1);
      return (at) => sentences[(start + at) % sentences.length] ?? "";
    }
    case "needles": {
      const drawn: string[] = [];
      return (at) => {
        while (drawn.length <= at) {
          const other = drawKind[key](random);
          if (keys.has(other)) continue;
          drawn.push(needleSentence({ key: other, value: drawKind[value](random) }, value));
        }
        return drawn[at] ?? "";
      };
    }
  }
}

function drawDistinct(count: number, draw: () => string): string[] {
  const drawn = new Set<string>();
  while (drawn.size < count) drawn.add(draw());
  return [...drawn];
}

function listOf(names: readonly string[]): string {
  return names.length === 1 ? (names[0] ?? "") : `${names.slice(0, -1).join(", ")} and ${names.at(-1) ?? ""}`;
}
