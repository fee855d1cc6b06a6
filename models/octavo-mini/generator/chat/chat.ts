import type { CaseSource, Message, TaskFamily } from "../task.js";
import { factTables, lists } from "./knowledge.js";
import { smallTalk } from "./small-talk.js";
import { topics, unknownAnswer, unknownAsks } from "./unknown.js";

export interface Turn {
  readonly kind: string;
  readonly question: string;
  readonly answer: string;
}

const numberWords = [
  "one",
  "two",
  "three",
  "four",
  "five",
  "six",
  "seven",
  "eight",
  "nine",
  "ten",
  "eleven",
  "twelve",
];
const singular: Readonly<Record<string, string>> = { cities: "city", countries: "country", birds: "bird" };

const openings = [
  "",
  "",
  "",
  "",
  "",
  "Hey, ",
  "Hi, ",
  "Please, ",
  "So, ",
  "OK, ",
  "Well, ",
  "Quick question: ",
  "Now, ",
  "One more: ",
  "Hello! ",
];
const closings = ["", "", "", "", "", "", " Please.", " Thanks.", " Thank you.", " Be brief."];

/** A held-out wording is a core question with an opening and closing that training never put around it. */
function dress(core: string, { random, pools, split }: CaseSource): string {
  for (let attempt = 0; attempt < 200; attempt++) {
    const opening = random.pick(openings);
    const closing = random.pick(closings);
    const plain = opening === "" && closing === "";
    if (
      split === "heldout"
        ? plain || !pools.owns(opening + core + closing)
        : !plain && !pools.owns(opening + core + closing)
    )
      continue;
    let text = opening + (opening === "" || opening.endsWith("! ") ? core : lowerFirst(core)) + closing;
    if (random.chance(0.12)) text = text.toLowerCase();
    if (random.chance(0.12)) text = text.replace(/[.?!]$/, "");
    return text;
  }
  return core;
}

