import type { JsonValue } from "@octavo/engine";

/** A schema and texts under it, as a model might write them. */
export interface MaskCase {
  readonly name: string;
  readonly schema: JsonValue;
  text(index: number): string;
}

const names = ["Ada Lovelace", "Grace Hopper", "Алан Тьюринг", "José Ñandú", "Wu Jianxiong", "Emmy Noether"];
const words = [
  "river",
  "stone",
  "a quiet morning",
  "mountains in the north",
  "été",
  "数学",
  "seven small boats",
  "light",
];
const pick = (list: readonly string[], index: number): string => list[index % list.length] ?? "";
const sentence = (index: number): string =>
  Array.from({ length: 6 + (index % 7) }, (_, place) => pick(words, index * 3 + place * 5)).join(" ");

const person: JsonValue = {
  type: "object",
  properties: {
    name: { type: "string" },
    age: { type: "integer", minimum: 0, maximum: 130 },
    bio: { type: "string" },
    active: { type: "boolean" },
  },
  required: ["name", "age", "bio", "active"],
  additionalProperties: false,
};

export const maskCases: readonly MaskCase[] = [
  {
    name: "simple",
    schema: person,
    text: (index) =>
      JSON.stringify({
        name: pick(names, index),
        age: (index * 7) % 130,
        bio: sentence(index),
        active: index % 2 === 0,
      }),
  },
  {
    name: "medium",
    schema: {
      type: "object",
      properties: {
        id: { type: "string", pattern: "^[A-Z]{2}-\\d{4}$" },
        title: { type: "string", maxLength: 80 },
        lines: {
          type: "array",
          minItems: 1,
          items: {
            type: "object",
            properties: {
              sku: { type: "string", maxLength: 24 },
              quantity: { type: "integer", minimum: 1, maximum: 999 },
              price: { type: "number", minimum: 0 },
              note: { type: ["string", "null"] },
            },
            required: ["sku", "quantity", "price"],
          },
        },
        status: { enum: ["open", "paid", "shipped", "cancelled"] },
        due: { type: "string", format: "date" },
      },
      required: ["id", "title", "lines", "status"],
    },
    text: (index) =>
      JSON.stringify(
        {
          id: `AB-${1000 + index}`,
          title: sentence(index).slice(0, 70),
          lines: Array.from({ length: 1 + (index % 4) }, (_, place) => ({
            sku: `${pick(words, index + place)} ${place}`.slice(0, 20),
            quantity: 1 + ((index * 13 + place) % 900),
            price: (index * 7 + place) / 4,
            note: place % 2 === 0 ? null : sentence(place),
          })),
          status: pick(["open", "paid", "shipped"], index),
          due: `2026-0${1 + (index % 9)}-1${index % 10}`,
        },
        undefined,
        index % 2,
      ),
  },
  {
    name: "recursive",
    schema: {
      $ref: "#/$defs/node",
      $defs: {
        node: {
          type: "object",
          properties: {
            label: { type: "string" },
            children: { type: "array", items: { $ref: "#/$defs/node" } },
          },
          required: ["label", "children"],
        },
      },
    },
    text: (index) => JSON.stringify(tree(index, 3)),
  },
  {
    name: "open keys",
    schema: {
      type: "object",
      properties: { id: { type: "integer" } },
      additionalProperties: { type: "string" },
    },
    text: (index) =>
      JSON.stringify({
        id: index,
        [pick(words, index)]: sentence(index),
        [`key ${index}`]: pick(names, index),
      }),
  },
  {
    name: "any JSON",
    schema: { type: "object" },
    text: (index) => JSON.stringify({ a: [index, { b: sentence(index) }], c: null }),
  },
];

interface Tree {
  readonly label: string;
  readonly children: readonly Tree[];
}

function tree(index: number, depth: number): Tree {
  const children =
    depth === 0 ? [] : Array.from({ length: 1 + (index % 3) }, (_, child) => tree(index + child, depth - 1));
  return { label: pick(words, index), children };
}
