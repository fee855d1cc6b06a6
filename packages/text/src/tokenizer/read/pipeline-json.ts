import type { BertNormalization } from "../bert-normalizer.js";
import type {
  DecoderSpecification,
  NormalizerSpecification,
  PatternSpecification,
  PreTokenizerSpecification,
  SplitBehavior,
} from "../specification.js";
import type { NormalizationForm } from "../unicode-normalization.js";
import type { JsonReader } from "./json-reader.js";

const maxSteps = 64;
const maxDepth = 4;
const maxStrip = 1024;

/** Readers by the value of `type`; undefined for a step that does nothing. */
type StepReaders<Step> = Readonly<Record<string, (reader: JsonReader) => Step | undefined>>;

/** Reads a step, or a Sequence whose steps stand under `listed`; nesting and number are bounded. */
function stepReader<Step>(
  readers: StepReaders<Step>,
  listed: string,
  inSequence: (items: Step[]) => Step,
): (reader: JsonReader, depth?: number) => Step | undefined {
  const names = [...Object.keys(readers), "Sequence"];
  const read = (reader: JsonReader, depth = 0): Step | undefined => {
    if (reader.isAbsent) return undefined;
    const type = reader.get("type").oneOf(names);
    if (type !== "Sequence") return readers[type]!(reader);
    const list = reader.get(listed);
    const items = list.items();
    if (items.length > maxSteps || depth > maxDepth)
      throw list.fail(`has too many steps: at most ${maxSteps}, nested at most ${maxDepth} deep`);
    return inSequence(items.map((item) => read(item, depth + 1)).filter((step) => step !== undefined));
  };
  return read;
}

function readPattern(reader: JsonReader): PatternSpecification {
  const regex = reader.get("Regex");
  return regex.isAbsent ? { literal: reader.get("String").string() } : { regex: regex.string() };
}

/** The normaliser and the decoder of this name say the same. */
function readReplace(reader: JsonReader): Extract<NormalizerSpecification, { kind: "replace" }> {
  return {
    kind: "replace",
    pattern: readPattern(reader.get("pattern")),
    content: reader.get("content").string(),
  };
}

function readCharacter(reader: JsonReader, fallback?: string): string {
  const text = reader.string(fallback);
  if (Array.from(text).length !== 1) throw reader.invalid("a single character");
  return text;
}

const unicode = (form: NormalizationForm) => (): NormalizerSpecification => ({
  kind: "unicode",
  form,
});

const normalizers: StepReaders<NormalizerSpecification> = {
  NFC: unicode("NFC"),
  NFD: unicode("NFD"),
  NFKC: unicode("NFKC"),
  NFKD: unicode("NFKD"),
  Lowercase: () => ({ kind: "lowercase" }),
  Prepend: (reader) => ({ kind: "prepend", text: reader.get("prepend").string() }),
  Replace: readReplace,
  Strip: (reader) => ({
    kind: "strip",
    left: reader.get("strip_left").boolean(),
    right: reader.get("strip_right").boolean(),
  }),
  StripAccents: () => ({ kind: "strip-accents" }),
  BertNormalizer: (reader) => {
    const lowercase = reader.get("lowercase").boolean(true);
    return bertNormalizer({
      lowercase,
      cleanText: reader.get("clean_text").boolean(true),
      separateIdeographs: reader.get("handle_chinese_chars").boolean(true),
      stripAccents: reader.get("strip_accents").boolean(lowercase),
    });
  },
  ByteLevel: () => ({ kind: "byte-level" }),
  Precompiled: (reader) => {
    const charsMap = reader.get("precompiled_charsmap");
    const bytes = Buffer.from(charsMap.isAbsent ? "" : charsMap.string(), "base64");
    return bytes.length === 0
      ? undefined
      : { kind: "precompiled", charsMap: new Uint8Array(bytes), by: "cluster" };
  },
};

