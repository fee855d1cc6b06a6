import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { collectGarbage } from "@octavo/protocol/testing/collect-garbage";
import { FakeTokenizer } from "../testing/fake-tokenizer.js";
import { GrammarCompiler } from "./grammar-compiler.js";
import type { Grammar, GrammarSpec } from "./grammar.js";

const pieces = Array.from({ length: 128 }, (_, code) => String.fromCharCode(code));
const tokenizer = new FakeTokenizer({ pieces, specialTokenIds: [] });

function pattern(name: number): GrammarSpec {
  return { kind: "regex", pattern: `${name}[a-z]{0,50}` };
}

/** Writes a text under the grammar, with the mask of each of its places. */
function follow(grammar: Grammar, text: string): void {
  const matcher = grammar.start();
  const mask = new Uint32Array(grammar.maskWords);
  for (const byte of Buffer.from(text)) {
    matcher.fillMask(mask);
    assert.ok(matcher.accept(byte));
  }
}

describe("grammars in the cache", () => {
  it("leave nothing behind when they go", async () => {
    using compiler = new GrammarCompiler(tokenizer, { vocabSize: 128 });
    const refs: WeakRef<Grammar>[] = [];
    for (let name = 0; name < 200; name += 1) {
      const grammar = await compiler.compile(pattern(name));
      follow(grammar, `${name}abcdefgh`);
      refs.push(new WeakRef(grammar));
    }
    const count = (): number => refs.filter((ref) => ref.deref() !== undefined).length;
    await collectGarbage(() => count() === compiler.cached.grammars);
    assert.equal(compiler.cached.grammars, 128);
    assert.equal(count(), 128);
  });

  it("are bounded in memory, as they grow, not in number alone", async () => {
    const grammarCacheBytes = 1024 * 1024;
    using compiler = new GrammarCompiler(tokenizer, { vocabSize: 128, grammarCacheBytes });
    for (let name = 0; name < 40; name += 1) follow(await compiler.compile(pattern(name)), `${name}abcdefgh`);
    const small = compiler.cached.grammars;
    const grown = await compiler.compile({ kind: "regex", pattern: "[a-z]{0,5000}" });
    const before = compiler.cached.bytes;
    follow(grown, "abcdefghij".repeat(40));
    assert.ok(compiler.cached.bytes > before, "what a sequence reaches is counted");
    await compiler.compile(pattern(0));
    assert.ok(compiler.cached.bytes <= grammarCacheBytes, `${compiler.cached.bytes} bytes`);
    assert.ok(compiler.cached.grammars < small, "grown ones leave room for fewer");
  });

  it("of a tenant are not dropped for another's", async () => {
    const seen: boolean[] = [];
    using compiler = new GrammarCompiler(tokenizer, {
      vocabSize: 128,
      grammarCacheBytes: 2 * 1024 * 1024,
      onCompiled: (_, cached) => void seen.push(cached),
    });
    for (let name = 0; name < 4; name += 1) await compiler.compile(pattern(name), undefined, "quiet");
    for (let name = 0; name < 200; name += 1) await compiler.compile(pattern(name), undefined, "busy");
    seen.length = 0;
    for (let name = 0; name < 4; name += 1) await compiler.compile(pattern(name), undefined, "quiet");
    assert.deepEqual(seen, [true, true, true, true]);
    await compiler.compile(pattern(0), undefined, "busy");
    assert.equal(seen.at(-1), false, "the busy one lost its own");
  });
});
