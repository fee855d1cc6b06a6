import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  contenders,
  hostileTexts,
  readFixture,
  skipWithoutReference,
  type FixtureName,
} from "./testing/contenders.js";

type Json = Readonly<Record<string, unknown>>;

/** A fixture with some of its parts replaced. */
function variant(name: FixtureName, parts: Json): string {
  return JSON.stringify({ ...(JSON.parse(readFixture(name)) as Json), ...parts });
}

const texts = [
  ...hostileTexts.filter((text) => text.length <= 400),
  "a-b--c---d e - f",
  "İSTANBUL ΟΔΟΣ ẞ ǅ",
  "Ünïcödé Ä e\u0301",
];

/** Unknown tokens and their texts differ in what a decoder sees, so ids say it all. */
async function assertSameEncoding(content: string, more: readonly string[] = []): Promise<void> {
  const { ours, reference } = contenders(content);
  for (const text of [...texts, ...more]) {
    const expected = (await reference.encode(text.replace(/\p{Surrogate}/gu, "\ufffd"), null)).getIds();
    assert.deepEqual([...ours.encode(text)], expected, JSON.stringify(text.slice(0, 200)));
  }
}

async function assertSameDecoding(content: string): Promise<void> {
  const { ours, reference } = contenders(content);
  for (const text of texts) {
    const ids = [...ours.encode(text, { addSpecialTokens: false })];
    if (ids.length === 0) continue;
    for (const skip of [true, false]) {
      assert.equal(
        ours.decode(ids, { skipSpecialTokens: skip }),
        await reference.decode(ids, skip),
        JSON.stringify(text),
      );
    }
    const detokenizer = ours.createDetokenizer();
    const pieces = [...ids.map((id) => detokenizer.push(id)), detokenizer.flush()];
    assert.equal(pieces.join(""), ours.decode(ids));
  }
}

const behaviors = ["Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"];
const byteLevel = { type: "ByteLevel", add_prefix_space: false, trim_offsets: true, use_regex: false };

describe("pre-tokenizers, against Hugging Face's", { skip: skipWithoutReference }, () => {
  const steps: Json[] = [
    { type: "ByteLevel", add_prefix_space: true, trim_offsets: true, use_regex: true },
    { type: "Digits", individual_digits: true },
    { type: "Digits", individual_digits: false },
    { type: "Whitespace" },
    { type: "WhitespaceSplit" },
    { type: "CharDelimiterSplit", delimiter: "-" },
    ...behaviors.map((behavior) => ({ type: "Punctuation", behavior })),
    ...behaviors.flatMap((behavior) =>
      [false, true].flatMap((invert) => [
        { type: "Split", pattern: { String: "-" }, behavior, invert },
        { type: "Split", pattern: { Regex: "\\s+" }, behavior, invert },
      ]),
    ),
    { type: "Split", pattern: { Regex: "x*" }, behavior: "Isolated", invert: false },
    {
      type: "Split",
      pattern: { Regex: "(?<=[a-z])(?=[A-Z])|(?<!\\d)\\.(?!\\d)" },
      behavior: "Isolated",
      invert: false,
    },
    {
      type: "Split",
      pattern: { Regex: "(?i)the|\\bhe\\b|[[:punct:]&&[^.]]+|[^\\x00-\\x7F]{2,3}" },
      behavior: "Isolated",
      invert: false,
    },
    {
      type: "Split",
      pattern: { Regex: "(?>a|ab)c|(?:\\p{L}\\p{M}*)+?(?=\\s|\\z)|\\h+$" },
      behavior: "Isolated",
      invert: false,
    },
    {
      type: "Split",
      pattern: { Regex: " ?[^(\\s|[.,!?…。，、।۔،])]+" },
      behavior: "Isolated",
      invert: false,
    },
    {
      type: "Split",
      pattern: { Regex: "\\p{Han}+|\\p{Hiragana}+|\\p{^L}|(?x: \\d{1,2} # two\n )" },
      behavior: "Isolated",
      invert: false,
    },
    { type: "Split", pattern: { Regex: "\\d{1,3}(?=(?:\\d{3})*\\b)" }, behavior: "Isolated", invert: false },
    { type: "Split", pattern: { Regex: "(?=(\\d{3})+(?!\\d))" }, behavior: "Isolated", invert: false },
    {
      type: "Split",
      pattern: { Regex: "[^\\r\\n\\p{L}\\p{N}]?(?:\\p{L}\\p{M}*(?: \\p{L}\\p{M}*)*)+|\\p{N}{1,3}+|.\\R?" },
      behavior: "Isolated",
      invert: false,
    },
  ];
  for (const step of steps) {
    it(`cuts as ${JSON.stringify(step)}`, async () => {
      const preTokenizer =
        step["type"] === "ByteLevel" ? step : { type: "Sequence", pretokenizers: [step, byteLevel] };
      await assertSameEncoding(variant("gpt2", { pre_tokenizer: preTokenizer }), [
        "1234567 12 123 1234.5 0x1F",
        "abcab ac",
      ]);
    });
  }

  it("cuts after the byte alphabet when that is not the last step", async () => {
    const pretokenizers = [
      byteLevel,
      { type: "Split", pattern: { String: "Ġ" }, behavior: "MergedWithNext", invert: false },
    ];
    await assertSameEncoding(variant("gpt2", { pre_tokenizer: { type: "Sequence", pretokenizers } }));
  });

  for (const scheme of ["always", "first", "never"]) {
    for (const split of [true, false]) {
      it(`marks spaces with the scheme ${scheme}, ${split ? "cut" : "whole"}`, async () => {
        const metaspace = { type: "Metaspace", replacement: "▁", prepend_scheme: scheme, split };
        await assertSameEncoding(variant("llama2-metaspace", { pre_tokenizer: metaspace }));
        await assertSameEncoding(variant("unigram-bytes", { pre_tokenizer: metaspace }));
      });
    }
  }
});

