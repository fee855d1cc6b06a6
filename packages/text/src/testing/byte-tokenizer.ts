import type {
  DecodeOptions,
  Detokenizer,
  EncodeOptions,
  TokenPair,
  Tokenizer,
} from "../tokenizer/tokenizer.js";

const specials = ["<|bos|>", "<|eos|>", "<|im_start|>", "<|im_end|>", "[TOOL_CALLS]"];
const firstSpecial = 256;

/** One token per UTF-8 byte, and five special tokens; so that characters of several tokens are ordinary. */
export class ByteTokenizer implements Tokenizer {
  readonly vocabSize = firstSpecial + specials.length;
  readonly bosTokenId = firstSpecial;
  readonly eosTokenId = firstSpecial + 1;
  readonly specialTokenIds: ReadonlySet<number> = new Set(specials.map((_, index) => firstSpecial + index));

  joinPair(first: Int32Array, second: Int32Array): TokenPair {
    return { tokens: Int32Array.from([...first, ...second]), secondFrom: undefined };
  }

  encode(text: string, options: EncodeOptions = {}): Int32Array {
    const ids: number[] = options.addSpecialTokens === false ? [] : [this.bosTokenId];
    for (const piece of text.split(/(<\|(?:bos|eos|im_start|im_end)\|>|\[TOOL_CALLS\])/)) {
      const special = specials.indexOf(piece);
      if (special >= 0) ids.push(firstSpecial + special);
      else for (const byte of Buffer.from(piece, "utf8")) ids.push(byte);
    }
    return Int32Array.from(ids);
  }

  encodeAsync(text: string, options?: EncodeOptions): Promise<Int32Array> {
    return Promise.resolve(this.encode(text, options));
  }

  decode(ids: ArrayLike<number>, options: DecodeOptions = {}): string {
    const detokenizer = this.createDetokenizer(options);
    let text = "";
    for (let i = 0; i < ids.length; i++) text += detokenizer.push(ids[i] ?? 0);
    return text + detokenizer.flush();
  }

  idToToken(id: number): string | undefined {
    return id < firstSpecial ? `<0x${id.toString(16).padStart(2, "0")}>` : specials[id - firstSpecial];
  }

  tokenToId(token: string): number | undefined {
    const special = specials.indexOf(token);
    return special < 0 ? undefined : firstSpecial + special;
  }

  tokenBytes(id: number): Uint8Array {
    return id < firstSpecial ? Uint8Array.of(id) : Buffer.from(specials[id - firstSpecial] ?? "", "utf8");
  }

  createDetokenizer(options: DecodeOptions = {}): Detokenizer {
    const utf8 = new TextDecoder("utf-8", { ignoreBOM: true });
    const skips = (id: number): boolean =>
      options.skipSpecialTokens !== false &&
      id >= firstSpecial &&
      options.keptSpecialTokens?.has(id) !== true;
    return {
      push: (id) => (skips(id) ? "" : utf8.decode(this.tokenBytes(id), { stream: true })),
      flush: () => utf8.decode(),
    };
  }
}