/** BERT's, accents going with capitals where nothing else is said. */
export function bertNormalizer({
  lowercase,
  cleanText = true,
  separateIdeographs = true,
  stripAccents = lowercase,
}: { readonly lowercase: boolean } & Partial<BertNormalization>): NormalizerSpecification {
  const bert: NormalizerSpecification = { kind: "bert", cleanText, separateIdeographs, stripAccents };
  return lowercase ? { kind: "sequence", items: [bert, { kind: "lowercase" }] } : bert;
}

export const readNormalizer = stepReader<NormalizerSpecification>(normalizers, "normalizers", (items) => ({
  kind: "sequence",
  items,
}));

const behaviors = {
  Removed: "removed",
  Isolated: "isolated",
  MergedWithPrevious: "merged-with-previous",
  MergedWithNext: "merged-with-next",
  Contiguous: "contiguous",
} as const;

function readBehavior(reader: JsonReader, fallback?: keyof typeof behaviors): SplitBehavior {
  const names = Object.keys(behaviors) as (keyof typeof behaviors)[];
  return behaviors[reader.get("behavior").oneOf(names, fallback)];
}

/** Older files say `add_prefix_space: false` for the scheme "never". */
function readPrepend(reader: JsonReader): "always" | "first" | "never" {
  if (reader.get("add_prefix_space").value === false) return "never";
  return reader.get("prepend_scheme").oneOf(["always", "first", "never"], "always");
}

export const bertPreTokenizer: PreTokenizerSpecification = {
  kind: "sequence",
  items: [{ kind: "whitespace-split" }, { kind: "punctuation", behavior: "isolated" }],
};

const preTokenizers: StepReaders<PreTokenizerSpecification> = {
  ByteLevel: (reader) => ({
    kind: "byte-level",
    addPrefixSpace: reader.get("add_prefix_space").boolean(true),
    useRegex: reader.get("use_regex").boolean(true),
  }),
  Split: (reader) => ({
    kind: "split",
    pattern: readPattern(reader.get("pattern")),
    behavior: readBehavior(reader),
    invert: reader.get("invert").boolean(false),
  }),
  Metaspace: (reader) => ({
    kind: "metaspace",
    replacement: readCharacter(reader.get("replacement"), "\u2581"),
    prepend: readPrepend(reader),
    split: reader.get("split").boolean(true),
  }),
  Digits: (reader) => ({ kind: "digits", individual: reader.get("individual_digits").boolean(false) }),
  Punctuation: (reader) => ({ kind: "punctuation", behavior: readBehavior(reader, "Isolated") }),
  Whitespace: () => ({ kind: "whitespace" }),
  BertPreTokenizer: () => bertPreTokenizer,
  WhitespaceSplit: () => ({ kind: "whitespace-split" }),
  CharDelimiterSplit: (reader) => ({
    kind: "character-delimiter",
    delimiter: readCharacter(reader.get("delimiter")),
  }),
};

export const readPreTokenizer = stepReader<PreTokenizerSpecification>(
  preTokenizers,
  "pretokenizers",
  (items) => ({
    kind: "sequence",
    items,
  }),
);

const decoders: StepReaders<DecoderSpecification> = {
  ByteLevel: () => ({ kind: "byte-level" }),
  ByteFallback: () => ({ kind: "byte-fallback" }),
  Fuse: () => ({ kind: "fuse" }),
  Strip: (reader) => ({
    kind: "strip",
    content: readCharacter(reader.get("content")),
    start: reader.get("start").index(maxStrip),
    stop: reader.get("stop").index(maxStrip),
  }),
  Replace: readReplace,
  Metaspace: (reader) => ({
    kind: "metaspace",
    replacement: readCharacter(reader.get("replacement"), "\u2581"),
    prepend: readPrepend(reader),
  }),
  WordPiece: (reader) => ({
    kind: "word-piece",
    prefix: reader.get("prefix").string("##"),
    cleansUp: reader.get("cleanup").boolean(true),
  }),
  BPEDecoder: (reader) => ({ kind: "bpe", suffix: reader.get("suffix").string("</w>") }),
};

export const readDecoder = stepReader<DecoderSpecification>(decoders, "decoders", (items) => ({
  kind: "sequence",
  items,
}));
