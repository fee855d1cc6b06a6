import type { GgufValue } from "@octavo/artifacts/gguf/write-header";
import type { BenchShape } from "./shapes.js";

export function vocabularyMetadata(shape: BenchShape): Record<string, GgufValue> {
  return shape.preTokenizer === undefined
    ? sentencePieceMetadata(shape.vocabSize)
    : byteLevelMetadata(shape, shape.preTokenizer);
}

/** SentencePiece's form: control tokens, the bytes, then letters and all their pairs, triples and more, a score for each. */
function sentencePieceMetadata(size: number): Record<string, GgufValue> {
  const control = ["<pad>", "<eos>", "<bos>", "<unk>"];
  const bytes = Array.from(
    { length: 256 },
    (_, byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`,
  );
  const letters = "\u2581etaoinshrdlucmfwypvbgkjqxz".split("");
  const texts = [...letters];
  const numText = size - control.length - bytes.length;
  for (let i = 0; texts.length < numText; i++)
    for (const letter of letters) if (texts.length < numText) texts.push(`${texts[i]}${letter}`);
  const types = [3, 3, 3, 2, ...bytes.map(() => 6), ...texts.map(() => 1)];
  const scores = [...control, ...bytes].map(() => 0).concat(texts.map((_, rank) => -rank));
  return {
    "tokenizer.ggml.model": { type: "string", value: "llama" },
    "tokenizer.ggml.pre": { type: "string", value: "default" },
    "tokenizer.ggml.tokens": { type: "array", of: "string", value: [...control, ...bytes, ...texts] },
    "tokenizer.ggml.scores": { type: "array", of: "f32", value: scores },
    "tokenizer.ggml.token_type": { type: "array", of: "i32", value: types },
    "tokenizer.ggml.padding_token_id": { type: "u32", value: 0 },
    "tokenizer.ggml.eos_token_id": { type: "u32", value: 1 },
    "tokenizer.ggml.bos_token_id": { type: "u32", value: 2 },
    "tokenizer.ggml.unknown_token_id": { type: "u32", value: 3 },
    "tokenizer.ggml.add_bos_token": { type: "bool", value: false },
    "tokenizer.ggml.add_space_prefix": { type: "bool", value: false },
    "tokenizer.chat_template": chatTemplate,
  };
}

/**
 * A byte-level BPE of any size: the 256 bytes, their pairs, then pairs followed by a byte, each with its merge, and the control
 * tokens of the family at the end. Enough for every engine to load, encode and decode; the text it cuts has no meaning anyway.
 */
function byteLevelMetadata(shape: BenchShape, preTokenizer: string): Record<string, GgufValue> {
  const control =
    shape.architecture !== "llama"
      ? ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
      : ["<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>"];
  const numText = shape.vocabSize - control.length;
  const letters = byteLetters();
  const tokens = [...letters];
  const merges: string[] = [];
  for (let i = 0; tokens.length < numText; i++) {
    const left = i < 65_536 ? letters[i >> 8] : tokens[256 + ((i - 65_536) >> 8)];
    const right = letters[i & 255];
    merges.push(`${left} ${right}`);
    tokens.push(`${left}${right}`);
  }
  tokens.push(...control);
  return {
    "tokenizer.ggml.model": { type: "string", value: "gpt2" },
    "tokenizer.ggml.pre": { type: "string", value: preTokenizer },
    "tokenizer.ggml.tokens": { type: "array", of: "string", value: tokens },
    "tokenizer.ggml.token_type": {
      type: "array",
      of: "i32",
      value: tokens.map((_, id) => (id < numText ? 1 : 3)),
    },
    "tokenizer.ggml.merges": { type: "array", of: "string", value: merges },
    "tokenizer.ggml.bos_token_id": { type: "u32", value: numText },
    "tokenizer.ggml.eos_token_id": { type: "u32", value: numText + 2 },
    "tokenizer.ggml.add_bos_token": { type: "bool", value: false },
    "tokenizer.chat_template": chatTemplate,
  };
}

const chatTemplate: GgufValue = {
  type: "string",
  value:
    "{% for m in messages %}{{ m['role'] + ': ' + m['content'] + '\\n' }}{% endfor %}" +
    "{% if add_generation_prompt %}{{ 'assistant: ' }}{% endif %}",
};

/** GPT-2's printable letters for the 256 bytes. */
function byteLetters(): string[] {
  let numHidden = 0;
  return Array.from({ length: 256 }, (_, byte) => {
    const isPrintable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    return String.fromCodePoint(isPrintable ? byte : 256 + numHidden++);
  });
}
