import { definedFields, isRecord } from "@octavo/protocol";
import type { CaseMessage, CaseParameters, EvalCase, Expectation } from "../cases/eval-case.js";
import { parseAcceptedCalls, parseExactCalls, parseTools } from "./case-tools.js";
import { parseMessages } from "./case-messages.js";
import { type FieldRecord, FieldReader } from "./fields.js";
import { type Place, quoted } from "./place.js";
import type { CaseIds } from "./case-ids.js";

/** Names under which a case's fields are found, the first being our own. */
export const fieldNames = {
  id: ["id", "_id", "case_id", "caseId"],
  messages: ["messages", "input", "prompt", "question"],
  system: ["system", "system_prompt"],
  context: ["context", "contexts"],
  outputs: ["expected", "expected_output", "expectedOutput", "gold", "reference", "completion", "answer"],
  schema: ["schema", "json_schema"],
  tools: ["tools", "functions"],
  expectedCalls: ["expected_tool_calls", "expectedToolCalls", "expectedCalls"],
  orderFree: ["order_free", "isOrderFree"],
  tenant: ["tenant", "tenant_id"],
  cluster: ["cluster", "conversation_id"],
  tags: ["tags"],
  parameters: ["parameters"],
  metadata: ["metadata"],
} as const satisfies Record<string, readonly string[]>;

const parameterFields = [
  "maxTokens",
  "max_tokens",
  "max_completion_tokens",
  "temperature",
  "seed",
  "toolChoice",
  "tool_choice",
  "responseFormat",
  "response_format",
  "extraBody",
  "extra_body",
];

/** The fields of a case by their first names, and those of its request. */
export const knownCaseFields: readonly string[] = [
  ...Object.values(fieldNames).map(([first]) => first),
  "max_tokens",
  "temperature",
  "seed",
  "tool_choice",
  "response_format",
  "extra_body",
];

const everyField: ReadonlySet<string> = new Set([...Object.values(fieldNames).flat(), ...parameterFields]);

/** Whether a field of this name is more than metadata. */
export function isCaseField(name: string): boolean {
  return everyField.has(name);
}

/**
 * A case from one record of JSON lines, CSV or Parquet. `EvalCase` as JSON reads back as it was; beyond it the usual
 * spellings are taken: `input` or `prompt` (text or messages), `expected_output`, `gold`, `reference` or `completion`
 * (a text, or a list of which any is right), bare tools, `expected_tool_calls` with exact arguments, `max_tokens` and
 * its like beside them. A conversation that ends with the assistant and has no other gold has its last turn as gold.
 * What octavo-mini's generator writes is known by `task` and `kind`, which become tags. Other fields become metadata.
 * @param content what an id is derived from when the record has none
 * @throws OctavoError `dataset_invalid` that names the field
 */
export function parseCase(record: FieldRecord, place: Place, ids: CaseIds, content: () => string): EvalCase {
  const fields = new FieldReader(record, place);
  const tools = fields.take(...fieldNames.tools);
  const stated = parseExpectation(fields);
  const asked = parseInput(fields);
  const [messages, expected] = splitLastTurn(asked, stated);
  const context = parseContext(fields);
  const metadata = fields.record(...fieldNames.metadata);
  const tags = parseTags(fields);
  const tenant = idOf(fields, fieldNames.tenant);
  const cluster = idOf(fields, fieldNames.cluster);
  const parameters = parseParameters(fields);
  const generated = octavoMiniTags(fields, record);
  const id = idOf(fields, fieldNames.id);
  return {
    id: id === undefined ? ids.derive(content()) : ids.claim(id, place),
    messages,
    tools: tools === undefined ? [] : parseTools(tools.value, tools.name, place),
    context,
    expected,
    parameters,
    tenant,
    cluster,
    tags: [...tags, ...generated],
    metadata: { ...fields.rest(), ...metadata },
  };
}

function idOf(fields: FieldReader, names: readonly string[]): string | undefined {
  const field = fields.take(...names);
  if (field === undefined) return undefined;
  if (typeof field.value === "string") return field.value;
  if (typeof field.value === "number" || typeof field.value === "bigint") return String(field.value);
  throw fields.fail(field.name, `must be text or a number, but is ${quoted(field.value)}`);
}

function parseInput(fields: FieldReader): readonly CaseMessage[] {
  const field = fields.take(...fieldNames.messages);
  if (field === undefined) {
    throw fields.fail(
      undefined,
      `has no input: one of the fields ${fieldNames.messages.join(", ")} is needed`,
    );
  }
  const { name, value } = field;
  const messages: readonly CaseMessage[] =
    typeof value === "string" ? [{ role: "user", content: value }] : parseMessages(value, name, fields.place);
  const system = fields.text(...fieldNames.system);
  return system === undefined ? messages : [{ role: "system", content: system }, ...messages];
}

function parseContext(fields: FieldReader): string | undefined {
  return fields.texts(...fieldNames.context)?.join("\n\n");
}

function parseTags(fields: FieldReader): readonly string[] {
  return fields.texts(...fieldNames.tags) ?? [];
}

