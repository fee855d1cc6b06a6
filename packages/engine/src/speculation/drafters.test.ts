import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { draftOf, singleSequence } from "../testing/drafters/draft-fixture.js";
import { TestRandom } from "@octavo/text/testing/random";
import { NgramDrafter } from "./ngram-drafter.js";
import { SuffixDrafter, type SuffixOptions } from "./suffix-drafter.js";

const suffixOptions: SuffixOptions = {
  maxTreeDepth: 24,
  maxCachedRequests: 100,
  maxSpecFactor: 1,
  minTokenProb: 0.1,
};

describe("prompt lookup", () => {
  test("continues as after the earlier occurrence of the last tokens", async () => {
    const drafter = new NgramDrafter({ promptLookupMin: 2, promptLookupMax: 3 });
    const sequence = singleSequence([1, 2, 3, 4, 5, 6, 7, 1, 9], [3, 4]);
    assert.deepEqual((await draftOf(drafter, sequence, 3)).tokens, [5, 6, 7]);
    sequence.tokens.push(5);
    assert.deepEqual((await draftOf(drafter, sequence, 5)).tokens, [6, 7, 1, 9, 3]);
    sequence.tokens.push(1);
    assert.deepEqual((await draftOf(drafter, sequence, 5)).tokens, []);
  });

  test("prefers the longer match, and the newer one among equals", async () => {
    const drafter = new NgramDrafter({ promptLookupMin: 1, promptLookupMax: 3 });
    const long = singleSequence([1, 2, 3, 40, 9, 3, 50, 8, 2, 3, 60], [1, 2, 3]);
    assert.deepEqual((await draftOf(drafter, long, 1)).tokens, [40]);
    const newer = singleSequence([7, 3, 40, 8, 3, 50, 9], [3]);
    assert.deepEqual((await draftOf(drafter, newer, 1)).tokens, [50]);
  });

  test("follows a text that repeats itself beyond its end", async () => {
    const drafter = new NgramDrafter({ promptLookupMin: 2, promptLookupMax: 2 });
    const sequence = singleSequence([5, 6, 7], [5, 6, 7]);
    assert.deepEqual((await draftOf(drafter, sequence, 8)).tokens, [5, 6, 7, 5, 6, 7, 5, 6]);
  });

  test("is the surer the longer the match", async () => {
    const drafter = new NgramDrafter({ promptLookupMin: 1, promptLookupMax: 20 });
    const text = Array.from({ length: 20 }, (_, index) => 100 + index);
    const confidences: number[] = [];
    for (const length of [1, 4, 8, 16]) {
      const sequence = singleSequence([...text, 1, 2], text.slice(0, length));
      confidences.push((await draftOf(drafter, sequence, 1)).confidence);
    }
    assert.deepEqual(confidences, [0, 1, 2, 3]);
  });

  test("drafts nothing for texts that are too short or do not repeat", async () => {
    const drafter = new NgramDrafter({ promptLookupMin: 5, promptLookupMax: 5 });
    assert.deepEqual((await draftOf(drafter, singleSequence([1]), 5)).tokens, []);
    const unique = singleSequence(Array.from({ length: 500 }, (_, index) => index));
    assert.deepEqual((await draftOf(drafter, unique, 5)).tokens, []);
  });
});

