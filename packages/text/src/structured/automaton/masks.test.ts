import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { createTokenizer } from "../../tokenizer/create-tokenizer.js";
import { readTokenizerFolder } from "../../tokenizer/read/tokenizer-folder.js";
import { TestRandom } from "../../testing/random.js";
import { compileRules } from "../compile-rules.js";
import type { Grammar, GrammarSpec } from "../grammar.js";
import { byteGrammar } from "../testing/byte-grammar.js";
import { syntheticVocabulary } from "../testing/synthetic-vocabulary.js";
import { acceptedTokens, allowedTokens, bytesOfToken } from "../testing/walk.js";
import { MaskCache } from "./mask-cache.js";
import { TermGrammar } from "./matcher.js";
import { buildVocabulary, collectTokenBytes, type GrammarVocabulary } from "./vocabulary.js";

const person = {
  type: "object",
  properties: {
    name: { type: "string", minLength: 1, maxLength: 12 },
    age: { type: "integer", minimum: 0, maximum: 120 },
    bio: { type: "string" },
    tags: { type: "array", items: { enum: ["a", "ab", "abc"] }, maxItems: 3 },
  },
  required: ["name"],
  additionalProperties: { type: "number" },
};
const specs: readonly (readonly [string, GrammarSpec])[] = [
  ["an object with bounded and free strings", { kind: "json_schema", schema: person }],
  ["any JSON object", { kind: "json_object" }],
  [
    "a string under a pattern and a length",
    { kind: "json_schema", schema: { type: "string", pattern: "^[a-z ]+\\d?$", maxLength: 9 } },
  ],
  ["a counted regular expression", { kind: "regex", pattern: "(?:[a-m]+ ){2,5}[0-9]*" }],
  ["choices with common beginnings", { kind: "choice", choices: ["ba", "bababa", "bo", "été"] }],
  ["a recursive grammar", { kind: "grammar", source: 'root ::= "(" root* ")" | [a-z]+' }],
  [
    "an ambiguous grammar",
    { kind: "grammar", source: 'root ::= (a | b)+\na ::= [a-z]{1,3}\nb ::= [a-f]{2} " "?' },
  ],
  [
    "text with tags",
    {
      kind: "tagged_text",
      triggers: ["<f", "<|end|>"],
      tags: [
        { begin: "<f=", content: { kind: "json_schema", schema: { type: "integer" } }, end: ">" },
        { begin: "<|end|>", content: { kind: "literal", text: "x" }, end: "" },
      ],
    },
  ],
];

async function octavoMini(): Promise<GrammarVocabulary> {
  const folder = fileURLToPath(new URL("../../../../../models/octavo-mini", import.meta.url));
  const tokenizer = createTokenizer(readTokenizerFolder(folder));
  const { bytes, starts } = await collectTokenBytes(tokenizer, tokenizer.vocabSize, () => nextTurn());
  return buildVocabulary(bytes, starts);
}

const vocabularies: readonly (readonly [string, () => Promise<GrammarVocabulary>, number])[] = [
  ["octavo-mini's vocabulary", octavoMini, 10],
  ["a synthetic vocabulary", () => Promise.resolve(syntheticVocabulary(20_000)), 6],
];

for (const [name, open, numSteps] of vocabularies) {
  describe(`masks over ${name}`, () => {
    for (const [specName, spec] of specs) {
      it(`hold the tokens that are accepted one by one: ${specName}`, async () => {
        const vocabulary = await open();
        const random = new TestRandom(7);
        const grammar: Grammar = new TermGrammar(
          compileRules(spec, new Set(["<|end|>"])),
          vocabulary,
          new MaskCache(1 << 24),
        );
        const matcher = grammar.start();
        for (let step = 0; step < numSteps; step += 1) {
          const allowed = allowedTokens(matcher, vocabulary);
          assert.deepEqual(
            allowed,
            acceptedTokens(matcher, vocabulary),
            `after ${matcher.numAccepted} tokens`,
          );
          if (allowed.length === 0) {
            assert.ok(matcher.isFinished);
            break;
          }
          if (allowed.length === 1 && !matcher.isComplete) assert.equal(matcher.forcedToken(), allowed[0]);
          else assert.equal(matcher.forcedToken(), undefined);
          // Long tokens show more than the bytes that begin most lists.
          const long = allowed.filter((token) => bytesOfToken(vocabulary, token).length > 1);
          const choices = long.length > 0 && random.next() < 0.8 ? long : allowed;
          assert.ok(matcher.accept(choices[random.below(choices.length)]!));
        }
      });
    }
  });
}

