import { OctavoError } from "@octavo/protocol/errors";
import type {
  DecoderSpecification,
  NormalizerSpecification,
  PatternSpecification,
  PreTokenizerSpecification,
  SplitBehavior,
} from "../specification.js";
import type { JsonReader } from "./json-reader.js";

const maxSteps = 64;

/** Steps of a Sequence; nesting and number are bounded. */
function readSteps<Step>(
  reader: JsonReader,
  read: (item: JsonReader, depth: number) => Step | undefined,
  depth: number,
): Step[] {
  const items = reader.items();
  if (items.length > maxSteps || depth > 4)
    throw new OctavoError(
      "artifact_invalid",
      `${reader.path} has too many steps: at most ${maxSteps}, nested at most 4 deep.`,
    );
  return items.map((item) => read(item, depth + 1)).filter((step) => step !== undefined);
}

function readPattern(reader: JsonReader): PatternSpecification {
  const regex = reader.get("Regex");
  return regex.isAbsent ? { literal: reader.get("String").string() } : { regex: regex.string() };
}

function readCharacter(reader: JsonReader, fallback?: string): string {
  const text = reader.string(fallback);
  if (Array.from(text).length !== 1) throw reader.invalid("a single character");
  return text;
}

export function readNormalizer(reader: JsonReader, depth = 0): NormalizerSpecification | undefined {
  if (reader.isAbsent) return undefined;
  const type = reader
    .get("type")
    .oneOf([
      "NFC",
      "NFD",
      "NFKC",
      "NFKD",
      "Lowercase",
      "Prepend",
      "Replace",
      "Strip",
      "StripAccents",
      "ByteLevel",
      "Precompiled",
      "Sequence",
    ]);
  switch (type) {
    case "Lowercase":
      return { kind: "lowercase" };
    case "Prepend":
      return { kind: "prepend", text: reader.get("prepend").string() };
    case "Replace":
      return {
        kind: "replace",
        pattern: readPattern(reader.get("pattern")),
        content: reader.get("content").string(),
      };
    case "Strip":
      return {
        kind: "strip",
        left: reader.get("strip_left").boolean(),
        right: reader.get("strip_right").boolean(),
      };
    case "StripAccents":
      return { kind: "strip-accents" };
    case "ByteLevel":
      return { kind: "byte-level" };
    case "Precompiled": {
      const charsMap = reader.get("precompiled_charsmap");
      if (charsMap.isAbsent) return undefined;
      const bytes = Buffer.from(charsMap.string(), "base64");
      return bytes.length === 0
        ? undefined
        : { kind: "precompiled", charsMap: new Uint8Array(bytes), by: "cluster" };
    }
    case "Sequence":
      return { kind: "sequence", items: readSteps(reader.get("normalizers"), readNormalizer, depth) };
    case "NFC":
    case "NFD":
    case "NFKC":
    case "NFKD":
      return { kind: "unicode", form: type };
  }
}

const behaviors: Readonly<Record<string, SplitBehavior>> = {
  Removed: "removed",
  Isolated: "isolated",
  MergedWithPrevious: "merged-with-previous",
  MergedWithNext: "merged-with-next",
  Contiguous: "contiguous",
};

const behaviorNames = ["Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"] as const;

export function readPreTokenizer(reader: JsonReader, depth = 0): PreTokenizerSpecification | undefined {
  if (reader.isAbsent) return undefined;
  const type = reader
    .get("type")
    .oneOf([
      "ByteLevel",
      "Split",
      "Metaspace",
      "Digits",
      "Punctuation",
      "Whitespace",
      "WhitespaceSplit",
      "CharDelimiterSplit",
      "Sequence",
    ]);
  switch (type) {
    case "ByteLevel":
      return {
        kind: "byte-level",
        addPrefixSpace: reader.get("add_prefix_space").boolean(true),
        useRegex: reader.get("use_regex").boolean(true),
      };
    case "Split":
      return {
        kind: "split",
        pattern: readPattern(reader.get("pattern")),
        behavior: behaviors[reader.get("behavior").oneOf(behaviorNames)]!,
        invert: reader.get("invert").boolean(false),
      };
    case "Metaspace":
      return {
        kind: "metaspace",
        replacement: readCharacter(reader.get("replacement"), "\u2581"),
        prepend: readPrepend(reader),
        split: reader.get("split").boolean(true),
      };
    case "Digits":
      return { kind: "digits", individual: reader.get("individual_digits").boolean(false) };
    case "Punctuation":
      return {
        kind: "punctuation",
        behavior: behaviors[reader.get("behavior").oneOf(behaviorNames, "Isolated")]!,
      };
    case "Whitespace":
      return { kind: "whitespace" };
    case "WhitespaceSplit":
      return { kind: "whitespace-split" };
    case "CharDelimiterSplit":
      return { kind: "character-delimiter", delimiter: readCharacter(reader.get("delimiter")) };
    case "Sequence":
      return { kind: "sequence", items: readSteps(reader.get("pretokenizers"), readPreTokenizer, depth) };
  }
}

/** Older files say `add_prefix_space: false` for the scheme "never". */
function readPrepend(reader: JsonReader): "always" | "first" | "never" {
  if (reader.get("add_prefix_space").value === false) return "never";
  return reader.get("prepend_scheme").oneOf(["always", "first", "never"], "always");
}

const maxStrip = 1024;

export function readDecoder(reader: JsonReader, depth = 0): DecoderSpecification | undefined {
  if (reader.isAbsent) return undefined;
  const type = reader
    .get("type")
    .oneOf(["ByteLevel", "ByteFallback", "Fuse", "Strip", "Replace", "Metaspace", "BPEDecoder", "Sequence"]);
  switch (type) {
    case "ByteLevel":
      return { kind: "byte-level" };
    case "ByteFallback":
      return { kind: "byte-fallback" };
    case "Fuse":
      return { kind: "fuse" };
    case "Strip":
      return {
        kind: "strip",
        content: readCharacter(reader.get("content")),
        start: reader.get("start").index(maxStrip),
        stop: reader.get("stop").index(maxStrip),
      };
    case "Replace":
      return {
        kind: "replace",
        pattern: readPattern(reader.get("pattern")),
        content: reader.get("content").string(),
      };
    case "Metaspace":
      return {
        kind: "metaspace",
        replacement: readCharacter(reader.get("replacement"), "\u2581"),
        prepend: readPrepend(reader),
      };
    case "BPEDecoder":
      return { kind: "bpe", suffix: reader.get("suffix").string("</w>") };
    case "Sequence":
      return { kind: "sequence", items: readSteps(reader.get("decoders"), readDecoder, depth) };
  }
}
