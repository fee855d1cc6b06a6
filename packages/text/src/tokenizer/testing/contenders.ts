import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import type { Tokenizer as ReferenceTokenizer } from "tokenizers";
import type { TokenizerFileConfig } from "../source.js";
import { createTokenizer } from "../create-tokenizer.js";
import type { Tokenizer } from "../tokenizer.js";

/** Fixtures made by tools/oracle/tokenizers/make_fixtures.py, in the shapes of published checkpoints. */
export const fixtureNames = [
  "gpt2",
  "qwen2",
  "llama3",
  "cl100k",
  "o200k",
  "deepseek",
  "llama2-legacy",
  "llama2-metaspace",
  "gemma",
  "bert-uncased",
  "bert-cased",
  "unigram",
  "unigram-bytes",
] as const;

export type FixtureName = (typeof fixtureNames)[number];

export const plainConfig: TokenizerFileConfig = {
  bosToken: undefined,
  eosToken: undefined,
  unkToken: undefined,
  padToken: undefined,
  chatTemplate: undefined,
  namedChatTemplates: new Map(),
};

export function readFixture(name: FixtureName): string {
  return readFileSync(new URL(`../../../fixtures/tokenizers/${name}.json`, import.meta.url), "utf8");
}

/** Hugging Face's tokenizers, a native package: tests against it are skipped where it is not installed. */
const reference = await import("tokenizers").catch(() => undefined);

export const skipWithoutReference =
  reference === undefined && "Hugging Face's tokenizers are not installed (npm install tokenizers)";

export interface Contenders {
  readonly ours: Tokenizer;
  readonly reference: ReferenceTokenizer;
}

/** Our tokenizer and Hugging Face's over the same content; reading the latter fails where it is not installed. */
export function contenders(content: string): Contenders {
  const ours = createTokenizer({
    kind: "tokenizer.json",
    json: JSON.parse(content) as unknown,
    config: plainConfig,
  });
  return {
    ours,
    get reference() {
      assert.ok(reference !== undefined, "the package tokenizers is not installed");
      return reference.Tokenizer.fromString(content);
    },
  };
}

/** Texts that tokenizers are known to get wrong. */
export const hostileTexts: readonly string[] = [
  "",
  " ",
  "  ",
  "a",
  "Hello world",
  " Hello  world ",
  "I'm we'LL THEY'VE he'd it'S don't 'ſ x'ſ y's",
  "The library doesn't open; they'll wait\nuntil 10:45.\n\n\nThen go home.   ",
  "tabs\t\tand\tspaces   mixed \t \n \t\n\r\n\r\n end",
  "line\r\nline\rline\nline\u0085line\u2028line\u2029line",
  " \u00a0\u1680\u2000\u200a\u202f\u205f\u3000\ufeff\u200b\u180e wide spaces",
  "0 1 12 123 1234 12345 123456789 1,234.56 ٣٤٥ ४५६ Ⅷ ½ ² 10²",
  "😀😃👨‍👩‍👧‍👦🏳️‍🌈👍🏽🇩🇪🇫🇷",
  "e\u0301 é o\u0308 ö a\u0323\u0307 q\u0307\u0323 \u0301 \u0301\u0301\u0301\u0301 א\u05b0\u05b1",
  "ﬁ ﬀ ａｂｃ １２３ ｶﾞ ㈱ ™ ½ … Å Å K",
  "библиотека ΒΙΒΛΙΟΘΗΚΗ σς 图书馆九点 図書館カタカナ 도서관 각 تفتح المكتبة הספרייה पुस्तकालय ห้องสมุด",
  "mixedСмешанный混ざった𐍈𝒳𝓎𝔷𠀀𪚥",
  "control \u0000\u0001\u001b[31m\u007f\u0080\u009f end",
  "lone \ud800 surrogates \udc00 here \udfff\ud800",
  "\ufffd\ufffe\uffff\u{10ffff}\ue000",
  "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>",
  "<|im_start <|im_start|> <|IM_START|> <|im_start|><|im_start|>x<|endoftext|>",
  "<s>[INST] Hi [/INST] </s><s> <unk> <0x41> <0x0A><0xZZ>",
  " <s> x </s> ",
  "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\nYou<|eot_id|>",
  "▁ ▁▁ a▁b ▁a ▁▁▁b",
  "#include <vector>\nint main() { return f(x)[0] != 3 ? 0 : -1; } // ok",
  '{"name": "get_weather", "arguments": {"city": "Zürich"}}',
  "Octavo! Octavo!! Octavo Octavo!",
  "don’t “quote” — dash – … ¿qué? ¡no!",
  "$10 €20 £30 ¥40 +1 -2 ×3 ÷4 ≠ ≤ ∑ ∞ ©®",
  "a".repeat(2000),
  " ".repeat(1999) + "x",
  "\n".repeat(500),
  "\n ".repeat(300) + "\t",
  "\t ".repeat(333) + "x",
  "7".repeat(1501),
  "!".repeat(700) + "\n\n",
  "\u0301".repeat(400),
  "ABCD".repeat(200) + "e",
  "字".repeat(500),
  "👍".repeat(300),
  "=-".repeat(300),
  "ab \n".repeat(200),
  "'s't're've".repeat(60),
];
