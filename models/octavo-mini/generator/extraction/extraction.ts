import { writeJson } from "../json.js";
import type { CaseSource, Json, JsonRecord, Message, TaskFamily } from "../task.js";
import { domains, type Domain, type FieldPlan } from "./domains.js";
import { type DrawnField, type KeyStyle, drawField, keyStyles, nullable } from "./fields.js";

const instructions = [
  "Extract the facts from the passage as JSON that matches the schema.",
  "Read the passage and fill in this JSON schema. Answer with JSON only.",
  "Return a JSON object that follows the schema, with the values from the text.",
  "Turn the text into JSON according to the schema.",
  "Pull the fields of the schema out of the passage. Reply with only the JSON.",
  "Give me the data in the text as JSON. Use the schema below.",
  "Extract the information into the following JSON schema.",
  "Write the JSON object for this text.",
  "Parse the passage into a JSON object with this schema.",
  "What does the passage say? Answer in JSON that is valid under the schema.",
];

type Layout = (instruction: string, schema: string, passage: string) => Message[];

const user = (content: string): Message => ({ role: "user", content });
const system = (content: string): Message => ({ role: "system", content });

const layouts: readonly Layout[] = [
  (instruction, schema, passage) => [user(`${instruction}\n\nSchema:\n${schema}\n\nPassage:\n${passage}`)],
  (instruction, schema, passage) => [user(`${instruction}\n\nPassage: ${passage}\n\nSchema: ${schema}`)],
  (instruction, schema, passage) => [user(`${passage}\n\n${instruction}\n${schema}`)],
  (instruction, schema, passage) => [user(`${instruction}\n${schema}\n\nText:\n"""\n${passage}\n"""`)],
  (instruction, schema, passage) => [system(`${instruction}\n\nSchema:\n${schema}`), user(passage)],
  (instruction, schema, passage) => [
    system(`Answer with JSON that matches this schema: ${schema}`),
    user(`${instruction}\n\n${passage}`),
  ],
];

type Wording = (fields: readonly DrawnField[], subject: string, source: CaseSource) => string;

const wordings: readonly Wording[] = [
  (fields, subject, source) => fields.map((field) => sentence(field, subject, source)).join(" "),
  (fields, subject, source) => fields.map((field) => sentence(field, subject, source)).join(" "),
  (fields) => fields.map((field) => `${capital(field.label)}: ${field.text}`).join("\n"),
  (fields) => fields.map((field) => `- ${field.label}: ${field.text}`).join("\n"),
  (fields, subject) =>
    `Notes on the ${subject}: ${fields.map((field) => `${field.label} ${field.text}`).join("; ")}.`,
];

const asides = [
  "The weather was fine that day.",
  "Nobody asked for more.",
  "This note was written in a hurry.",
  "The rest is not important.",
  "A copy is kept in the archive.",
  "Please read it with care.",
  "It took a while to find out.",
  "There is nothing else to add.",
];

