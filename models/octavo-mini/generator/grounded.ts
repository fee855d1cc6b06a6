import type { CaseSource, Message, TaskFamily } from "./task.js";

export const notInPassage = "Not in the passage.";

/** One relation: `@` stands for the subject, `#` for the value. The first statement is also how an answer is worded. */
interface Relation {
  readonly draw: (source: CaseSource) => string;
  readonly statements: readonly string[];
  readonly questions: readonly string[];
}

const relation = (draw: Relation["draw"], statements: string, questions: string): Relation => ({
  draw,
  statements: statements.split("|"),
  questions: questions.split("|"),
});

const colors = ["red", "blue", "green", "black", "white", "yellow", "brown", "gray", "pink", "purple"];

const ofPeople: readonly Relation[] = [
  relation(
    ({ random, pools }) => pools.city(random),
    "@ lives in #.|The home of @ is in #.|@ has lived in # for years.",
    "Where does @ live?|In which city does @ live?|What city is @ living in?",
  ),
  relation(
    ({ random, pools }) => pools.city(random),
    "@ was born in #.|The birthplace of @ is #.",
    "Where was @ born?|What is the birthplace of @?",
  ),
  relation(
    ({ random, pools }) => pools.company(random),
    "@ works for #.|@ has a job at #.|The employer of @ is #.",
    "Who does @ work for?|Where does @ work?|What company employs @?",
  ),
  relation(
    ({ random, pools }) => pools.product(random),
    "@ bought a #.|Last week @ paid for a #.",
    "What did @ buy?|Which thing did @ pay for?",
  ),
  relation(
    ({ random }) => String(random.int(18, 95)),
    "@ is # years old.|The age of @ is #.",
    "How old is @?|What is the age of @?",
  ),
  relation(
    ({ random, pools }) => pools.firstName(random),
    "@ has a dog named #.|The dog of @ is called #.",
    "What is the name of @'s dog?|What is the dog of @ called?",
  ),
  relation(
    ({ random, pools }) => pools.person(random),
    "@ is married to #.|The spouse of @ is #.",
    "Who is @ married to?|Who is the spouse of @?",
  ),
  relation(
    ({ random, pools }) => random.pick(pools.nouns),
    "@ collects pictures of a #.|The favorite thing of @ is the #.",
    "What is the favorite thing of @?|What does @ collect pictures of?",
  ),
  relation(
    ({ random, pools }) => pools.date(random),
    "@ arrived on #.|The arrival of @ was on #.",
    "When did @ arrive?|On which date did @ arrive?",
  ),
  relation(
    ({ random, pools }) => pools.code(random),
    "@ has the badge #.|The badge of @ reads #.",
    "Which badge does @ have?|What does the badge of @ read?",
  ),
];

const ofThings: readonly Relation[] = [
  relation(
    ({ random, pools }) => String(pools.price(random)),
    "The @ costs # euros.|One pays # euros for the @.",
    "How much does the @ cost?|What is the price of the @?",
  ),
  relation(
    ({ random, pools }) => pools.person(random),
    "The @ belongs to #.|The owner of the @ is #.",
    "Who owns the @?|Who does the @ belong to?",
  ),
  relation(
    ({ random }) => random.pick(colors),
    "The @ is #.|The color of the @ is #.",
    "What color is the @?|Which color does the @ have?",
  ),
  relation(
    ({ random, pools }) => pools.city(random),
    "The @ was made in #.|The @ comes from #.",
    "Where was the @ made?|Where does the @ come from?",
  ),
  relation(
    ({ random, pools }) => pools.code(random),
    "The @ carries the code #.|The code of the @ is #.",
    "What is the code of the @?|Which code does the @ carry?",
  ),
  relation(
    ({ random, pools }) => pools.date(random),
    "The @ was finished on #.|The @ has been ready since #.",
    "When was the @ finished?|Since when has the @ been ready?",
  ),
  relation(
    ({ random, pools }) => String(pools.integer(random)),
    "The @ weighs # grams.|The weight of the @ is # grams.",
    "How much does the @ weigh?|What is the weight of the @?",
  ),
  relation(
    ({ random, pools }) => random.pick(pools.nouns),
    "The @ stands next to the #.|Beside the @ there is a #.",
    "What stands next to the @?|What is beside the @?",
  ),
  relation(
    ({ random, pools }) => pools.word(random),
    "The @ is made of #.|The material of the @ is #.",
    "What is the @ made of?|What is the material of the @?",
  ),
];