describe("normalisers, against Hugging Face's", { skip: skipWithoutReference }, () => {
  const steps: Json[] = [
    ...["NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents"].map((type) => ({ type })),
    { type: "Sequence", normalizers: [{ type: "NFD" }, { type: "StripAccents" }, { type: "Lowercase" }] },
    { type: "Strip", strip_left: true, strip_right: false },
    { type: "Strip", strip_left: true, strip_right: true },
    { type: "Prepend", prepend: ">>" },
    { type: "Replace", pattern: { String: "e" }, content: "$&EE" },
    { type: "Replace", pattern: { Regex: "\\s+" }, content: " " },
  ];
  for (const normalizer of steps) {
    it(`normalises as ${JSON.stringify(normalizer)}`, () =>
      assertSameEncoding(variant("gpt2", { normalizer })));
  }

  it("maps text to the byte alphabet", () =>
    assertSameEncoding(variant("gpt2", { normalizer: { type: "ByteLevel" }, pre_tokenizer: null })));
});

describe("added tokens, against Hugging Face's", { skip: skipWithoutReference }, () => {
  const flags = { single_word: false, lstrip: false, rstrip: false, normalized: false, special: false };
  const token = (id: number, content: string, more: Json = {}): Json => ({ id, content, ...flags, ...more });
  const base = JSON.parse(readFixture("gpt2")) as { readonly added_tokens: readonly Json[] };
  const added = [
    ...base.added_tokens,
    token(701, "<mask>", { lstrip: true, special: true }),
    token(702, "<sep>", { rstrip: true }),
    token(703, "<both>", { lstrip: true, rstrip: true }),
    token(704, "word", { single_word: true }),
    token(705, "Yesterday", { normalized: true }),
    token(706, "Ünï", { normalized: true, special: true }),
    token(707, "<|a"),
    token(708, "<|a|>"),
    token(709, "  "),
    token(710, "\n\n", { rstrip: true }),
  ];
  const samples = [
    "a <mask> b<mask>c  <mask>  <mask>",
    "x <sep>  y<sep>\n\nz <both>  <both> w",
    "word words sword a word. word\u200dx éword 字word word1 _word word_",
    "yesterday YESTERDAY Yesterday ÜNÏ ünï Ünïx",
    "<|a <|a| <|a|> <|a|>|> <<|a|>",
    "    x   y\n\n\n\n  z <sep>    w",
  ];

  it("finds them as their flags say", () =>
    assertSameEncoding(variant("gpt2", { added_tokens: added }), samples));

  it("finds normalised ones in normalised text", async () => {
    const content = variant("gpt2", { added_tokens: added, normalizer: { type: "Lowercase" } });
    await assertSameEncoding(content, samples);
    const { ours, reference } = contenders(content);
    const ids = [705, 706, 704, 39];
    assert.equal(ours.decode(ids, { skipSpecialTokens: false }), await reference.decode(ids, false));
    assert.equal(ours.decode(ids), "yesterdaywordH");
  });

  it("keeps the declared ids where they leave a gap", () => {
    const { ours } = contenders(
      variant("gpt2", { added_tokens: [...base.added_tokens, token(900, "<far>")] }),
    );
    assert.equal(ours.tokenToId("<far>"), 900);
    assert.equal(ours.vocabSize, 901);
    assert.equal(ours.idToToken(850), undefined);
    assert.deepEqual([...ours.encode("<far>")], [900]);
  });
});

