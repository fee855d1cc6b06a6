import type { GgufValue } from "@octavo/artifacts/gguf/write-header";
import type { BenchShape } from "./shapes.js";

/**
 * A byte-level BPE of any size: the 256 bytes, their pairs, then pairs followed by a byte, each with its merge, and the control
 * tokens of the family at the end. Enough for every engine to load, encode and decode; the text it cuts has no meaning anyway.
 */
export function vocabularyMetadata(shape: BenchShape): Record<string, GgufValue> {
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
    "tokenizer.ggml.pre": { type: "string", value: shape.preTokenizer },
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
    "tokenizer.chat_template": {
      type: "string",
      value:
        "{% for m in messages %}{{ m['role'] + ': ' + m['content'] + '\\n' }}{% endfor %}" +
        "{% if add_generation_prompt %}{{ 'assistant: ' }}{% endif %}",
    },
  };
}

/** GPT-2's printable letters for the 256 bytes. */
function byteLetters(): string[] {
  let numHidden = 0;
  return Array.from({ length: 256 }, (_, byte) => {
    const isPrintable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    return String.fromCodePoint(isPrintable ? byte : 256 + numHidden++);
  });
}
