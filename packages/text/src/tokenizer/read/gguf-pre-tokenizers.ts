import { gpt2Pattern } from "../pre-tokenizers.js";

/** How a byte-level GGUF vocabulary cuts text, and what llama.cpp assumes where the file does not say. */
interface GgufPreTokenizer {
  /** Applied one after the other; matches and what lies between them stay apart. */
  readonly patterns: readonly string[];
  readonly ignoreMerges: boolean;
  readonly addBos: boolean;
}

const contractions = "(?i:'s|'t|'re|'ve|'m|'ll|'d)";
const newlinesAndSpaces = "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";

/** The pattern of Llama 3 and its many descendants; they differ in how they take digits. */
function llamaLike(digits: string): string {
  return `${contractions}|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|${digits}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|${newlinesAndSpaces}`;
}

/** The pattern of GPT-4o: words cut where lower case turns to upper case. */
function casedWords(suffix: string, digits: string): string {
  const upper = "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]";
  const lower = "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]";
  const lead = "[^\\r\\n\\p{L}\\p{N}]?";
  return `${lead}${upper}*${lower}+${suffix}|${lead}${upper}+${lower}*${suffix}|${digits}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|${newlinesAndSpaces}`;
}

const asciiWordsAndMarks =
  "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\\r\\n]*|";

const deepseekLetters =
  "A-Za-zµÀ-ÖØ-öø-ƺƼ-ƿǄ-ʓʕ-ʯͰ-ͳͶͷͻ-ͽͿΆΈ-ΊΌΎ-ΡΣ-ϵϷ-ҁҊ-ԯԱ-ՖႠ-ჅᎠ-Ᏽᏸ-ᏽᲐ-ᲺᲽ-Ჿᴀ-ᴫᵫ-ᵷᵹ-ᶚḀ-ἕἘ-Ἕἠ-ὅὈ-Ὅὐ-ὗὙὛὝὟ-\\x{1F7D}ᾀ-ᾴᾶ-ᾼ\\x{1FBE}ῂ-ῄῆ-ῌῐ-\\x{1FD3}ῖ-\\x{1FDB}ῠ-Ῥῲ-ῴῶ-ῼℂℇℊ-ℓℕℙ-ℝℤ\\x{2126}ℨ\\x{212A}-ℭℯ-ℴℹℼ-ℿⅅ-ⅉⅎↃↄⰀ-ⱻⱾ-ⳤⳫ-ⳮⳲⳳꙀ-ꙭꚀ-ꚛꜢ-ꝯꝱ-ꞇꞋ-ꞎꭰ-ꮿﬀ-ﬆﬓ-ﬗＡ-Ｚａ-ｚ𐐀-𐑏𐒰-𐓓𐓘-𐓻𐲀-𐲲𐳀-𐳲𑢠-𑣟𞤀-𞥃";

interface Family {
  readonly names: readonly string[];
  readonly patterns: readonly string[];
  readonly ignoreMerges?: true;
  readonly addBos?: true;
}

/**
 * Values of `tokenizer.ggml.pre` and the patterns of the tokenizers they stand for. Names, flags and families follow
 * llama.cpp's vocabulary loader; the patterns are those of the models' own tokenizer.json where it rewrites them.
 */
