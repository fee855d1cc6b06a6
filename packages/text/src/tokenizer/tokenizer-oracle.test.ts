import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as fc from "fast-check";
import {
  contenders,
  fixtureNames,
  hostileTexts,
  readFixture,
  skipWithoutReference,
  type Contenders,
} from "./testing/contenders.js";

/** Fragments that make random text meet the tokenizers' special cases. */
const fragments = [
  " ",
  "  ",
  "\n",
  "\r\n",
  "\t",
  "\u00a0",
  "\u0085",
  "\u3000",
  "a",
  "Z",
  "ab",
  "the",
  " the",
  "Ing",
  "'s",
  "'LL",
  "é",
  "e\u0301",
  "ß",
  "ſ",
  "İ",
  "1",
  "12",
  "٣",
  ".",
  ",",
  "!!",
  "_",
  "-",
  "/",
  "<",
  "|",
  ">",
  "{",
  "字",
  "の",
  "ア",
  "한",
  "س",
  "ש",
  "ห",
  "ा",
  "\u0301",
  "\u200d",
  "\ufe0f",
  "😀",
  "👩‍🚀",
  "🇩🇪",
  "𝒳",
  "\ud83d",
  "\udc00",
  "\u0000",
  "\u001b",
  "\ufeff",
  "\ufffd",
  "▁",
  "<s>",
  "</s>",
  "<unk>",
  "<0x41>",
  "<|im_start|>",
  "<|im_end|>",
  "<|endoftext|>",
  "<think>",
  "<|eot_id|>",
];
/** Blocks that Unicode has long left alone: Node's tables and the reference's agree on them. */
const blocks: readonly (readonly [number, number])[] = [
  [0x0, 0x24f],
  [0x300, 0x36f],
  [0x3a3, 0x52f],
  [0x5d0, 0x5ea],
  [0x620, 0x66f],
  [0x900, 0x97f],
  [0x2000, 0x206f],
  [0x3041, 0x30ff],
  [0x4e00, 0x9fa5],
  [0xac00, 0xdfff],
  [0xff00, 0xff5e],
  [0x1f300, 0x1f64f],
];
const hostileCharacter = fc
  .constantFrom(...blocks)
  .chain(([first, last]) => fc.integer({ min: first, max: last }))
  .map((codePoint) => String.fromCodePoint(codePoint));
const hostileText = fc
  .array(
    fc.oneof(
      { weight: 2, arbitrary: fc.constantFrom(...fragments) },
      { weight: 1, arbitrary: hostileCharacter },
    ),
    { maxLength: 24 },
  )
  .map((parts) => parts.join(""));

async function assertSameIds(
  { ours, reference }: Contenders,
  text: string,
  addSpecialTokens: boolean,
): Promise<void> {
  const expected = (
    await reference.encode(text.replace(/\p{Surrogate}/gu, "\ufffd"), null, { addSpecialTokens })
  ).getIds();
  const actual = [...ours.encode(text, { addSpecialTokens })];
  assert.deepEqual(actual, expected, `ids differ for ${JSON.stringify(text.slice(0, 200))}`);
}

async function assertSameText(
  { ours, reference }: Contenders,
  ids: readonly number[],
  skipSpecialTokens: boolean,
): Promise<void> {
  const expected = await reference.decode([...ids], skipSpecialTokens);
  assert.equal(ours.decode(ids, { skipSpecialTokens }), expected, `text differs for ids ${ids.join(" ")}`);
}

for (const name of fixtureNames) {
  describe(`the ${name} tokenizer, against Hugging Face's`, { skip: skipWithoutReference }, () => {
    const { ours, reference } = contenders(readFixture(name));
    const both = { ours, reference };

    it("gives the same ids for hostile texts", async () => {
      for (const text of hostileTexts) {
        await assertSameIds(both, text, true);
        await assertSameIds(both, text, false);
      }
    });

    it("gives the same ids for random texts", async () => {
      await fc.assert(
        fc.asyncProperty(hostileText, (text) => assertSameIds(both, text, false)),
        { seed: 20_240_601, numRuns: 400 },
      );
    });

    it("decodes hostile texts and random ids to the same text", async () => {
      for (const text of hostileTexts) {
        const ids = [...both.ours.encode(text)];
        await assertSameText(both, ids, true);
        await assertSameText(both, ids, false);
      }
      const randomIds = fc.array(fc.nat(both.ours.vocabSize + 3), { maxLength: 40 });
      await fc.assert(
        fc.asyncProperty(randomIds, fc.boolean(), (ids, skip) => assertSameText(both, ids, skip)),
        { seed: 20_240_602, numRuns: 300 },
      );
    });

    it("has the same vocabulary", () => {
      const size = both.reference.getVocabSize(true);
      assert.equal(both.ours.vocabSize, size);
      for (let id = 0; id < size; id++) {
        const token = both.reference.idToToken(id);
        assert.equal(both.ours.idToToken(id), token ?? undefined);
        if (token !== null) assert.equal(both.ours.tokenToId(token), both.reference.tokenToId(token));
      }
      assert.equal(both.ours.idToToken(size), undefined);
    });

    it("streams the text that decode gives, in whole characters", () => {
      const check = (ids: readonly number[], skipSpecialTokens: boolean): void => {
        const detokenizer = ours.createDetokenizer({ skipSpecialTokens });
        const pieces = ids.map((id) => detokenizer.push(id));
        pieces.push(detokenizer.flush());
        for (const piece of pieces)
          assert.ok(!/\p{Surrogate}/u.test(piece), `half a character in ${JSON.stringify(piece)}`);
        assert.equal(pieces.join(""), ours.decode(ids, { skipSpecialTokens }));
      };
      for (const text of hostileTexts) check([...ours.encode(text)], false);
      fc.assert(fc.property(fc.array(fc.nat(ours.vocabSize - 1), { maxLength: 60 }), fc.boolean(), check), {
        seed: 20_240_603,
        numRuns: 300,
      });
    });
  });
}