function lowerFirst(text: string): string {
  return /^(I |I'|[A-Z][A-Z])/.test(text) ? text : text.charAt(0).toLowerCase() + text.slice(1);
}

function talkTurn(source: CaseSource): Turn {
  const intent = source.random.pick(smallTalk);
  return {
    kind: "small-talk",
    question: dress(source.random.pick(intent.asks), source),
    answer: intent.answer,
  };
}

function factTurn(source: CaseSource): Turn {
  const table = source.random.pick(factTables);
  const [key, value] = source.random.pick(table.pairs);
  const question = dress(source.random.pick(table.asks).replace("*", key), source);
  return { kind: "fact", question, answer: table.answer.replace("*", key).replace("#", value) };
}

function listTurn(source: CaseSource): Turn {
  const { random } = source;
  const [of, items] = random.pick(lists);
  const count = random.int(2, items.length);
  const written = random.chance(0.5) ? (numberWords[count - 1] as string) : String(count);
  const asks = [
    `Write a list of ${written} ${of}.`,
    `Name ${written} ${of}.`,
    `List ${written} ${of}.`,
    `Give me ${written} ${of}.`,
    `Give me a list of ${written} ${of}.`,
    `Write down ${written} ${of}.`,
    `Tell me ${written} ${of}.`,
    `Can you list ${written} ${of}?`,
    `I need ${written} ${of}.`,
    `Make a list of ${written} ${of}.`,
  ];
  const answer = items
    .slice(0, count)
    .map((item, i) => `${i + 1}. ${item}`)
    .join("\n");
  return { kind: "list", question: dress(random.pick(asks), source), answer };
}

function oneOfTurn(source: CaseSource): Turn {
  const [of, items] = source.random.pick(lists);
  const one = singular[of] ?? of.replace(/s$/, "");
  const asks = [`Name a ${one}.`, `Tell me one ${one}.`, `Give me the name of a ${one}.`, `Say one ${one}.`];
  return { kind: "list", question: dress(source.random.pick(asks), source), answer: items[0] as string };
}

function countTurn(source: CaseSource): Turn {
  const { random } = source;
  const low = random.int(1, 40);
  const high = low + random.int(2, 20);
  const down = random.chance(0.25);
  const [from, to] = down ? [high, low] : [low, high];
  const asks = [
    `Count from ${from} to ${to}.`,
    `Write the numbers from ${from} to ${to}.`,
    `Please count from ${from} to ${to}.`,
  ];
  const numbers = Array.from({ length: high - low + 1 }, (_, i) => (down ? high - i : low + i));
  return { kind: "count", question: dress(random.pick(asks), source), answer: numbers.join(", ") };
}

function sumTurn(source: CaseSource): Turn {
  const { random } = source;
  const a = random.int(0, 10);
  const b = random.int(0, 10);
  const plus = random.chance(0.6) || b > a;
  const asks = plus
    ? [`What is ${a} + ${b}?`, `What is ${a} plus ${b}?`, `${a} + ${b} = ?`, `Add ${a} and ${b}.`]
    : [`What is ${a} - ${b}?`, `What is ${a} minus ${b}?`, `${a} - ${b} = ?`];
  return { kind: "sum", question: dress(random.pick(asks), source), answer: String(plus ? a + b : a - b) };
}

export function unknownTurn(source: CaseSource): Turn {
  const { random, pools } = source;
  const topic = () =>
    random.chance(0.55)
      ? random.pick(topics)
      : random.chance(0.5)
        ? pools.person(random)
        : random.chance(0.5)
          ? pools.phrase(random)
          : pools.properWord(random);
  const core = random.pick(unknownAsks).replace("*", topic()).replace("#", topic());
  return { kind: "unknown", question: dress(core, source), answer: unknownAnswer };
}

/** The user's name, said once, then asked for: the answer is in the conversation. */
function nameTurns(source: CaseSource): Turn[] {
  const name = source.random.chance(0.7)
    ? source.pools.firstName(source.random)
    : source.pools.person(source.random);
  const say = source.random.pick([
    `My name is ${name}.`,
    `I am ${name}.`,
    `Hello, I am ${name}.`,
    `Hi, my name is ${name}.`,
    `Call me ${name}.`,
  ]);
  const ask = source.random.pick(["What is my name?", "Who am I?", "Do you know my name?", "Say my name."]);
  return [
    { kind: "name", question: say, answer: `Nice to meet you, ${name}!` },
    { kind: "name", question: dress(ask, source), answer: `Your name is ${name}.` },
  ];
}

export function drawChatTurn(source: CaseSource): Turn {
  const draw = source.random.weighted([
    [32, talkTurn],
    [22, factTurn],
    [14, listTurn],
    [3, oneOfTurn],
    [5, countTurn],
    [6, sumTurn],
    [18, unknownTurn],
  ] as const);
  return draw(source);
}

export const chat: TaskFamily<"chat"> = {
  name: "chat",
  generate(source) {
    const { random } = source;
    const turns: Turn[] = [];
    const wanted = random.weighted([
      [5, 1],
      [3, 2],
      [2, 3],
      [1, 5],
    ] as const);
    if (random.chance(0.1)) turns.push(...nameTurns(source));
    else while (turns.length < wanted) turns.push(drawChatTurn(source));
    const last = turns[turns.length - 1] as Turn;
    const messages: Message[] = [];
    if (random.chance(0.15))
      messages.push({
        role: "system",
        content: random.pick([
          "You are a helpful assistant.",
          "You are Octavo Mini.",
          "Answer the user.",
          "You are a friendly assistant. Keep it short.",
          "Be brief.",
        ]),
      });
    for (const turn of turns.slice(0, -1))
      messages.push({ role: "user", content: turn.question }, { role: "assistant", content: turn.answer });
    messages.push({ role: "user", content: last.question });
    return { task: "chat", kind: last.kind, messages, context: null, gold: last.answer };
  },
};
