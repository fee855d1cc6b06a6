import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { collectGarbage } from "@octavo/protocol/testing/collect-garbage";
import { type AutomatonMasks, MaskCache } from "./mask-cache.js";
import { Term } from "./term.js";

const terms = Array.from({ length: 100 }, (_, id) => new Term(id, "bytes", false));
const words = 64;
const maskBytes = 512 + 4 * words;

function fill(masks: AutomatonMasks, from: number, count: number): void {
  for (const term of terms.slice(from, from + count)) masks.setWhole(term, new Uint32Array(words));
}

function kept(masks: AutomatonMasks): number {
  return terms.filter((term) => masks.whole(term) !== undefined).length;
}

describe("MaskCache", () => {
  it("counts whole and local masks, each once, with what they take beside their contents", () => {
    const cache = new MaskCache(Infinity);
    const masks = cache.open();
    fill(masks, 0, 3);
    fill(masks, 0, 3);
    assert.equal(cache.bytes, 3 * maskBytes);
    const local = { tokens: new Uint32Array(words), exits: new Int32Array(5), trie: {} as never };
    masks.setLocal(terms[0]!, local);
    assert.equal(cache.bytes, 4 * maskBytes + 20);
    assert.equal(masks.local(terms[0]!), local);
    assert.ok(masks.whole(terms[0]!) instanceof Uint32Array);
  });

  it("drops what was used least recently, of the automaton used least recently", () => {
    const cache = new MaskCache(10 * maskBytes);
    const [first, second] = [cache.open(), cache.open()];
    fill(first, 0, 5);
    fill(second, 0, 5);
    assert.ok(first.whole(terms[0]!));
    fill(first, 50, 2);
    assert.equal(second.whole(terms[1]!), undefined);
    assert.equal(kept(second), 3);
    assert.equal(kept(first), 7);
    assert.equal(cache.bytes, 10 * maskBytes);
    fill(second, 50, 20);
    assert.equal(kept(first), 0);
    assert.equal(kept(second), 10);
    assert.ok(second.whole(terms[69]!));
  });

  it("lets no tenant take another's masks while it has more itself", () => {
    const cache = new MaskCache(20 * maskBytes);
    const quiet = cache.open("quiet");
    fill(quiet, 0, 10);
    const busy = Array.from({ length: 20 }, () => cache.open("busy"));
    for (const masks of busy) fill(masks, 0, 30);
    assert.equal(kept(quiet), 10);
    assert.equal(cache.bytes, 20 * maskBytes);
  });

  it("keeps the latest mask even where it has no room", () => {
    const cache = new MaskCache(1);
    const masks = cache.open();
    fill(masks, 0, 3);
    assert.equal(kept(masks), 1);
    assert.ok(masks.whole(terms[2]!));
  });

  it("holds nothing of an automaton that nobody uses any more", async () => {
    const cache = new MaskCache(Infinity);
    const open = cache.open();
    fill(open, 0, 1);
    const refs = Array.from({ length: 20 }, () => {
      const masks = cache.open();
      const term = new Term(0, "bytes", false);
      masks.setWhole(term, new Uint32Array(words));
      return [new WeakRef(masks), new WeakRef(term)];
    }).flat();
    await collectGarbage(() => cache.bytes === maskBytes);
    assert.equal(refs.filter((ref) => ref.deref() !== undefined).length, 0);
    assert.equal(cache.bytes, maskBytes);
    assert.ok(open.whole(terms[0]!));
  });
});
