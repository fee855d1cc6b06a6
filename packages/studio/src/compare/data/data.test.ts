import assert from "node:assert/strict";
import test from "node:test";
import type { ChatTemplate, Tokenizer } from "@octavo/engine";
import { compileChatTemplate } from "@octavo/engine/parts";
import { FakeTokenizer } from "@octavo/text/testing/fake-tokenizer";
import { OctavoError } from "@octavo/protocol";
import { roles } from "../roles/role.js";
import { parseCases } from "./cases.js";
import { forcedSequence, unscored } from "./forced-sequence.js";
import { renderCase } from "./render.js";
import { tokenByteOffsets } from "./token-offsets.js";

const tokens = { bosToken: undefined, eosToken: undefined, unkToken: undefined, padToken: undefined };
const chatml = compileChatTemplate(
  "{% for m in messages %}<{{ m.role }}>{{ m.content }}</>\n{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}",
  tokens,
);
/** Drops what an earlier answer thought, as reasoning models' templates do. */
const forgetful = compileChatTemplate(
  "{% for m in messages %}<{{ m.role }}>{% if loop.last %}{{ m.content }}{% else %}{{ m.content.split('#')[-1] }}{% endif %}</>{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}",
  tokens,
);
const templates = (template: ChatTemplate | undefined) => ({
  default: template,
  toolUse: undefined,
  model: "m",
});
const lines = (...values: unknown[]) => Buffer.from(values.map((value) => JSON.stringify(value)).join("\n"));
const user = { role: "user", content: "q" };
const says = (content: string) => ({ role: "assistant", content });

test("all forms of lines are read; blank ones are passed over; a limit holds", () => {
  const data = Buffer.concat([
    lines({ messages: [user, says("a")] }, { messages: [user], gold: "g" }, { prompt: "p", completion: "c" }),
    Buffer.from("\n\n"),
    lines({ text: "t" }),
  ]);
  const cases = parseCases(data, "d.jsonl");
  assert.deepEqual(
    cases.map(({ kind, line }) => [kind, line]),
    [
      ["conversation", 1],
      ["conversation", 2],
      ["completion", 3],
      ["text", 5],
    ],
  );
  assert.equal(parseCases(data, "d.jsonl", 2).length, 2);
  const wire = {
    role: "assistant",
    content: null,
    tool_calls: [{ id: "1", type: "function", function: { name: "f", arguments: '{"a": 1}' } }],
  };
  const [item] = parseCases(lines({ messages: [user, wire] }), "d.jsonl");
  assert.deepEqual(item?.kind === "conversation" && item.messages[1]?.tool_calls?.[0]?.function.arguments, {
    a: 1,
  });
});

test("a bad line is named with what is wrong with it", () => {
  for (const [line, message] of [
    ["{", /d\.jsonl:2 is not JSON/],
    ["[]", /:2 is not a JSON object/],
    ["{}", /neither "messages" nor "prompt" nor "text"/],
    ['{"text": ""}', /empty "text"/],
    ['{"text": 3}', /"text" that is no text/],
    ['{"prompt": "p"}', /without a "completion"/],
    ['{"messages": []}', /empty one/],
    ['{"messages": [{"role": "user", "content": "x"}]}', /no assistant message/],
    ['{"messages": [{"content": "x"}], "completion": "c"}', /messages\[0\] without a role/],
    ['{"messages": [{"role": "user", "content": [{"type": "image_url"}]}], "completion": "c"}', /no text/],
    ['{"messages": [{"role": "user", "content": "x"}], "completion": "c", "tools": [1]}', /"tools"/],
    [
      '{"messages": [{"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f", "arguments": "{"}}]}]}',
      /arguments that are not JSON/,
    ],
  ] as const) {
    assert.throws(
      () => parseCases(Buffer.from(`{"text": "fine"}\n${line}\n`), "d.jsonl"),
      (error) =>
        error instanceof OctavoError &&
        error.code === "invalid_option" &&
        message.test(error.message) &&
        error.message.includes("d.jsonl:2"),
      line,
    );
  }
  assert.throws(
    () => parseCases(Buffer.from([0x22, 0xff, 0x22]), "d.jsonl"),
    /d\.jsonl:1 is not valid UTF-8/,
  );
  assert.throws(() => parseCases(Buffer.from("\n"), "d.jsonl"), /no cases/);
});

test("turns that continue one text share it; where a template changes history each turn has its own", () => {
  const [item] = parseCases(lines({ messages: [user, says("x#one"), user, says("two")] }), "d.jsonl");
  const shared = renderCase(item!, templates(chatml), "d.jsonl");
  assert.equal(shared.length, 1);
  assert.deepEqual(
    shared[0]?.answers.map(({ start, end }) => shared[0]!.text.slice(start, end)),
    ["x#one</>\n", "two</>\n"],
  );
  const apart = renderCase(item!, templates(forgetful), "d.jsonl");
  assert.deepEqual(
    apart.map(({ text, answers }) => [text, answers.map(({ start, end }) => text.slice(start, end))]),
    [
      ["<user>q</><assistant>x#one</>", ["x#one</>"]],
      ["<user>q</><assistant>one</><user>q</><assistant>two</>", ["two</>"]],
    ],
  );
  assert.throws(
    () => renderCase(item!, templates(undefined), "d.jsonl"),
    /m has no chat template, which d\.jsonl:1 needs/,
  );
  const failing = compileChatTemplate("{{ raise_exception('no') }}", tokens);
  assert.throws(
    () => renderCase(item!, templates(failing), "d.jsonl"),
    /d\.jsonl:1 cannot be laid out: .*no/,
  );
});

/** One token per character, the last of its code points' bytes included. */
function characters(text: string): { tokenizer: Tokenizer; ids: Int32Array } {
  const letters = [...new Set(text)];
  const fake = new FakeTokenizer({ pieces: letters });
  return { tokenizer: fake, ids: Int32Array.from(text, (letter) => letters.indexOf(letter)) };
}

test("tokens take the roles of their bytes and count from each answer's start", () => {
  const text = 'qé|{"k": "vé"}$rest';
  const { tokenizer, ids } = characters(text);
  const answer = { start: 3, end: text.length, message: undefined, mayCallTools: false };
  const end = ids[text.indexOf("$")]!;
  const forced = forcedSequence(
    { line: 1, text, answers: [answer], addSpecialTokens: false, isPlain: false },
    ids,
    tokenizer,
    new Set([end]),
  );
  assert.equal(forced.roles.filter((role) => role !== unscored).length, 12);
  const roleAt = (part: string) => roles[forced.roles[text.indexOf(part)]!];
  assert.equal(roleAt("k"), "json_key");
  assert.equal(roleAt("v"), "json_value");
  assert.equal(roleAt("{"), "structure");
  assert.equal(forced.roles[0], unscored);
  assert.equal(forced.roles[text.indexOf("r")], unscored, "nothing behind the end token is scored");
  assert.equal(forced.positions[3], 0);
  assert.equal(forced.positions[text.indexOf("k")], 2);
  assert.equal(forced.numAnswers, 1);
});

test("offsets survive a space put before the text and characters that were normalised", () => {
  const fake = new FakeTokenizer({ pieces: [" ab", "X", "c", "d"] });
  // " ab" stands for "ab", X for nothing that is there, c and d are found again.
  assert.deepEqual([...tokenByteOffsets("abÄcd", Int32Array.of(0, 1, 2, 3), fake)], [0, 2, 4, 5, 6]);
});
