import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test, { after, before } from "node:test";
import type { Answer } from "../answers/answer.js";
import type { EvalCase } from "../cases/eval-case.js";
import { limitDataset } from "../datasets/limit-dataset.js";
import { collected } from "../datasets/testing/sources.js";
import { recordedExchanges } from "./recorded-exchange.js";
import { recordedTarget, spanDataset } from "./span-dataset.js";
import { spanRecords } from "./span-record.js";

let folder = "";
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "octavo-span-dataset-"));
});
after(() => rm(folder, { recursive: true, force: true }));

const text = (content: string): object => ({ type: "text", content });

/** A row of Octavo's store. */
function row(id: string, more: Readonly<Record<string, unknown>> = {}, content: unknown = {}): string {
  const captured = {
    systemInstructions: [text("Be brief.")],
    inputMessages: [{ role: "user", parts: [text(`ask ${id}`)] }],
    outputMessages: [{ role: "assistant", parts: [text(`say ${id}`)], finishReason: "stop" }],
    toolDefinitions: [],
    prompts: [],
    ...(content as object),
  };
  return JSON.stringify({
    start_ms: 1000,
    duration_ms: 50,
    span_id: id,
    operation: "chat",
    outcome: "ok",
    response_id: id,
    owner: "tenant acme",
    ttft_ms: 20,
    ...more,
    attributes: JSON.stringify({ content: captured, request: { maxTokens: 9, temperature: 0.5, seed: 3 } }),
  });
}

async function write(name: string, ...lines: readonly string[]): Promise<string> {
  await writeFile(join(folder, name), lines.join("\n"));
  return join(folder, name);
}

const answerOf = (evalCase: EvalCase): Promise<Answer> =>
  recordedTarget("recorded").answer(evalCase, { signal: new AbortController().signal });

test("rows become cases with their parameters and their recorded answers, once each", async () => {
  const path = await write(
    "a.jsonl",
    row("1"),
    row("2", { owner: "key 0" }),
    row("1", { side: "client" }),
    row("3"),
  );
  const dataset = spanDataset(path);
  const cases = await collected(dataset);
  assert.deepEqual(
    cases.map(({ id }) => id),
    ["1", "2", "3"],
  );
  assert.deepEqual(dataset.skipped?.(), { "recorded twice": 1 });
  const [first] = cases;
  assert.deepEqual(first?.messages, [
    { role: "system", content: "Be brief." },
    { role: "user", content: "ask 1" },
  ]);
  assert.deepEqual(first?.parameters, { maxTokens: 9, temperature: 0.5, seed: 3 });
  assert.deepEqual(first?.tags, ["owner:tenant acme"]);
  const answer = await answerOf(first);
  assert.deepEqual(
    [answer.target, answer.caseId, answer.text, answer.finishReason],
    ["recorded", "1", "say 1", "stop"],
  );
  assert.deepEqual([answer.timing.durationMs, answer.timing.pieceMs], [50, [20]]);
  const [other, ...none] = await collected(spanDataset(path, { owner: "key 0" }));
  assert.deepEqual([other?.id, none.length], ["2", 0]);
  for (const one of await collected(limitDataset(spanDataset(path), 2)))
    assert.equal((await answerOf(one)).text, `say ${one.id}`);
});

test("a folder is read file by file, and one without spans is refused", async () => {
  await mkdir(join(folder, "store"));
  await assert.rejects(collected(spanDataset(join(folder, "store"))), /holds no spans/);
  await write("store/b.jsonl", row("2"));
  await write("store/a.jsonl", row("1"));
  await write("store/notes.txt", "not a span");
  assert.deepEqual(
    (await collected(spanDataset(join(folder, "store")))).map(({ id }) => id),
    ["1", "2"],
  );
});

test("what cannot be asked again is left out with the reason, and a missing answer is a failed one", async () => {
  const image = {
    inputMessages: [{ role: "user", parts: [text("look"), { type: "media", kind: "image_url" }] }],
  };
  const path = await write(
    "b.jsonl",
    row("media", {}, image),
    row("tools", {}, { toolDefinitions: [{ type: "function", function: {} }] }),
    JSON.stringify({ start_ms: 1, duration_ms: 1, span_id: "bare", operation: "chat" }),
    row("failed", { outcome: "error", error_type: "queue_full" }, { outputMessages: [] }),
  );
  const dataset = spanDataset(path);
  const cases = await collected(dataset);
  assert.deepEqual(
    cases.map(({ id }) => id),
    ["failed"],
  );
  assert.equal((await answerOf(cases[0]!)).failure?.code, "queue_full");
  const reasons = Object.keys(dataset.skipped?.() ?? {}).join("\n");
  assert.match(reasons, /media.*\n.*tools cannot be read: .*\nno content was recorded/);
  assert.equal(
    (await answerOf({ ...cases[0]! })).failure?.code,
    "not_recorded",
    "of a case of somebody else",
  );
});

test("each prompt of a completion is a case with its own first choice", () => {
  const [span] = spanRecords({
    spanId: "s",
    startTimeUnixNano: "1000000",
    endTimeUnixNano: "3000000",
    attributes: {
      "gen_ai.operation.name": "text_completion",
      "gen_ai.input.messages": JSON.stringify(
        ["a", "b"].map((one) => ({ role: "user", parts: [text(one)] })),
      ),
      "gen_ai.output.messages": JSON.stringify(
        ["a1", "a2", "b1", "b2"].map((one) => ({ role: "assistant", parts: [text(one)] })),
      ),
    },
  });
  const found = recordedExchanges(span!);
  assert.ok(typeof found !== "string");
  assert.deepEqual(
    found.map(({ evalCase, answer }) => [evalCase.id, evalCase.messages[0]?.content, answer.text]),
    [
      ["s#0", "a", "a1"],
      ["s#1", "b", "b1"],
    ],
  );
});

test("tool calls and their answers come back as chat messages, and the answers are the context", () => {
  const [span] = spanRecords(
    JSON.parse(
      row(
        "t",
        {},
        {
          inputMessages: [
            { role: "user", parts: [text("weather?")] },
            {
              role: "assistant",
              parts: [{ type: "tool_call", id: "c1", name: "w", arguments: '{"at":"Rome"}' }],
            },
            { role: "tool", parts: [{ type: "tool_call_response", id: "c1", response: "rain" }] },
          ],
          outputMessages: [
            { role: "assistant", parts: [{ type: "tool_call", id: "c2", name: "w", arguments: "{}" }] },
          ],
        },
      ),
    ),
  );
  const found = recordedExchanges(span!);
  assert.ok(typeof found !== "string");
  const [{ evalCase, answer }] = found as [(typeof found)[number]];
  assert.equal(evalCase.context, "rain");
  assert.deepEqual(evalCase.messages.slice(2), [
    {
      role: "assistant",
      content: null,
      tool_calls: [{ id: "c1", type: "function", function: { name: "w", arguments: '{"at":"Rome"}' } }],
    },
    { role: "tool", content: "rain", tool_call_id: "c1" },
  ]);
  assert.deepEqual(answer.toolCalls, [{ id: "c2", name: "w", arguments: "{}" }]);
});
