import { asArray, asObject, asRecord, parseJson } from "@octavo/protocol";
/** The fields of a span that checks need, whatever JSON format it was written in. */
export interface SpanRecord {
  readonly spanId: string | undefined;
  readonly traceId: string | undefined;
  readonly startEpochMs: number;
  readonly durationMs: number;
  readonly side: "client" | "server" | undefined;
  readonly isError: boolean;
  /** Attributes, or the columns of a row; values as JSON has them. */
  readonly facts: ReadonlyMap<string, unknown>;
  /** Scores from its `gen_ai.evaluation.result` events, by evaluator. */
  readonly scores: Readonly<Record<string, number>>;
}

const evaluationEvent = "gen_ai.evaluation.result";
/** Span kinds and the failed status, as in `trace.proto`. */
const sides: Readonly<Record<string, "client" | "server">> = {
  "2": "server",
  "3": "client",
  SPAN_KIND_SERVER: "server",
  SPAN_KIND_CLIENT: "client",
  "SpanKind.SERVER": "server",
  "SpanKind.CLIENT": "client",
  server: "server",
  client: "client",
};
const failedStatus: ReadonlySet<string> = new Set(["2", "STATUS_CODE_ERROR", "ERROR"]);

/** Whether a value is a span or a body of them, to tell files of spans from files of cases. */
export function isSpanValue(value: unknown): boolean {
  const object = asObject(value);
  if (object === undefined || object["messages"] !== undefined) return false;
  if (Array.isArray(object["resourceSpans"])) return true;
  // a case may have times of its own: a span has an id or attributes beside them
  const isMarked = ["attributes", "span_id", "spanId", "context"].some((name) => object[name] !== undefined);
  return isMarked && spanRecords(object).length > 0;
}

/**
 * The spans of one JSON value: an OTLP body (`resourceSpans`), a row of Octavo's local store, a span with a map or a list of
 * attributes (as OpenTelemetry's SDKs print them), or a list of any of these. What is none of them has no spans.
 */
export function spanRecords(value: unknown): readonly SpanRecord[] {
  if (Array.isArray(value)) return value.flatMap((item) => spanRecords(item));
  const object = asObject(value);
  if (object === undefined) return [];
  if (Array.isArray(object["resourceSpans"]))
    return object["resourceSpans"].flatMap((resource) => ofResource(resource));
  const record = typeof object["start_ms"] === "number" ? ofRow(object) : ofSpan(object, new Map());
  return record === undefined ? [] : [record];
}

function ofResource(value: unknown): readonly SpanRecord[] {
  const resource = asRecord(value);
  const shared = attributesOf(asObject(resource["resource"])?.["attributes"]);
  const scopes = asArray(resource["scopeSpans"] ?? resource["instrumentationLibrarySpans"]);
  return scopes.flatMap((scope) =>
    asArray(asObject(scope)?.["spans"]).flatMap((span) => {
      const record = ofSpan(asRecord(span), shared);
      return record === undefined ? [] : [record];
    }),
  );
}

function ofRow(row: Readonly<Record<string, unknown>>): SpanRecord | undefined {
  const durationMs = row["duration_ms"];
  const startEpochMs = epochMs(row["start_ms"], "ms");
  if (typeof durationMs !== "number" || startEpochMs === undefined) return undefined;
  const own = parsedObject(row["attributes"]);
  const facts = new Map(Object.entries({ ...own, ...row }).filter(([, cell]) => cell !== null));
  facts.delete("attributes");
  return {
    spanId: textOf(row["span_id"]),
    traceId: textOf(row["trace_id"]),
    startEpochMs,
    durationMs,
    side: sides[String(row["side"])],
    isError: row["outcome"] === "error" || row["outcome"] === "aborted",
    facts,
    scores: {},
  };
}

function ofSpan(
  span: Readonly<Record<string, unknown>>,
  shared: ReadonlyMap<string, unknown>,
): SpanRecord | undefined {
  const startEpochMs = epochMs(span["startTimeUnixNano"], "ns") ?? epochMs(span["start_time"], "ms");
  const endEpochMs = epochMs(span["endTimeUnixNano"], "ns") ?? epochMs(span["end_time"], "ms");
  if (startEpochMs === undefined || endEpochMs === undefined) return undefined;
  const context = asRecord(span["context"]);
  const status = asRecord(span["status"]);
  return {
    spanId: textOf(span["spanId"] ?? span["span_id"] ?? context["span_id"]),
    traceId: textOf(span["traceId"] ?? span["trace_id"] ?? context["trace_id"]),
    startEpochMs,
    durationMs: Math.max(0, endEpochMs - startEpochMs),
    side: sides[String(span["kind"])],
    isError: failedStatus.has(String(status["code"] ?? status["status_code"])),
    facts: new Map([...shared, ...attributesOf(span["attributes"])]),
    scores: scoresOf(span["events"]),
  };
}

/** A map, or OTLP's list of keys with typed values. */
function attributesOf(value: unknown): ReadonlyMap<string, unknown> {
  if (!Array.isArray(value)) return new Map(Object.entries(asRecord(value)));
  return new Map(
    value.flatMap((item): [string, unknown][] => {
      const { key, value: typed } = asRecord(item);
      return typeof key === "string" ? [[key, otlpValue(typed)]] : [];
    }),
  );
}

function otlpValue(value: unknown): unknown {
  const typed = asRecord(value);
  if ("intValue" in typed) return Number(typed["intValue"]);
  if ("doubleValue" in typed) return Number(typed["doubleValue"]);
  const list = asObject(typed["arrayValue"])?.["values"];
  if (list !== undefined) return asArray(list).map((item) => otlpValue(item));
  return typed["stringValue"] ?? typed["boolValue"];
}

function scoresOf(events: unknown): Readonly<Record<string, number>> {
  const scores: Record<string, number> = {};
  for (const item of asArray(events)) {
    const event = asRecord(item);
    if (event["name"] !== evaluationEvent) continue;
    const attributes = attributesOf(event["attributes"]);
    const name = attributes.get("gen_ai.evaluation.name");
    const score = attributes.get("gen_ai.evaluation.score.value");
    if (typeof name === "string" && typeof score === "number") scores[name] = score;
  }
  return scores;
}

/** What dates of ECMAScript reach, before and after 1970. */
const lastDateMs = 8.64e15;

/** Numbers are in the unit that is usual for the field; text is nanoseconds or a date. */
function epochMs(value: unknown, unit: "ns" | "ms"): number | undefined {
  if (typeof value === "string" && !/^\d+$/.test(value)) {
    const parsed = Date.parse(value);
    return Number.isNaN(parsed) ? undefined : parsed;
  }
  if (typeof value !== "number" && typeof value !== "string") return undefined;
  const number = unit === "ns" ? Number(value) / 1e6 : Number(value);
  // a time that no date has says nothing
  return Math.abs(number) <= lastDateMs ? number : undefined;
}

function parsedObject(value: unknown): Readonly<Record<string, unknown>> {
  if (typeof value !== "string") return asRecord(value);
  return asRecord(parseJson(value)?.value);
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}
