import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { OctavoError } from "@octavo/protocol/errors";
import { FakeTokenizer } from "../testing/fake-tokenizer.js";
import { GrammarCompiler } from "./grammar-compiler.js";
import type { Grammar, GrammarSpec, JsonValue } from "./grammar.js";

const pieces = [
  ...Array.from({ length: 128 }, (_, code) => String.fromCharCode(code)),
  "<end>",
  "foo",
  "\\d",
  "",
];
const tokenizer = new FakeTokenizer({ pieces, specialTokenIds: [128] });

function open(onCompiled?: (seconds: number, cached: boolean) => void): GrammarCompiler {
  return new GrammarCompiler(tokenizer, { vocabSize: pieces.length + 4, ...(onCompiled && { onCompiled }) });
}

function matches(grammar: Grammar, text: string): boolean {
  const matcher = grammar.start();
  for (const byte of Buffer.from(text)) if (!matcher.accept(byte)) return false;
  return matcher.isComplete;
}

describe("GrammarCompiler", () => {
  it("compiles each content once and says so", async () => {
    const seen: boolean[] = [];
    using compiler = open((seconds, cached) => {
      assert.ok(seconds >= 0);
      seen.push(cached);
    });
    const spec = (): GrammarSpec => ({ kind: "regex", pattern: "a|foo" });
    const [first, second] = await Promise.all([compiler.compile(spec()), compiler.compile(spec())]);
    assert.equal(first, second);
    assert.equal(await compiler.compile(spec()), first);
    assert.notEqual(await compiler.compile({ kind: "regex", pattern: "a|fob" }), first);
    assert.deepEqual(seen, [false, true, true, false]);
    assert.ok(matches(first, "foo") && !matches(first, "fo"));
    assert.equal(first.maskWords, 5);
  });

  it("lets no tenant find what another one sent", async () => {
    const seen: boolean[] = [];
    using compiler = open((_, cached) => void seen.push(cached));
    const spec: GrammarSpec = { kind: "regex", pattern: "secret" };
    const [own, other] = [
      await compiler.compile(spec, undefined, "a"),
      await compiler.compile(spec, undefined, "b"),
    ];
    assert.notEqual(own, other);
    assert.equal(await compiler.compile(spec, undefined, "a"), own);
    assert.deepEqual(seen, [false, false, true]);
  });

  it("refuses what is malformed, and goes on", async () => {
    using compiler = open();
    const bad: readonly (readonly [GrammarSpec, RegExp])[] = [
      [{ kind: "regex", pattern: "(" }, /\(/],
      [{ kind: "choice", choices: [] }, /choices/],
      [{ kind: "grammar", source: "root ::= a" }, /"a", which is not defined/],
      [{ kind: "json_schema", schema: 5 }, /must be an object/],
      [{ kind: "json_schema", schema: { type: "text" } }, /#\/type must be/],
    ];
    for (const [spec, message] of bad) {
      await assert.rejects(compiler.compile(spec), (error) => {
        assert.ok(error instanceof OctavoError && error.code === "invalid_request", String(error));
        assert.match(error.message, message);
        return true;
      });
    }
    assert.ok(matches(await compiler.compile({ kind: "choice", choices: ["x"] }), "x"));
  });

  it("bounds hostile grammars, and others are compiled meanwhile", async () => {
    using compiler = open();
    let deep: JsonValue = { type: "integer" };
    for (let depth = 0; depth < 30_000; depth += 1) deep = { type: "array", items: deep };
    const hostile: readonly GrammarSpec[] = [
      { kind: "json_schema", schema: deep },
      { kind: "regex", pattern: "(".repeat(30_000) + "a" + ")".repeat(30_000) },
      { kind: "grammar", source: `root ::= ${"(".repeat(10_000)}"a"${")".repeat(10_000)}` },
      { kind: "json_schema", schema: { $defs: exponential(40), $ref: "#/$defs/a0" } },
      {
        kind: "json_schema",
        schema: {
          allOf: Array.from({ length: 12 }, () => ({
            anyOf: [{ minimum: 1 }, { maximum: 5 }, { multipleOf: 2 }],
          })),
        },
      },
      { kind: "regex", pattern: "((a{1,1000}){1,1000}){1,1000}b" },
      { kind: "regex", pattern: "(?:a|aa|aaa|aaaa){0,10000}(?=b)[a-z]{5000}" },
      { kind: "regex", pattern: "(.*a.{40}){3}b" },
    ];
    const settled = hostile.map((spec) =>
      compiler.compile(spec).then(
        () => undefined,
        (error: unknown) => error,
      ),
    );
    const fine = await compiler.compile({ kind: "regex", pattern: "(a+)+b" });
    assert.ok(matches(fine, "aaab") && !matches(fine, "aaa"));
    for (const error of await Promise.all(settled))
      assert.ok(
        error === undefined || (error instanceof OctavoError && error.code === "invalid_request"),
        String(error),
      );
    assert.match(String(await settled[0]), /nested/);
  });

  it("refuses a grammar that nests deeper than the stack, wherever that is found out", async () => {
    using compiler = open();
    const properties = Array.from({ length: 200 }, (_, index) => [`p${index}`, { type: "string" }]);
    const schema = { type: "object", properties: Object.fromEntries(properties) as JsonValue };
    const grammar = await compiler.compile({ kind: "json_schema", schema });
    const mask = new Uint32Array(grammar.maskWords);
    const refused = { code: "invalid_request", message: /more work than is allowed/ };
    const matcher = grammar.start();
    assert.ok(matcher.accept("{".charCodeAt(0)));
    assert.throws(() => atEndOfStack(() => matcher.fillMask(mask)), refused);
    assert.throws(() => atEndOfStack(() => matcher.accept('"'.charCodeAt(0))), refused);
    matcher.fillMask(mask);
    assert.ok(matcher.accept('"'.charCodeAt(0)), "the grammar is whole afterwards");
  });

  it("waits no longer than its caller does", async () => {
    using compiler = open();
    await assert.rejects(compiler.compile({ kind: "json_object" }, AbortSignal.abort()), {
      code: "request_cancelled",
    });
    const controller = new AbortController();
    const waiting = compiler.compile({ kind: "json_object" }, controller.signal);
    controller.abort();
    await assert.rejects(waiting, { code: "request_cancelled" });
    assert.ok(matches(await compiler.compile({ kind: "json_object" }), '{"a": []}'));
  });

  it("takes no more once it is disposed", async () => {
    const compiler = open();
    const pending = compiler.compile({ kind: "json_object" });
    compiler[Symbol.dispose]();
    await assert.rejects(pending, { code: "shutting_down" });
    await assert.rejects(compiler.compile({ kind: "json_object" }), { code: "shutting_down" });
  });

  it("lets a literal be the special token that it names, and nothing else", async () => {
    using compiler = open();
    const literal = (await compiler.compile({ kind: "literal", text: "a<end>" })).start();
    assert.ok(literal.accept(97));
    const mask = new Uint32Array(5);
    literal.fillMask(mask);
    assert.equal((mask[4]! >>> 0) & 1, 1, "token 128 is allowed");
    assert.ok(literal.accept(128) && literal.isFinished);
    const text = (await compiler.compile({ kind: "any_text" })).start();
    assert.equal(text.accept(128), false);
    assert.ok(matches(await compiler.compile({ kind: "literal", text: "a<end>" }), "a<end>"));
  });
});

/** Runs with so little of the stack left that going deep fails, and failing does not. */
function atEndOfStack(run: () => unknown): unknown {
  try {
    return atEndOfStack(run);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return run();
  }
}

/** Definitions that each refer twice to the next. */
function exponential(length: number): Record<string, JsonValue> {
  return Object.fromEntries(
    Array.from({ length }, (_, index) => {
      const next = index + 1 < length ? { $ref: `#/$defs/a${index + 1}` } : { type: "integer" };
      return [`a${index}`, { type: "object", properties: { l: next, r: next }, required: ["l", "r"] }];
    }),
  );
}
