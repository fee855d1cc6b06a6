import type { CaseSource, Json, JsonRecord } from "../task.js";
import type { FieldPlan } from "./domains.js";

export interface DrawnField {
  readonly label: string;
  readonly schema: JsonRecord;
  readonly value: Json;
  /** The value as prose, and the whole statement where a plain "the X is Y" would not do. */
  readonly text: string;
  readonly statement?: string;
}

export type KeyStyle = (label: string) => string;

export const keyStyles: readonly KeyStyle[] = [
  (label) => label.replaceAll(" ", "_"),
  (label) => label.replace(/ (.)/g, (_, letter: string) => letter.toUpperCase()),
];

const text = (value: string): Omit<DrawnField, "label"> => ({
  schema: { type: "string" },
  value,
  text: value,
});
const whole = (value: number): Omit<DrawnField, "label"> => ({
  schema: { type: "integer" },
  value,
  text: String(value),
});
const decimal = (value: number): Omit<DrawnField, "label"> => ({
  schema: { type: "number" },
  value,
  text: String(value),
});

export function drawField(plan: FieldPlan, subject: string, style: KeyStyle, source: CaseSource): DrawnField {
  return { label: plan.label, ...drawValue(plan, subject, style, source) };
}

function drawValue(
  plan: FieldPlan,
  subject: string,
  style: KeyStyle,
  source: CaseSource,
): Omit<DrawnField, "label"> {
  const { random, pools } = source;
  switch (plan.kind) {
    case "person":
      return text(pools.person(random));
    case "first-name":
      return text(pools.firstName(random));
    case "city":
      return text(pools.city(random));
    case "street":
      return text(pools.street(random));
    case "company":
      return text(pools.company(random));
    case "email":
      return text(pools.email(random));
    case "phone":
      return text(pools.phone(random));
    case "date":
      return text(pools.date(random));
    case "time":
      return text(pools.time(random));
    case "code":
      return text(pools.code(random));
    case "digits":
      return text(pools.digits(random, random.int(6, 10)));
    case "word":
      return text(pools.word(random));
    case "phrase":
      return text(pools.phrase(random));
    case "product":
      return text(pools.product(random));
    case "integer":
      return whole(pools.integer(random));
    case "small":
      return whole(random.int(1, 99));
    case "price":
      return decimal(pools.price(random));
    case "boolean": {
      const value = random.chance(0.5);
      const adjective = plan.options?.[0] ?? plan.label;
      return {
        schema: { type: "boolean" },
        value,
        text: value ? "yes" : "no",
        statement: `The ${subject} is ${value ? "" : "not "}${adjective}.`,
      };
    }
    case "enum": {
      const options = plan.options ?? [];
      const value = random.pick(options);
      return { schema: { type: "string", enum: options }, value, text: value };
    }
    case "string-list": {
      const items = pools.distinct(random.int(1, 5), () =>
        random.chance(0.5) ? random.pick(pools.nouns) : pools.word(random),
      );
      return list(items, { type: "string" });
    }
    case "people":
      return list(
        pools.distinct(random.int(1, 4), () => pools.person(random)),
        { type: "string" },
      );
    case "number-list": {
      const items = Array.from({ length: random.int(2, 5) }, () => random.int(1, 9999));
      return list(items, { type: "integer" });
    }
    case "address": {
      const number = random.int(1, 250);
      const street = pools.street(random);
      const city = pools.city(random);
      const zip = pools.digits(random, 5);
      const value = { street: `${number} ${street}`, city, [style("zip code")]: zip };
      return { schema: objectSchema(value, {}), value, text: `${number} ${street}, ${city}, ${zip}` };
    }
    case "contact": {
      const value = { name: pools.person(random), email: pools.email(random), phone: pools.phone(random) };
      return {
        schema: objectSchema(value, {}),
        value,
        text: `${value.name} (email ${value.email}, phone ${value.phone})`,
      };
    }
    case "line-items": {
      const items = Array.from({ length: random.int(1, 4) }, () => ({
        product: pools.product(random),
        quantity: random.int(1, 30),
        price: pools.price(random),
      }));
      const types: Record<string, JsonRecord> = { quantity: { type: "integer" }, price: { type: "number" } };
      const parts = items.map((item) => `${item.quantity} x ${item.product} at ${item.price}`);
      return {
        schema: { type: "array", items: objectSchema(items[0] as JsonRecord, types) },
        value: items,
        text: joinProse(parts),
        statement: `The ${subject} contains ${joinProse(parts)}.`,
      };
    }
  }
}

function list(items: readonly (string | number)[], itemSchema: JsonRecord): Omit<DrawnField, "label"> {
  return { schema: { type: "array", items: itemSchema }, value: items, text: joinProse(items.map(String)) };
}

export function objectSchema(value: JsonRecord, types: Readonly<Record<string, JsonRecord>>): JsonRecord {
  const keys = Object.keys(value);
  const properties = Object.fromEntries(keys.map((key) => [key, types[key] ?? { type: "string" }]));
  return { type: "object", properties, required: keys };
}

export function joinProse(parts: readonly string[]): string {
  if (parts.length < 2) return parts.join("");
  return `${parts.slice(0, -1).join(", ")} and ${parts[parts.length - 1] as string}`;
}

/** The same field with a type that also takes null, for a value that the passage leaves out. */
export function nullable(field: DrawnField): JsonRecord {
  const { type, enum: members, ...rest } = field.schema;
  const widened: JsonRecord = { type: [type as string, "null"], ...rest };
  return members === undefined ? widened : { ...widened, enum: [...(members as string[]), null] };
}
