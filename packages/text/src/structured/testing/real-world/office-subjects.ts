import type { JsonObject } from "../../grammar.js";
import type { SchemaWriter } from "./schema-writer.js";
import type { Subject } from "./subject.js";

const currencies = ["EUR", "USD", "GBP", "JPY", "CHF", "SEK"];
const languages = ["de", "en", "es", "fr", "ja", "pt-BR", "zh-Hans"];

function address(write: SchemaWriter): JsonObject {
  return write.reference("Address", () =>
    write.object(
      {
        street: write.text(),
        city: write.text(30),
        postal_code: write.pick([
          write.pattern("^[0-9]{5}(-[0-9]{4})?$"),
          write.pattern("^[A-Z]{1,2}\\d[A-Z\\d]? \\d[A-Z]{2}$"),
          write.text(10),
        ]),
        country: write.pick([
          write.pattern("^[A-Z]{2}$"),
          write.options(["AT", "DE", "FR", "JP", "NO", "US"]),
        ]),
      },
      ["street"],
    ),
  );
}

function money(write: SchemaWriter): JsonObject {
  return write.reference("Money", () =>
    write.object({
      amount: write.pick([
        { type: "number", minimum: 0, maximum: 20, multipleOf: 0.01 },
        write.number(0, 100_000),
        write.pattern("^\\d{1,7}\\.\\d{2}$"),
      ]),
      currency: write.options(currencies),
    }),
  );
}

function person(write: SchemaWriter): JsonObject {
  return write.object(
    {
      name: write.text(40),
      email: write.nullable(write.format("email")),
      age: write.integer(0, 130),
      active: write.boolean(),
    },
    ["email", "active"],
  );
}