/** octavo-mini's generator: `{task, kind, messages, context, gold}`. */
function octavoMiniTags(fields: FieldReader, record: FieldRecord): readonly string[] {
  const { task, kind, gold, messages } = record;
  const isGenerated =
    typeof task === "string" &&
    typeof kind === "string" &&
    typeof gold === "string" &&
    Array.isArray(messages);
  if (!isGenerated) return [];
  fields.take("task");
  fields.take("kind");
  return [task, `kind:${kind}`];
}

function parseExpectation(fields: FieldReader): Expectation {
  const { place } = fields;
  const field = fields.take(...fieldNames.outputs);
  const schema = fields.record(...fieldNames.schema);
  const callsField = fields.take(...fieldNames.expectedCalls);
  const orderFree = fields.take(...fieldNames.orderFree);
  const calls =
    callsField === undefined ? undefined : parseExactCalls(callsField.value, callsField.name, place);
  const nested =
    field !== undefined && isRecord(field.value) && isExpectation(field.value)
      ? parseNested(new FieldReader(field.value, place), field.name)
      : undefined;
  // a gold text beside calls is those calls in a model's own markup, which is not what clients are definedFields
  const isMarkup = calls !== undefined && calls.length > 0;
  const outputs =
    nested !== undefined || field === undefined || isMarkup ? undefined : acceptedOutputs(field.value);
  return {
    ...definedFields({ outputs, schema, toolCalls: calls }),
    ...(orderFree !== undefined && { isOrderFree: truth(orderFree.value, orderFree.name, fields) }),
    ...nested,
  };
}

const expectationFields = new Set(["outputs", "schema", "toolCalls", "isOrderFree"]);

function isExpectation(value: FieldRecord): boolean {
  return Object.keys(value).every((name) => expectationFields.has(name));
}

function parseNested(nested: FieldReader, at: string): Expectation {
  const { place } = nested;
  const outputs = nested.texts("outputs");
  const schema = nested.record("schema");
  const calls = nested.take("toolCalls");
  const orderFree = nested.take("isOrderFree");
  return {
    ...definedFields({ outputs, schema }),
    ...(calls !== undefined && { toolCalls: parseAcceptedCalls(calls.value, `${at}.toolCalls`, place) }),
    ...(orderFree !== undefined && { isOrderFree: truth(orderFree.value, `${at}.isOrderFree`, nested) }),
  };
}

/** A text, a list of texts of which any is right, or JSON, whose text is expected. */
function acceptedOutputs(value: unknown): readonly string[] {
  if (typeof value === "string") return [value];
  if (Array.isArray(value) && value.length > 0 && value.every((one) => typeof one === "string")) return value;
  return [JSON.stringify(value)];
}

function truth(value: unknown, name: string, fields: FieldReader): boolean {
  if (typeof value === "boolean") return value;
  throw fields.fail(name, `must be true or false, but is ${quoted(value)}`);
}

function splitLastTurn(
  messages: readonly CaseMessage[],
  expected: Expectation,
): readonly [readonly CaseMessage[], Expectation] {
  const last = messages.at(-1);
  const hasGold = expected.outputs !== undefined || expected.toolCalls !== undefined;
  if (last?.role !== "assistant" || messages.length === 1 || hasGold) return [messages, expected];
  const calls = last.tool_calls?.map(({ function: called }) => called);
  const gold: Expectation =
    calls === undefined
      ? { outputs: [last.content ?? ""] }
      : { toolCalls: calls.map(({ name, arguments: text }) => ({ name, arguments: exactly(text) })) };
  return [messages.slice(0, -1), { ...expected, ...gold }];
}

/** Arguments as text, each value being the only one accepted. */
function exactly(text: string): Record<string, readonly unknown[]> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return {};
  }
  return isRecord(value)
    ? Object.fromEntries(Object.entries(value).map(([name, accepted]) => [name, [accepted]]))
    : {};
}

const toolChoices = ["none", "auto", "required"] as const;

/** Parameters in an object or beside the other fields, as JSON spells them (`max_tokens`) or as we do (`maxTokens`). */
function parseParameters(fields: FieldReader): CaseParameters {
  const nested = fields.record(...fieldNames.parameters);
  return {
    ...parametersOf(fields),
    ...(nested !== undefined && parametersOf(new FieldReader(nested, fields.place))),
  };
}

function parametersOf(fields: FieldReader): CaseParameters {
  const maxTokens = fields.number("maxTokens", "max_tokens", "max_completion_tokens");
  const temperature = fields.number("temperature");
  const seed = fields.number("seed");
  const choice = fields.take("toolChoice", "tool_choice");
  const responseFormat = fields.record("responseFormat", "response_format");
  const extraBody = fields.record("extraBody", "extra_body");
  if (maxTokens !== undefined && !(Number.isInteger(maxTokens) && maxTokens > 0)) {
    throw fields.fail("max_tokens", `must be a whole number above 0, but is ${maxTokens}`);
  }
  const toolChoice = toolChoices.find((known) => known === choice?.value);
  if (choice !== undefined && toolChoice === undefined) {
    throw fields.fail(
      choice.name,
      `must be one of ${toolChoices.join(", ")}, but is ${quoted(choice.value)}`,
    );
  }
  return {
    ...definedFields({ maxTokens, temperature, seed, toolChoice, responseFormat, extraBody }),
  };
}
