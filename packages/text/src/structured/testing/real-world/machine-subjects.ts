import type { JsonObject } from "../../grammar.js";
import type { Subject } from "./subject.js";

const languages = ["de", "en", "es", "fr", "ja", "pt-BR", "zh-Hans"];

/** What programs exchange: decisions, calls of tools, configurations, trees, measurements. */
export const machineSubjects: Readonly<Record<string, Subject>> = {
  extraction: (write) =>
    write.object({
      entities: write.list(
        write.object(
          {
            type: write.options(["person", "organisation", "place", "date", "amount"]),
            text: write.text(40),
            span: write.tuple([write.integer(0, 9999), write.integer(0, 9999)]),
            confidence: write.number(0, 1),
          },
          ["span"],
        ),
      ),
      relations: write.list(
        write.object({
          from: write.integer(0, 99),
          to: write.integer(0, 99),
          kind: write.options(["works for", "lives in", "owns"]),
        }),
      ),
    }),

  filter: (write) => {
    const condition = (): JsonObject =>
      write.object({
        field: write.options(["age", "country", "plan", "created_at"]),
        operator: write.options(["eq", "ne", "lt", "gt", "in"]),
        value: write.either(
          write.text(12),
          write.number(-1000, 1000),
          write.boolean(),
          write.list(write.text(8)),
        ),
      });
    const filter: JsonObject = write.reference("Filter", () =>
      write.either(
        condition(),
        write.object({ and: { type: "array", items: write.reference("Filter", () => ({})), maxItems: 2 } }),
        write.object({ not: condition() }),
      ),
    );
    return write.object({ where: filter, limit: write.integer(1, 500) }, ["limit"]);
  },

  folder: (write) =>
    write.reference("Folder", () =>
      write.object({
        name: write.pattern("^[a-z][a-z0-9_.-]{0,15}$"),
        bytes: write.integer(0, 1_000_000),
        children: { type: "array", items: write.reference("Folder", () => ({})), maxItems: 2 },
      }),
    ),

  agent_step: (write) =>
    write.object({
      thought: write.text(80),
      action: write.variants("tool", {
        search: { query: write.text(40), top_k: write.integer(1, 20) },
        fetch: { url: write.format("uri") },
        calculate: { expression: write.pattern("^[0-9]{1,6}( [-+*/] [0-9]{1,6}){1,3}$") },
        finish: { answer: write.text(80) },
      }),
    }),

  weather: (write) =>
    write.object(
      {
        place: write.text(30),
        at: write.format("date-time"),
        temperature: write.object({ value: write.number(-90, 60), unit: write.options(["C", "F"]) }),
        wind: write.object({
          speed: write.number(0, 120),
          degrees: { type: "integer", minimum: 0, exclusiveMaximum: 360 },
        }),
        conditions: {
          type: "array",
          items: { enum: ["clear", "cloud", "rain", "snow", "fog"] },
          uniqueItems: true,
        },
      },
      ["wind"],
    ),

  sensor: (write) =>
    write.object({
      device: write.pick([write.format("ipv4"), write.format("ipv6"), write.format("hostname")]),
      readings: write.list(
        write.tuple([write.format("time"), write.number(-40, 125), write.options(["ok", "stale", "error"])]),
        1,
      ),
      battery: { type: "integer", minimum: 0, maximum: 100 },
    }),

  moderation: (write) =>
    write.object({
      flagged: write.boolean(),
      categories: write.object({
        violence: write.boolean(),
        harassment: write.boolean(),
        spam: write.boolean(),
      }),
      scores: write.map(write.number(0, 1), "^[a-z]{3,12}$"),
      action: write.options(["allow", "review", "block"]),
    }),

  deployment: (write) =>
    write.object({
      apiVersion: { const: "apps/v1" },
      kind: { type: "string", enum: ["Deployment", "StatefulSet"] },
      metadata: write.object({
        name: write.pattern("^[a-z0-9]([-a-z0-9]{0,20}[a-z0-9])?$"),
        labels: write.map(write.pattern("^[A-Za-z0-9]{1,12}$"), "^[a-z]{1,8}$"),
      }),
      spec: write.object({
        replicas: write.integer(0, 50),
        containers: write.list(
          write.object(
            {
              image: write.pattern("^[a-z]{2,10}/[a-z]{2,10}:[0-9]{1,2}\\.[0-9]{1,2}$"),
              ports: write.list(write.integer(1, 65_535)),
              cpu: write.either(write.pattern("^[1-9]\\d{0,3}m$"), write.number(0, 64)),
            },
            ["ports", "cpu"],
          ),
          1,
        ),
      }),
    }),

  geometry: (write) => {
    const position = write.tuple([write.number(-180, 180), write.number(-90, 90)]);
    return write.object({
      type: { const: "Feature" },
      geometry: write.variants("type", {
        Point: { coordinates: position },
        LineString: { coordinates: { type: "array", items: position, minItems: 2, maxItems: 3 } },
      }),
      properties: write.nullable(write.map(write.either(write.text(12), write.number(0, 1e6)))),
    });
  },

  log_event: (write) =>
    write.object(
      {
        timestamp: write.format("date-time"),
        level: { enum: ["debug", "info", "warn", "error"] },
        message: write.text(),
        error: write.nullable(
          write.object({
            code: write.integer(100, 599),
            retryable: write.boolean(),
            trace: write.list(write.text(40)),
          }),
        ),
        context: write.map(
          write.either(write.text(16), write.number(0, 1e9), write.boolean(), { type: "null" }),
        ),
      },
      ["error", "context"],
    ),

  message: (write) =>
    write.object({
      role: write.options(["user", "assistant", "system"]),
      content: write.either(
        write.text(80),
        write.list(
          write.variants("type", {
            text: { text: write.text(40) },
            image: { url: write.format("uri-reference"), detail: write.options(["low", "high", "auto"]) },
          }),
          1,
        ),
      ),
    }),

  translation: (write) =>
    write.object({
      source: { enum: languages },
      target: { enum: languages },
      segments: write.list(write.object({ original: write.text(30), translated: write.text(30) }), 1),
      glossary: {
        type: "object",
        patternProperties: { "^[a-z]{2,10}$": write.text(16) },
        additionalProperties: false,
      },
    }),

  thread: (write) =>
    write.object({
      comments: {
        type: "array",
        maxItems: 2,
        items: write.reference("Comment", () =>
          write.object({
            author: write.text(16),
            text: write.text(60),
            votes: { type: "integer", format: "int32" },
            replies: { type: "array", items: write.reference("Comment", () => ({})), maxItems: 1 },
          }),
        ),
      },
    }),

  matrix: (write) =>
    write.object({
      rows: write.list(write.list({ type: "number", minimum: -10, maximum: 10, multipleOf: 0.25 }, 1), 1),
      labels: write.list(write.pattern("^\\w{1,8}$")),
      normalised: { type: "boolean" },
    }),
};
