import assert from "node:assert/strict";
import test from "node:test";
import { asObjects, asRecord, asString, type JsonFields } from "@octavo/protocol";
import * as fc from "fast-check";
import { guardrailsStage } from "../guardrails/guardrails-stage.js";
import { sampleContext, sampleExchange } from "../limits/testing/sample-exchange.js";
import { TextFilters } from "./text-filters.js";

/** With custom tools, whose calls have a text instead of arguments, in the two that know them. */
type Shape = "chat" | "custom chat" | "responses" | "custom responses" | "messages";
const shapes: readonly Shape[] = ["chat", "custom chat", "responses", "custom responses", "messages"];

/** An answer of each API with a thought, a text and a call. */
interface Said {
  readonly thought: string;
  readonly text: string;
  readonly args: string;
}

function wholeOf(shape: Shape, { thought, text, args }: Said): JsonFields {
  if (shape.endsWith("chat")) {
    const call =
      shape === "chat"
        ? { id: "c", type: "function", function: { name: "f", arguments: args } }
        : { id: "c", type: "custom", custom: { name: "f", input: args } };
    const message = { role: "assistant", content: text, reasoning_content: thought, tool_calls: [call] };
    return { object: "chat.completion", choices: [{ index: 0, message, finish_reason: "tool_calls" }] };
  }
  if (shape.endsWith("responses"))
    return {
      object: "response",
      status: "completed",
      output: [
        { type: "reasoning", summary: [], content: [{ type: "reasoning_text", text: thought }] },
        { type: "message", role: "assistant", content: [{ type: "output_text", text, annotations: [] }] },
        shape === "responses"
          ? { type: "function_call", call_id: "c", name: "f", arguments: args }
          : { type: "custom_tool_call", call_id: "c", name: "f", input: args },
      ],
    };
  return {
    type: "message",
    role: "assistant",
    content: [
      { type: "thinking", thinking: thought, signature: "s" },
      { type: "text", text },
      { type: "tool_use", id: "c", name: "f", input: JSON.parse(args) as unknown },
    ],
    stop_reason: "tool_use",
  };
}

/** The same as a stream, each text cut into pieces. */
function eventsOf(shape: Shape, said: Said, cut: (text: string) => readonly string[]): readonly JsonFields[] {
  const { thought, text, args } = said;
  if (shape.endsWith("chat")) {
    const called = (piece: string): JsonFields =>
      shape === "chat" ? { function: { arguments: piece } } : { custom: { input: piece } };
    const chunk = (delta: JsonFields, finish: string | null = null): JsonFields => ({
      object: "chat.completion.chunk",
      choices: [{ index: 0, delta, finish_reason: finish }],
    });
    return [
      ...cut(thought).map((piece) => chunk({ reasoning_content: piece })),
      ...cut(text).map((piece) => chunk({ content: piece })),
      ...cut(args).map((piece) => chunk({ tool_calls: [{ index: 0, ...called(piece) }] })),
      chunk({}, "tool_calls"),
    ];
  }
  if (shape === "messages") {
    const block = (index: number, type: string, field: string, whole: string, start: JsonFields) => [
      { type: "content_block_start", index, content_block: start },
      ...cut(whole).map((piece) => ({ type: "content_block_delta", index, delta: { type, [field]: piece } })),
      { type: "content_block_stop", index },
    ];
    return [
      { type: "message_start", message: { type: "message", content: [] } },
      ...block(0, "thinking_delta", "thinking", thought, { type: "thinking", thinking: "" }),
      ...block(1, "text_delta", "text", text, { type: "text", text: "" }),
      ...block(2, "input_json_delta", "partial_json", args, {
        type: "tool_use",
        id: "c",
        name: "f",
        input: {},
      }),
      { type: "message_delta", delta: { stop_reason: "tool_use" }, usage: { output_tokens: 3 } },
      { type: "message_stop" },
    ];
  }
  const response = wholeOf(shape, said);
  const items = asObjects(response["output"]);
  const item = (output_index: number, name: string, field: string, whole: string): JsonFields[] => [
    {
      type: "response.output_item.added",
      output_index,
      item: { type: items[output_index]?.["type"], content: [] },
    },
    ...cut(whole).map((delta) => ({ type: `response.${name}.delta`, output_index, content_index: 0, delta })),
    { type: `response.${name}.done`, output_index, content_index: 0, [field]: whole },
    ...(field === "text"
      ? [
          {
            type: "response.content_part.done",
            output_index,
            content_index: 0,
            part: asObjects(items[output_index]?.["content"])[0] ?? {},
          },
        ]
      : []),
    { type: "response.output_item.done", output_index, item: items[output_index] ?? {} },
  ];
  return [
    { type: "response.created", response: { object: "response", status: "in_progress", output: [] } },
    ...item(0, "reasoning_text", "text", thought),
    ...item(1, "output_text", "text", text),
    ...(shape === "responses"
      ? item(2, "function_call_arguments", "arguments", args)
      : item(2, "custom_tool_call_input", "input", args)),
    { type: "response.completed", response },
  ].map((event, sequence_number) => ({ ...event, sequence_number }));
}

