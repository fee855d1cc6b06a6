import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { GrammarSpec } from "./grammar.js";
import { byteGrammar } from "./testing/byte-grammar.js";

const integer: GrammarSpec = { kind: "json_schema", schema: { type: "integer", minimum: 0, maximum: 99 } };
const literal = (text: string): GrammarSpec => ({ kind: "literal", text });

const cases: readonly (readonly [
  name: string,
  spec: GrammarSpec,
  good: readonly string[],
  bad: readonly string[],
])[] = [
  [
    "a sequence",
    { kind: "sequence", parts: [literal("<"), integer, literal(">")] },
    ["<5>", "<42>"],
    ["<>", "<100>", "5"],
  ],
  ["any of", { kind: "any_of", options: [literal("a"), integer] }, ["a", "7"], ["", "b"]],
  [
    "a repetition",
    { kind: "repeat", item: integer, separator: "; ", min: 2, max: 3 },
    ["1; 2", "1; 2; 3"],
    ["1", "1;2", "1; 2; 3; 4", ""],
  ],
  ["a repetition of none or more", { kind: "repeat", item: literal("ab") }, ["", "ab", "abab"], ["a"]],
  [
    "a separated repetition of none or more",
    { kind: "repeat", item: integer, separator: "," },
    ["", "1", "1,2"],
    [",", "1,"],
  ],
  [
    "text up to an end",
    { kind: "sequence", parts: [{ kind: "any_text", until: "</t>" }, integer] },
    ["</t>1", "a < b</t>22"],
    ["1", "x</t></t>1", "</t>"],
  ],
  ["any text", { kind: "any_text" }, ["", "é\n{"], []],
  [
    "tags",
    {
      kind: "tagged_text",
      triggers: ["<f="],
      tags: [
        { begin: "<f=a>", content: integer, end: "</f>" },
        { begin: "<f=b>", content: literal("!"), end: "" },
      ],
    },
    ["", "no tag, <f or < f=", "x<f=a>1</f>y<f=b>!z", "<f=a>10</f><f=a>20</f>"],
    ["<f=c>", "<f=a>x</f>", "<f=a>1", "x<f="],
  ],
  [
    "tags of which one must come and ends the text",
    {
      kind: "tagged_text",
      triggers: ["<"],
      tags: [{ begin: "<", content: integer, end: ">" }],
      atLeastOne: true,
      stopAfterFirst: true,
    },
    ["<1>", "text <1>"],
    ["", "text", "<1>more", "<1><2>"],
  ],
  [
    "triggers that begin alike",
    {
      kind: "tagged_text",
      triggers: ["<<a", "<b"],
      tags: [
        { begin: "<<a", content: literal("1"), end: "" },
        { begin: "<b", content: literal("2"), end: "" },
      ],
    },
    ["<<<a1", "<<b2", "<<c"],
    ["<<a2", "<<b1"],
  ],
];

describe("composed constraints", () => {
  for (const [name, spec, good, bad] of cases) {
    it(name, () => {
      const accepts = byteGrammar(spec);
      for (const text of good) assert.ok(accepts(text), `takes ${text}`);
      for (const text of bad) assert.ok(!accepts(text), `does not take ${text}`);
    });
  }

  it("are refused where they are malformed", () => {
    const bad: readonly (readonly [GrammarSpec, RegExp])[] = [
      [{ kind: "any_of", options: [] }, /options/],
      [{ kind: "repeat", item: literal("a"), min: 3, max: 2 }, /bounds/],
      [{ kind: "tagged_text", triggers: [], tags: [] }, /triggers/],
      [
        { kind: "tagged_text", triggers: ["<"], tags: [{ begin: "x", content: integer, end: "" }] },
        /starts with no trigger/,
      ],
      [{ kind: "any_text", until: "" }, /end of 1/],
    ];
    for (const [spec, message] of bad)
      assert.throws(() => byteGrammar(spec), { code: "invalid_request", message });
    let deep: GrammarSpec = literal("a");
    for (let depth = 0; depth < 100; depth += 1) deep = { kind: "sequence", parts: [deep] };
    assert.throws(() => byteGrammar(deep), { code: "invalid_request", message: /nests more than 32/ });
  });
});