function sentence(field: DrawnField, subject: string, { random }: CaseSource): string {
  if (field.statement !== undefined) return field.statement;
  const plural = field.label.endsWith("s") && Array.isArray(field.value);
  const verb = plural ? "are" : "is";
  return random.pick([
    `The ${field.label} ${verb} ${field.text}.`,
    `The ${field.label} of the ${subject} ${verb} ${field.text}.`,
    `Its ${field.label} ${verb} ${field.text}.`,
    `For the ${field.label}, the note says ${field.text}.`,
    `${field.text} ${verb} the ${field.label}.`,
    `The ${subject} has the ${field.label} ${field.text}.`,
    `As ${field.label} we have ${field.text}.`,
  ]);
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** A domain of made-up labels, so that the schema and not the habit decides the keys. */
function inventedDomain({ random, pools }: CaseSource): Domain {
  const labels = pools.distinct(random.int(5, 9), () =>
    random.chance(0.3)
      ? `${random.pick(pools.nouns)} ${pools.word(random)}`
      : random.chance(0.5)
        ? pools.word(random)
        : random.pick(pools.nouns),
  );
  const fields = labels.map((label): FieldPlan => {
    const kind = random.pick([
      "word",
      "word",
      "integer",
      "price",
      "code",
      "boolean",
      "enum",
      "person",
      "date",
      "phrase",
      "string-list",
      "number-list",
      "city",
    ] as const);
    return kind === "enum"
      ? { label, kind, options: pools.distinct(random.int(3, 5), () => pools.word(random)) }
      : { label, kind };
  });
  return { subject: random.pick(["record", "entry", "form", "thing", "report"]), fields };
}

function choosePrompt({ random, pools }: CaseSource): {
  instruction: string;
  layout: Layout;
  wording: Wording;
} {
  for (;;) {
    const instruction = random.int(0, instructions.length - 1);
    const layout = random.int(0, layouts.length - 1);
    const wording = random.int(0, wordings.length - 1);
    if (!pools.owns(`extraction ${instruction} ${layout} ${wording}`)) continue;
    return {
      instruction: instructions[instruction] as string,
      layout: layouts[layout] as Layout,
      wording: wordings[wording] as Wording,
    };
  }
}

/** What a conversation asks for: which fields exist, which the schema names, which of those may be null. */
interface Form {
  readonly subject: string;
  readonly style: KeyStyle;
  readonly plans: readonly FieldPlan[];
  readonly wanted: readonly FieldPlan[];
  readonly optional: ReadonlySet<FieldPlan>;
}

function drawForm(domain: Domain, { random }: CaseSource): Form {
  const plans = random
    .sample(domain.fields, random.int(3, Math.min(8, domain.fields.length)))
    .map((plan) => (plan.kind === "enum" ? { ...plan, options: random.shuffle(plan.options ?? []) } : plan));
  const extra = plans.length > 3 && random.chance(0.3) ? plans.slice(0, random.int(1, 2)) : [];
  const wanted = random.shuffle(plans.filter((plan) => !extra.includes(plan)));
  const one = random.chance(0.4) ? random.sample(wanted, 1) : [];
  const optional = new Set([...one, ...wanted.filter(() => random.chance(0.06))]);
  return { subject: domain.subject, style: random.pick(keyStyles), plans, wanted, optional };
}

interface Reading {
  readonly passage: string;
  readonly value: JsonRecord;
  readonly properties: Record<string, JsonRecord>;
}

/** One passage for the form, its JSON, and the schema's properties, which are the same for every passage. */
function drawReading(form: Form, wording: Wording, source: CaseSource): Reading {
  const { random } = source;
  const fields = new Map(form.plans.map((plan) => [plan, drawField(plan, form.subject, form.style, source)]));
  const value: Record<string, Json> = {};
  const properties: Record<string, JsonRecord> = {};
  for (const plan of form.wanted) {
    const field = fields.get(plan) as DrawnField;
    const missing = form.optional.has(plan) && random.chance(0.7);
    const key = form.style(plan.label);
    value[key] = missing ? null : field.value;
    properties[key] = form.optional.has(plan) ? nullable(field) : field.schema;
    if (missing) fields.delete(plan);
  }
  const passage = wording(random.shuffle([...fields.values()]), form.subject, source);
  if (!random.chance(0.2)) return { passage, value, properties };
  const aside = random.pick(asides);
  return { passage: random.chance(0.5) ? `${aside} ${passage}` : `${passage} ${aside}`, value, properties };
}

export const extraction: TaskFamily<"extraction"> = {
  name: "extraction",
  generate(source) {
    const { random, split } = source;
    const { instruction, layout, wording } = choosePrompt(source);
    const domain = random.chance(0.35) ? inventedDomain(source) : random.pick(domains);
    const form = drawForm(domain, source);
    const first = drawReading(form, wording, source);
    const schema: JsonRecord = {
      type: "object",
      properties: first.properties,
      required: Object.keys(first.properties),
      ...(random.chance(0.3) ? { additionalProperties: false } : {}),
    };
    const messages = layout(instruction, writeJson(schema), first.passage);
    let last = first;
    // Further passages under the same schema cost training little, and held-out cases have none.
    const followUps =
      split === "train"
        ? random.weighted([
            [2, 0],
            [2, 1],
            [2, 3],
            [1, 5],
          ] as const)
        : 0;
    for (let i = 0; i < followUps; i++) {
      messages.push({ role: "assistant", content: writeJson(last.value) });
      last = drawReading(form, wording, source);
      messages.push(user(last.passage));
    }
    return {
      task: "extraction",
      kind: domains.includes(domain) ? domain.subject : "invented",
      messages,
      context: last.passage,
      gold: writeJson(last.value),
      schema,
    };
  },
};