/** The texts that a client puts together from the events. */
function saidBy(shape: Shape, events: readonly JsonFields[]): Said {
  const said = { thought: "", text: "", args: "" };
  for (const event of events) {
    if (shape.endsWith("chat")) {
      const delta = asRecord(asObjects(event["choices"])[0]?.["delta"]);
      said.thought += asString(delta["reasoning_content"]) ?? "";
      said.text += asString(delta["content"]) ?? "";
      for (const call of asObjects(delta["tool_calls"]))
        said.args +=
          asString(asRecord(call["function"])["arguments"]) ??
          asString(asRecord(call["custom"])["input"]) ??
          "";
    } else if (shape === "messages") {
      const delta = asRecord(event["delta"]);
      said.thought += asString(delta["thinking"]) ?? "";
      said.text += asString(delta["text"]) ?? "";
      said.args += asString(delta["partial_json"]) ?? "";
    } else if (typeof event["delta"] === "string") {
      const type = asString(event["type"]) ?? "";
      const of = type.includes("reasoning") ? "thought" : /arguments|input/.test(type) ? "args" : "text";
      said[of] += event["delta"];
    }
  }
  return said;
}

const rules = [
  { name: "mail", check: "pii", kinds: ["email"], action: "redact", on: ["response"] },
  { name: "card", check: "pii", kinds: ["credit_card"], on: ["response"] },
];

async function filtersOf(isStream: boolean): Promise<TextFilters> {
  const stage = await guardrailsStage.create(guardrailsStage.schema.parse({ rules }), sampleContext());
  const exchange = sampleExchange();
  exchange.ledger.isStream = isStream;
  const hooks = await stage.onRequest(exchange);
  return new TextFilters([hooks!.filterText!]);
}

const codeOf = (error: unknown): string => (error as { code: string }).code;

const words = fc.array(
  fc.constantFrom(
    "hello ",
    "max@example.com",
    " a@b",
    ".org ",
    "4111 1111 ",
    "1111 1111 ",
    "x ",
    "\u{1f600} ",
    "@",
  ),
  { maxLength: 10 },
);
const said = fc.record({
  thought: words.map((all) => all.join("")),
  text: words.map((all) => all.join("")),
  args: words.map((all) => JSON.stringify({ q: all.join("") })),
});

for (const shape of shapes)
  test(`the verdict on a stream of ${shape} is that on the whole, for every cut, and no event tells more`, async () => {
    await fc.assert(
      fc.asyncProperty(said, fc.infiniteStream(fc.integer({ min: 1, max: 12 })), async (given, sizes) => {
        const cut = (text: string): string[] => {
          const pieces: string[] = [];
          for (let at = 0; at < text.length;) {
            const size = sizes.next().value ?? 1;
            pieces.push(text.slice(at, at + size));
            at += size;
          }
          return pieces;
        };
        const whole = await (await filtersOf(false)).whole(wholeOf(shape, given)).catch(codeOf);
        const filters = await filtersOf(true);
        const sent: JsonFields[] = [];
        let verdict: unknown;
        try {
          for (const event of eventsOf(shape, given, cut)) sent.push(...(await filters.events(event)));
        } catch (error) {
          verdict = codeOf(error);
        }
        const read = saidBy(shape, sent);
        if (typeof whole === "string") {
          assert.equal(verdict, whole);
          // what left before the block has nothing in it that is blocked
          await (await filtersOf(false)).whole(wholeOf("chat", read));
          return;
        }
        assert.equal(verdict, undefined);
        // as one would put the texts back into an answer
        assert.deepEqual(JSON.parse(JSON.stringify(wholeOf(shape, read))), JSON.parse(JSON.stringify(whole)));
        if (shape.endsWith("responses")) {
          assert.deepEqual(asRecord(sent.at(-1)!["response"]), whole);
          assert.deepEqual(
            sent.map((event) => event["sequence_number"]),
            [...sent.keys()],
          );
        }
      }),
      { numRuns: 150 },
    );
  });

test("what is held back leaves before its text is said to be done", async () => {
  const filters = await filtersOf(true);
  const stream = eventsOf("messages", { thought: "", text: "mail a@b", args: "{}" }, (text) => [text]);
  const sent: JsonFields[] = [];
  for (const event of stream) sent.push(...(await filters.events(event)));
  const types = sent.filter(({ index }) => index === 1).map(({ type }) => type);
  assert.equal(types.at(-1), "content_block_stop");
  assert.equal(saidBy("messages", sent).text, "mail a@b");
});

test("an answer of no known shape does not pass the rules", async () => {
  const filters = await filtersOf(false);
  await assert.rejects(filters.whole({ result: "max@example.com" }), { code: "target_answer_invalid" });
  await assert.rejects(filters.events({ result: "max@example.com" }), { code: "target_answer_invalid" });
});