describe("a matcher", () => {
  const vocabulary = syntheticVocabulary(1000);
  const open = (spec: GrammarSpec): Grammar =>
    new TermGrammar(compileRules(spec, new Set()), vocabulary, new MaskCache(1 << 20));

  it("goes back and is copied with what it has accepted", () => {
    const matcher = open({ kind: "json_schema", schema: person }).start();
    const texts = ['{"name":', '{"name": "B"', '{"name": "B", "age": 1'];
    const masks: number[][] = [];
    let done = 0;
    for (const text of texts) {
      for (const byte of Buffer.from(text.slice(done))) assert.ok(matcher.accept(byte));
      done = text.length;
      masks.push(allowedTokens(matcher, vocabulary));
    }
    const copy = matcher.clone();
    matcher.rollback(texts[2]!.length - texts[0]!.length);
    assert.equal(matcher.numAccepted, texts[0]!.length);
    assert.deepEqual(allowedTokens(matcher, vocabulary), masks[0]);
    assert.deepEqual(allowedTokens(copy, vocabulary), masks[2]);
    for (const byte of Buffer.from(texts[1]!.slice(texts[0]!.length))) assert.ok(matcher.accept(byte));
    assert.deepEqual(allowedTokens(matcher, vocabulary), masks[1]);
    copy.rollback(1000);
    assert.equal(copy.numAccepted, 0);
  });

  it("stays where it was when a token is not allowed, unknown or without bytes", () => {
    const matcher = open({ kind: "choice", choices: ["ab"] }).start();
    for (const token of [-1, 1.5, Number.NaN, 1000, 5000, "b".charCodeAt(0), 999])
      assert.equal(matcher.accept(token), false);
    assert.equal(matcher.numAccepted, 0);
    assert.ok(matcher.accept("a".charCodeAt(0)));
    assert.equal(matcher.isComplete, false);
    assert.equal(matcher.forcedToken(), "b".charCodeAt(0));
    assert.ok(matcher.accept("b".charCodeAt(0)));
    assert.ok(matcher.isComplete && matcher.isFinished);
    assert.deepEqual(allowedTokens(matcher, vocabulary), []);
  });

  it("gives the same masks when the first one is made in parts, others between them", () => {
    let numParts = 0;
    const many = Array.from({ length: 3000 }, (_, index) => `name ${(index * 7919) % 10_007}`);
    for (const spec of [
      { kind: "choice", choices: many },
      { kind: "json_schema", schema: person },
      { kind: "json_schema", schema: { enum: many } },
      { kind: "any_text" },
    ] satisfies readonly GrammarSpec[]) {
      const rules = compileRules(spec, new Set());
      const warmed = new TermGrammar(rules, vocabulary, new MaskCache(1 << 24));
      const plain = new TermGrammar(rules, vocabulary, new MaskCache(1 << 24)).start();
      const beside = warmed.start();
      for (const byte of Buffer.from(spec.kind === "choice" ? "name " : '"nam'))
        if (!beside.accept(byte)) break;
      for (const parts = warmed.warm(); parts.next().done !== true; numParts += 1) {
        // The walk that is ahead shares the store, not the position in the walk.
        allowedTokens(beside, vocabulary);
        beside.rollback(1);
      }
      const matcher = warmed.start();
      const random = new TestRandom(3);
      for (let step = 0; step < 8; step += 1) {
        const allowed = allowedTokens(matcher, vocabulary);
        assert.deepEqual(allowed, allowedTokens(plain, vocabulary));
        if (allowed.length === 0) break;
        const token = allowed[random.below(allowed.length)]!;
        assert.ok(matcher.accept(token) && plain.accept(token));
      }
    }
    assert.ok(numParts > 0);
  });

  it("makes masks in parts of bounded work over a large vocabulary", () => {
    const large = syntheticVocabulary(60_000);
    for (const spec of [
      {
        kind: "json_schema",
        schema: { type: "string", pattern: "^(?!.*foo)[a-z ,.]{3,90}bar$", maxLength: 80 },
      },
      { kind: "regex", pattern: "(?:[a-z]+[0-9]*[ ,.;]?)*(?:foo|bar)?[\\w ]{5,120}" },
    ] satisfies readonly GrammarSpec[]) {
      const rules = compileRules(spec, new Set());
      const inParts = new TermGrammar(rules, large, new MaskCache(1 << 26)).start();
      const atOnce = new TermGrammar(rules, large, new MaskCache(1 << 26)).start();
      const random = new TestRandom(9);
      let numParts = 0;
      for (let step = 0; step < 8; step += 1) {
        for (const units of inParts.preparing()) {
          numParts += 1;
          assert.ok(units <= 8192, `${units} units`);
        }
        const allowed = allowedTokens(inParts, large);
        assert.deepEqual(allowed, allowedTokens(atOnce, large));
        const token = allowed[random.below(allowed.length)]!;
        assert.ok(inParts.accept(token) && atOnce.accept(token));
      }
      assert.ok(numParts > 100, `${numParts} parts`);
    }
  });

  it("knows each of many choices, and nothing between them", () => {
    const random = new TestRandom(5);
    const letters = (): string =>
      Array.from({ length: random.below(6) }, () => "ab\u00e9{"[random.below(4)]).join("");
    const choices = Array.from({ length: 300 }, letters);
    const takes = byteGrammar({ kind: "choice", choices });
    const known = new Set(choices);
    for (const choice of choices) assert.ok(takes(choice), choice);
    for (let probe = 0; probe < 2000; probe += 1) {
      const text = letters();
      assert.equal(takes(text), known.has(text), text);
    }
  });

  it("gives the same masks when the cache holds next to nothing", () => {
    const rules = compileRules({ kind: "json_schema", schema: person }, new Set());
    const tight = new TermGrammar(rules, vocabulary, new MaskCache(1)).start();
    const roomy = new TermGrammar(rules, vocabulary, new MaskCache(1 << 24)).start();
    for (const byte of Buffer.from('{"name": "Bo", "age": 12, "x": 1.5}')) {
      assert.deepEqual(allowedTokens(tight, vocabulary), allowedTokens(roomy, vocabulary));
      assert.ok(tight.accept(byte) && roomy.accept(byte));
    }
  });
});