/** Records of people and their business. */
export const officeSubjects: Readonly<Record<string, Subject>> = {
  invoice: (write) =>
    write.object(
      {
        invoice_number: write.pattern("^INV-\\d{4,8}$"),
        issued: write.format("date"),
        due: write.nullable(write.format("date")),
        seller: write.object({ name: write.text(), address: address(write) }),
        lines: write.list(
          write.object(
            {
              sku: write.pattern("^[A-Z]{2,4}-[0-9]{3}$"),
              description: write.text(),
              quantity: write.integer(1, 999),
              unit_price: money(write),
            },
            ["description"],
          ),
          1,
        ),
        total: money(write),
        status: write.options(["draft", "open", "paid", "void"]),
      },
      ["due"],
    ),

  profile: (write) =>
    write.object(
      {
        id: write.pick([write.format("uuid"), { type: "integer", format: "int64", minimum: 1 }]),
        person: person(write),
        languages: { type: "array", items: { enum: languages }, uniqueItems: true, minItems: 1 },
        website: write.nullable(write.format("uri")),
        home: write.nullable(address(write)),
        preferences: write.map(write.either(write.boolean(), write.text(20))),
      },
      ["website", "home", "preferences"],
    ),

  product: (write) =>
    write.object(
      {
        title: write.text(60),
        price: money(write),
        in_stock: write.boolean(),
        rating: { type: "number", minimum: 0, maximum: 5, multipleOf: 0.5 },
        dimensions: write.object({
          width_cm: write.number(0, 500),
          height_cm: write.number(0, 500),
          depth_cm: write.number(0, 500),
        }),
        tags: write.list(write.text(16)),
        colour: write.pick([
          write.pattern("^#[0-9a-fA-F]{6}$"),
          write.options(["red", "green", "dark blue", "crème"]),
        ]),
      },
      ["rating", "dimensions", "colour"],
    ),

  calendar_event: (write) =>
    write.object(
      {
        summary: write.text(),
        start: write.format("date-time"),
        end: write.format("date-time"),
        duration: write.pattern("^PT(\\d{1,2}H)?[1-5]?\\dM$"),
        attendees: write.list(
          write.object(
            {
              email: write.format("email"),
              response: write.options(["accepted", "declined", "tentative", "needsAction"]),
            },
            ["response"],
          ),
        ),
        reminders: write.list(
          write.variants("method", { email: {}, popup: { minutes: write.integer(0, 40_320) } }),
        ),
      },
      ["end", "duration", "reminders"],
    ),

  ticket: (write) =>
    write.object({
      category: write.options(["billing", "bug", "feature request", "account", "other"]),
      priority: write.pick([
        write.integer(1, 5),
        { enum: ["low", "medium", "high"] },
        { enum: [1, 2, 3, "urgent"] },
      ]),
      sentiment: { type: "number", minimum: -1, maximum: 1 },
      summary: write.text(120),
      needs_human: write.boolean(),
    }),

  recipe: (write) =>
    write.object(
      {
        name: write.text(50),
        servings: write.integer(1, 24),
        minutes: { type: "integer", multipleOf: 5, minimum: 5, maximum: 600 },
        ingredients: write.list(
          write.object(
            {
              item: write.text(30),
              amount: write.either(write.number(0, 5000), write.options(["a pinch", "to taste", "some"])),
              unit: write.nullable(write.options(["g", "ml", "tbsp", "tsp"])),
            },
            ["unit"],
          ),
          1,
        ),
        steps: write.list(write.text(80), 1),
      },
      ["minutes"],
    ),

  resume: (write) =>
    write.object(
      {
        person: person(write),
        positions: write.list(
          write.object(
            {
              employer: write.text(30),
              title: write.text(30),
              from: write.pattern("^(19|20)\\d{2}-(0[1-9]|1[0-2])$"),
              to: write.nullable(write.pattern("^(19|20)\\d{2}-(0[1-9]|1[0-2])$")),
            },
            ["to"],
          ),
        ),
        skills: write.map(write.integer(1, 5)),
      },
      ["skills"],
    ),

  payment: (write) => ({
    ...write.object(
      {
        method: { enum: ["card", "transfer"] },
        card_last4: write.pattern("^\\d{4}$"),
        iban: write.pattern("^[A-Z]{2}\\d{2}[A-Z0-9]{11,20}$"),
        amount: write.number(0, 5000),
      },
      ["card_last4", "iban"],
    ),
    if: { properties: { method: { const: "card" } } },
    // oxlint-disable-next-line no-thenable -- a keyword of JSON Schema, in data that nobody awaits
    then: { required: ["card_last4"] },
    else: { required: ["iban"] },
  }),

  survey: (write) =>
    write.object({
      questions: write.list(
        write.variants("kind", {
          scale: { prompt: write.text(60), steps: write.integer(2, 10) },
          choice: { prompt: write.text(60), options: write.list(write.text(20), 2) },
          open: { prompt: write.text(60) },
        }),
        1,
      ),
    }),

  itinerary: (write) =>
    write.object(
      {
        passengers: write.integer(1, 9),
        legs: write.list(
          write.object({
            flight: write.pattern("^[A-Z]{2}\\d{1,4}$"),
            from: write.pattern("^[A-Z]{3}$"),
            to: write.pattern("^[A-Z]{3}$"),
            departs: write.format("date-time"),
          }),
          1,
        ),
        seat: write.nullable(write.pattern("^([1-9]|[1-5]\\d)[A-F]$")),
      },
      ["seat"],
    ),

  organisation: (write) =>
    write.object({
      name: write.text(30),
      head: write.reference("Employee", () =>
        write.object(
          {
            name: write.text(20),
            role: write.options(["engineer", "manager", "designer"]),
            deputy: write.nullable(write.reference("Employee", () => ({}))),
          },
          ["deputy"],
        ),
      ),
    }),

  quiz: (write) =>
    write.object({
      question: write.text(80),
      answers: {
        type: "array",
        items: write.object({ text: write.text(24), correct: { type: "boolean" } }),
        contains: { properties: { correct: { const: true } }, required: ["correct"] },
        minItems: 2,
        maxItems: 4,
      },
      explanation: write.nullable(write.text(80)),
    }),

  tasks: (write) =>
    write.object({
      tasks: write.list(
        {
          allOf: [
            write.reference("Item", () => ({
              type: "object",
              properties: { id: write.integer(1, 99), title: write.text(30) },
              required: ["id", "title"],
            })),
            {
              type: "object",
              properties: {
                done: { type: "boolean" },
                after: { type: "array", items: { type: "integer", minimum: 1, maximum: 99 }, maxItems: 3 },
              },
              required: ["done"],
            },
          ],
        },
        1,
      ),
    }),

  coupon: (write) => ({
    ...write.object(
      {
        code: write.pattern("^[A-Z0-9]{4,10}$"),
        percent: write.integer(1, 100),
        max_amount: write.number(0, 500),
        currency: write.options(currencies),
        expires: write.format("date"),
      },
      ["max_amount", "currency", "expires"],
    ),
    dependentRequired: { max_amount: ["currency"] },
  }),
};