const instructions = [
  'Answer from the passage only. If the answer is not there, say "Not in the passage."',
  'Use only the passage to answer. Say "Not in the passage." when it does not tell.',
  'Answer the question in one sentence that the passage supports, or with "Not in the passage."',
  'Read the passage and answer the question. If you cannot find it, answer "Not in the passage."',
  'Reply with one sentence from what the text says, or "Not in the passage."',
];

type Layout = (instruction: string, passage: string, question: string) => Message[];

const user = (content: string): Message => ({ role: "user", content });

const layouts: readonly Layout[] = [
  (instruction, passage, question) => [
    user(`${instruction}\n\nPassage: ${passage}\n\nQuestion: ${question}`),
  ],
  (instruction, passage, question) => [user(`${instruction}\n\n${passage}\n\n${question}`)],
  (instruction, passage, question) => [user(`Passage:\n${passage}\n\n${instruction}\n\n${question}`)],
  (instruction, passage, question) => [
    { role: "system", content: `${instruction}\n\nPassage:\n${passage}` },
    user(question),
  ],
  (instruction, passage, question) => [
    { role: "system", content: instruction },
    user(`${passage}\n\n${question}`),
  ],
];

interface Subject {
  readonly name: string;
  readonly relations: readonly Relation[];
}

/** Subjects share first names and nouns now and then, so that matching half a name is not enough. */
function drawSubjects(count: number, { random, pools }: CaseSource): Subject[] {
  const names = new Map<string, Subject>();
  let last: string[] = [];
  while (names.size < count) {
    const human = random.chance(0.55);
    const relations = human ? ofPeople : ofThings;
    let name = human ? pools.person(random) : pools.product(random);
    if (human && last.length > 0 && random.chance(0.3))
      name = `${last[0] as string} ${pools.lastName(random)}`;
    if (human) last = name.split(" ");
    names.set(name, { name, relations });
  }
  return [...names.values()];
}

const place = (template: string, subject: string, value: string): string =>
  template.replaceAll("@", subject).replaceAll("#", value);

export const grounded: TaskFamily<"grounded"> = {
  name: "grounded",
  generate(source) {
    const { random, pools } = source;
    const subjects = drawSubjects(random.int(2, 5), source);
    const facts = subjects.flatMap(({ name, relations }) =>
      random.sample(relations, random.int(1, 4)).map((chosen) => {
        const value = chosen.draw(source);
        return {
          statement: place(random.pick(chosen.statements), name, value),
          question: place(random.pick(chosen.questions), name, ""),
          answer: place(chosen.statements[0] as string, name, value),
        };
      }),
    );
    const unsaid = () => {
      const known = random.chance(0.7);
      const subject = known ? random.pick(subjects) : (drawSubjects(1, source)[0] as Subject);
      const open = subject.relations.filter(
        (candidate) => !facts.some(({ statement }) => tells(statement, candidate, subject.name)),
      );
      if (open.length === 0) return undefined;
      return {
        question: place(random.pick(random.pick(open).questions), subject.name, ""),
        answer: notInPassage,
      };
    };
    const passage = random.shuffle(facts.map(({ statement }) => statement)).join(" ");
    const turns = Array.from(
      {
        length:
          source.split === "heldout"
            ? 1
            : random.weighted([
                [1, 1],
                [2, 4],
                [2, 8],
                [1, 12],
              ] as const),
      },
      () => {
        const asked = random.chance(0.3) ? (unsaid() ?? random.pick(facts)) : random.pick(facts);
        return { question: asked.question, answer: asked.answer };
      },
    );
    let instruction = 0;
    let layout = 0;
    do {
      instruction = random.int(0, instructions.length - 1);
      layout = random.int(0, layouts.length - 1);
    } while (!pools.owns(`grounded passage ${instruction} ${layout}`));
    const [first, ...rest] = turns as [(typeof turns)[number], ...typeof turns];
    const messages = (layouts[layout] as Layout)(
      instructions[instruction] as string,
      passage,
      first.question,
    );
    let gold = first.answer;
    for (const turn of rest) {
      messages.push({ role: "assistant", content: gold }, user(turn.question));
      gold = turn.answer;
    }
    return {
      task: "grounded",
      kind: gold === notInPassage ? "refusal" : "answer",
      messages,
      context: passage,
      gold,
    };
  },
};

/** Whether the statement already tells this relation of the subject. */
function tells(statement: string, candidate: Relation, subject: string): boolean {
  return candidate.statements.some((template) => {
    const [before = "", after = ""] = place(template, subject, "\u0000").split("\u0000");
    return statement.startsWith(before) && statement.endsWith(after);
  });
}
