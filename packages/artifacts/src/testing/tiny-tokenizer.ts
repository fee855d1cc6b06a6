/** 256 bytes and four control tokens. */
const controlTokens = ["<|bos|>", "<|eos|>", "<|user|>", "<|assistant|>"];

export const tinyVocabSize: number = 256 + controlTokens.length;

/**
 * One token per byte, spelled in GPT-2's byte alphabet: printable Latin-1 characters stand for themselves, the other
 * bytes for the characters from U+0100 on. Source: bytes_to_unicode in OpenAI's gpt-2/src/encoder.py.
 */
export function byteLevelTokens(): string[] {
  let next = 0x100;
  const tokens: string[] = [];
  for (let byte = 0; byte < 256; byte++) {
    const printable = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
    tokens.push(String.fromCharCode(printable ? byte : next++));
  }
  return [...tokens, ...controlTokens];
}

/** A tokenizer.json without merges: every byte is its own token. */
export function tinyTokenizerJson(): Record<string, unknown> {
  const tokens = byteLevelTokens();
  const byteLevel = { type: "ByteLevel", add_prefix_space: false, trim_offsets: true, use_regex: true };
  return {
    version: "1.0",
    truncation: null,
    padding: null,
    added_tokens: controlTokens.map((content, index) => ({
      id: 256 + index,
      content,
      single_word: false,
      lstrip: false,
      rstrip: false,
      normalized: false,
      special: true,
    })),
    normalizer: null,
    pre_tokenizer: byteLevel,
    post_processor: null,
    decoder: byteLevel,
    model: {
      type: "BPE",
      dropout: null,
      unk_token: null,
      continuing_subword_prefix: null,
      end_of_word_suffix: null,
      fuse_unk: false,
      byte_fallback: false,
      ignore_merges: false,
      vocab: Object.fromEntries(tokens.slice(0, 256).map((token, id) => [token, id])),
      merges: [],
    },
  };
}

export function tinyTokenizerConfig(): { readonly chat_template: string; readonly [key: string]: unknown } {
  return {
    bos_token: "<|bos|>",
    eos_token: "<|eos|>",
    add_bos_token: false,
    chat_template:
      "{% for message in messages %}<|{{ message.role }}|>{{ message.content }}<|eos|>{% endfor %}" +
      "{% if add_generation_prompt %}<|assistant|>{% endif %}",
  };
}