const families: readonly Family[] = [
  { names: ["default"], patterns: ["[\\p{P}\\$\\+<=>\\^~\\|]+", gpt2Pattern, "\\p{N}+", "[0-9][0-9][0-9]"] },
  {
    names: ["llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2"],
    patterns: [llamaLike("\\p{N}{1,3}")],
    ignoreMerges: true,
    addBos: true,
  },
  { names: ["dbrx", "smaug-bpe", "glm4", "chatglm-bpe"], patterns: [llamaLike("\\p{N}{1,3}")] },
  {
    names: "qwen2 deepseek-r1-qwen kormo f2llmv2 megrez stablelm2 hunyuan solar-open grok-2".split(" "),
    patterns: [llamaLike("\\p{N}")],
  },
  {
    names: ["qwen35"],
    patterns: [
      `${contractions}|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|${newlinesAndSpaces}`,
    ],
  },
  { names: ["minicpm5"], patterns: ["\\p{N}{1,3}", llamaLike("\\p{N}+")], ignoreMerges: true },
  {
    names: ["seed-coder"],
    patterns: [
      `${contractions}|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1}| ?[^\\s\\p{L}\\p{N}\\r\\n]+|${newlinesAndSpaces}`,
    ],
  },
  {
    names: ["bailingmoe", "bailingmoe2", "llada-moe"],
    patterns: [
      "'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+",
    ],
  },
  {
    names:
      "gpt-2 phi-2 gigachat a.x-4.0 mellum modern-bert exaone4 mpt olmo jais trillion granite-docling".split(
        " ",
      ),
    patterns: [gpt2Pattern],
  },
  {
    names: ["starcoder", "refact", "command-r", "smollm", "codeshell", "exaone", "minerva-7b", "mellum2"],
    patterns: ["\\p{N}", gpt2Pattern],
  },
  { names: ["falcon"], patterns: ["[\\p{P}\\$\\+<=>\\^~\\|`]+", gpt2Pattern, "[0-9][0-9][0-9]"] },
  {
    names: ["deepseek-llm"],
    patterns: [
      "[\\r\\n]",
      `\\s?[${deepseekLetters}]+`,
      "\\s?[!-/:-~！-／：-～‘-‟　-。]+",
      "\\s+$",
      "[一-龥ࠀ-一가-퟿]+",
      "\\p{N}+",
    ],
  },
  {
    names: ["deepseek-coder"],
    patterns: ["[\\r\\n]", "\\s?\\p{L}+", "\\s?\\p{P}+", "[一-龥ࠀ-一가-퟿]+", "\\p{N}"],
  },
  {
    names: ["deepseek-v3", "hunyuan-dense", "joyai-llm", "hy_v4"],
    patterns: ["\\p{N}{1,3}", "[一-龥぀-ゟ゠-ヿ]+", asciiWordsAndMarks + newlinesAndSpaces],
  },
  { names: ["tekken"], patterns: [casedWords("", "\\p{N}")], ignoreMerges: true, addBos: true },
  {
    names: ["gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2"],
    patterns: [casedWords(`${contractions}?`, "\\p{N}{1,3}")],
  },
  {
    names: ["tiny_aya", "cohere2moe"],
    patterns: ["\\d{1,3}(?=(?:\\d{3})*\\b)", casedWords(`${contractions}?`, "\\p{N}{1,3}")],
  },
  { names: ["superbpe"], patterns: ["\\p{N}+", "(?=(\\d{3})+(?!\\d))"] },
  { names: ["poro-chat", "bloom", "gpt3-finnish"], patterns: [" ?[^(\\s|.,!?…。，、।۔،)]+"] },
  { names: ["viking"], patterns: [" ?[^(\\s|.,!?…。，、।۔،)]+", "\\p{N}"] },
];

const byName = new Map<string, GgufPreTokenizer>(
  families.flatMap(({ names, patterns, ignoreMerges = false, addBos = false }) =>
    names.map((name) => [name, { patterns, ignoreMerges, addBos }] as const),
  ),
);

/** undefined for a name that is not known. */
export function ggufPreTokenizer(name: string): GgufPreTokenizer | undefined {
  return byName.get(name);
}

/**
 * The name under which GGUF knows a cut by these patterns, one after the other; undefined when it has none. Families that cut alike
 * but add a beginning-of-text token, or look words up whole, have names of their own.
 */
export function ggufPreTokenizerName(
  patterns: readonly string[],
  { ignoreMerges, addBos }: Omit<GgufPreTokenizer, "patterns">,
): string | undefined {
  const alike = families.filter(
    (family) =>
      family.patterns.length === patterns.length &&
      family.patterns.every((pattern, index) => pattern === patterns[index]),
  );
  const exact = alike.find(
    (family) => (family.ignoreMerges ?? false) === ignoreMerges && (family.addBos ?? false) === addBos,
  );
  const sameMerges = alike.find((family) => (family.ignoreMerges ?? false) === ignoreMerges);
  return (exact ?? sameMerges)?.names[0];
}