describe("models, against Hugging Face's", { skip: skipWithoutReference }, () => {
  const bpe = (model: Json): string =>
    JSON.stringify({
      version: "1.0",
      added_tokens: [],
      normalizer: null,
      pre_tokenizer: { type: "WhitespaceSplit" },
      post_processor: null,
      decoder: { type: "BPEDecoder", suffix: "</w>" },
      model: {
        type: "BPE",
        dropout: null,
        unk_token: null,
        continuing_subword_prefix: null,
        end_of_word_suffix: null,
        fuse_unk: false,
        byte_fallback: false,
        ...model,
      },
    });

  it("takes prefixes and suffixes of subwords", async () => {
    const vocab = {
      a: 0,
      b: 1,
      "##a": 2,
      "##b": 3,
      "##b</w>": 4,
      "a</w>": 5,
      "##a</w>": 6,
      ab: 7,
      "ab</w>": 8,
      "##ab</w>": 9,
      "<unk>": 10,
    };
    const merges = [
      ["a", "##b"],
      ["a", "##b</w>"],
      ["##a", "##b</w>"],
    ];
    const content = bpe({
      vocab,
      merges,
      unk_token: "<unk>",
      continuing_subword_prefix: "##",
      end_of_word_suffix: "</w>",
    });
    await assertSameEncoding(content, ["ab aab abab a b ba axb"]);
    await assertSameDecoding(content);
  });

  for (const fuse of [true, false]) {
    it(`writes unknown characters ${fuse ? "as one" : "one by one"}`, async () => {
      const vocab = { "<unk>": 0, a: 1, b: 2, ab: 3, "<0x78>": 4 };
      await assertSameEncoding(bpe({ vocab, merges: ["a b"], unk_token: "<unk>", fuse_unk: fuse }), [
        "axxb abyyyab",
        "xyz",
      ]);
      await assertSameEncoding(
        bpe({ vocab, merges: ["a b"], unk_token: "<unk>", fuse_unk: fuse, byte_fallback: true }),
        ["axyxb xx yx"],
      );
    });
  }

  it("leaves characters out when there is no unknown token", () =>
    assertSameEncoding(bpe({ vocab: { a: 0, b: 1, ab: 2 }, merges: ["a b"] }), ["axb xab", "x"]));
});

describe("decoders, against Hugging Face's", { skip: skipWithoutReference }, () => {
  const spaces = { type: "Replace", pattern: { String: "▁" }, content: " " };
  const chains: (Json | null)[] = [
    null,
    { type: "Fuse" },
    { type: "Metaspace", replacement: "▁", prepend_scheme: "never" },
    {
      type: "Sequence",
      decoders: [
        spaces,
        { type: "ByteFallback" },
        { type: "Fuse" },
        { type: "Strip", content: " ", start: 2, stop: 0 },
      ],
    },
    { type: "Sequence", decoders: [{ type: "ByteFallback" }, { type: "Fuse" }, spaces] },
    {
      type: "Sequence",
      decoders: [spaces, { type: "Strip", content: " ", start: 1, stop: 0 }, { type: "ByteFallback" }],
    },
    {
      type: "Sequence",
      decoders: [{ type: "Fuse" }, { type: "Replace", pattern: { Regex: "▁+" }, content: " " }],
    },
    {
      type: "Sequence",
      decoders: [{ type: "Fuse" }, { type: "Replace", pattern: { String: "▁▁" }, content: "=" }],
    },
    { type: "BPEDecoder", suffix: "▁" },
    { type: "ByteLevel", add_prefix_space: true, trim_offsets: true, use_regex: true },
  ];
  for (const decoder of chains) {
    it(`decodes as ${JSON.stringify(decoder)}`, () =>
      assertSameDecoding(variant("llama2-metaspace", { decoder })));
  }
});