describe("suffix decoding", () => {
  test("drafts no more tokens than the match length times a factor", async () => {
    const text = [1, 2, 3, 4, 5, 6, 7, 8, 9];
    const sequence = singleSequence([...text, 20], [1, 2, 3]);
    assert.deepEqual((await draftOf(new SuffixDrafter(suffixOptions), sequence, 9)).tokens, [4, 5, 6]);
    const eager = new SuffixDrafter({ ...suffixOptions, maxSpecFactor: 2 });
    assert.deepEqual((await draftOf(eager, sequence, 9)).tokens, [4, 5, 6, 7, 8, 9]);
    assert.deepEqual((await draftOf(eager, sequence, 2)).tokens, [4, 5]);
    const shallow = new SuffixDrafter({ ...suffixOptions, maxTreeDepth: 2 });
    assert.deepEqual((await draftOf(shallow, sequence, 9)).tokens, [4, 5]);
  });

  test("follows the most frequent continuation while it is likely enough", async () => {
    const prompt = [1, 2, 3, 70, 1, 2, 3, 80, 1, 2, 3, 70, 1, 2, 3, 90, 0];
    const sequence = singleSequence(prompt, [1, 2, 3]);
    const drafter = (minTokenProb: number) =>
      new SuffixDrafter({ ...suffixOptions, minTokenProb, maxSpecFactor: 3 });
    assert.deepEqual((await draftOf(drafter(0.6), sequence, 3)).tokens, []);
    assert.deepEqual((await draftOf(drafter(0.4), sequence, 3)).tokens, [70, 1, 2]);
  });

  test("remembers what earlier requests were answered", async () => {
    const drafter = new SuffixDrafter(suffixOptions);
    const answer = [10, 11, 12, 13, 14, 15, 16, 17];
    drafter.release(singleSequence([1, 2, 3], answer));
    const later = singleSequence([7, 8, 9], [10, 11, 12, 13]);
    assert.deepEqual((await draftOf(drafter, later, 9)).tokens, [14, 15, 16, 17]);
    // The end of the prompt leads to the first token of the answer.
    assert.deepEqual((await draftOf(drafter, singleSequence([1, 2, 3]), 9)).tokens, [10, 11, 12]);
  });

  test("keeps private requests and adapters apart", async () => {
    const drafter = new SuffixDrafter(suffixOptions);
    const answer = [10, 11, 12, 13, 14, 15, 16, 17];
    const adapter = (id: number) => ({ adapter: { name: "same", id } });
    const continues = async (group: object): Promise<boolean> =>
      (await draftOf(drafter, singleSequence([7, 8, 9], answer.slice(0, 4), group), 3)).tokens.length > 0;
    drafter.release(singleSequence([1], answer, { cacheSalt: "mine" }));
    assert.equal(drafter.numSharedTokens, 0);
    assert.equal(await continues({ cacheSalt: "mine" }), false);
    drafter.release(singleSequence([1], answer, adapter(1)));
    assert.deepEqual(
      [await continues(adapter(1)), await continues(adapter(2)), await continues({})],
      [true, false, false],
    );
    drafter.release(singleSequence([1], answer));
    assert.deepEqual(
      [await continues({}), await continues({ cacheSalt: "mine" }), await continues(adapter(2))],
      [true, false, false],
    );
    const scoped = (cacheScope: string) => ({ account: { tenant: "t", cacheScope } });
    assert.equal(await continues(scoped("a")), false);
    drafter.release(singleSequence([1], answer, scoped("a")));
    assert.deepEqual([await continues(scoped("a")), await continues(scoped("b"))], [true, false]);
  });

  test("forgets the oldest requests, and the adapters unused for longest", async () => {
    const drafter = new SuffixDrafter({ ...suffixOptions, maxCachedRequests: 3 });
    const random = new TestRandom(3);
    const answers = Array.from({ length: 12 }, () =>
      Array.from({ length: 20 }, () => random.below(1_000_000)),
    );
    for (const answer of answers) drafter.release(singleSequence([1], answer));
    const known: boolean[] = [];
    for (const answer of answers)
      known.push((await draftOf(drafter, singleSequence([2], answer.slice(0, 6)), 4)).tokens.length > 0);
    assert.deepEqual(known, [...Array.from({ length: 9 }, () => false), true, true, true]);
    assert.ok(drafter.numSharedTokens <= 3 * 22);
    for (let id = 1; id <= 200; id += 1)
      drafter.release(singleSequence([1], answers[0], { adapter: { name: "a", id } }));
    assert.ok(drafter.numSharedTokens <= 8 * 22, `${drafter.numSharedTokens} tokens`);
    const none = new SuffixDrafter({ ...suffixOptions, maxCachedRequests: 0 });
    none.release(singleSequence([1], answers[0]));
    assert.equal(none.numSharedTokens, 0);
  });

  test("prefers the sequence's own text unless earlier answers promise more", async () => {
    const drafter = new SuffixDrafter(suffixOptions);
    drafter.release(singleSequence([0], [5, 1, 2, 3, 30, 31, 32, 33]));
    const own = singleSequence([9, 1, 2, 3, 40, 41, 42], [1, 2, 3]);
    assert.deepEqual((await draftOf(drafter, own, 3)).tokens, [40, 41, 42]);
    const other = singleSequence([9, 2, 3, 40, 41, 42], [5, 1, 2, 3]);
    assert.deepEqual((await draftOf(drafter, other, 4)).tokens, [30, 31, 32, 33]);
  });
});
