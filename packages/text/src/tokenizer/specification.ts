import type { BertNormalization } from "./bert-normalizer.js";
import { packStrings } from "../files/gguf-strings.js";
import type { TokenTable, Vocabulary } from "./token-table.js";
import type { NormalizationForm } from "./unicode-normalization.js";

/**
 * A tokenizer as read and checked from a file, in a form that is built from quickly and crosses to a worker thread
 * without copying strings one by one.
 */
export interface TokenizerSpecification {
  readonly vocabulary: Vocabulary;
  readonly model: ModelSpecification;
  readonly addedTokens: readonly AddedTokenSpecification[];
  readonly normalizer: NormalizerSpecification | undefined;
  readonly preTokenizer: PreTokenizerSpecification | undefined;
  readonly decoder: DecoderSpecification | undefined;
  readonly postProcessor: PostProcessorSpecification;
  readonly bosTokenId: number | undefined;
  readonly eosTokenId: number | undefined;
}

/** What reading a file gives: building from the table that reading made anyway spares making it a second time. */
export interface ReadTokenizer {
  readonly specification: TokenizerSpecification;
  readonly table: TokenTable;
}

export type ModelSpecification =
  | {
      readonly kind: "bpe";
      /** Triples (left id, right id, merged id), best rank first. */
      readonly merges: Int32Array;
      readonly unknownId: number | undefined;
      readonly fuseUnknown: boolean;
      readonly byteFallback: boolean;
      readonly ignoreMerges: boolean;
      readonly continuingSubwordPrefix: string;
      readonly endOfWordSuffix: string;
    }
  | {
      readonly kind: "unigram";
      /** Log probability by id. */
      readonly scores: Float64Array;
      readonly unknownId: number | undefined;
      readonly byteFallback: boolean;
    }
  | {
      readonly kind: "word-piece";
      readonly unknownId: number;
      readonly continuingSubwordPrefix: string;
      /** Longest word; longer ones are unknown. */
      readonly maxCharacters: number;
    }
  | {
      /** SentencePiece's BPE: neighbours merge when their text is a token, best score first. */
      readonly kind: "scored-bpe";
      readonly scores: Float64Array;
      readonly unknownId: number | undefined;
    };

export interface AddedTokenSpecification {
  readonly id: number;
  readonly content: string;
  readonly special: boolean;
  /** Match only where no word character touches it. */
  readonly singleWord: boolean;
  /** Swallow the white space on that side. */
  readonly stripLeft: boolean;
  readonly stripRight: boolean;
  /** Matched in normalised text, in its own normalised form. */
  readonly normalized: boolean;
}

export type PatternSpecification = { readonly literal: string } | { readonly regex: string };

export type NormalizerSpecification =
  | { readonly kind: "sequence"; readonly items: readonly NormalizerSpecification[] }
  | { readonly kind: "unicode"; readonly form: NormalizationForm }
  | { readonly kind: "lowercase" }
  | { readonly kind: "strip-accents" }
  | ({ readonly kind: "bert" } & BertNormalization)
  | { readonly kind: "strip"; readonly left: boolean; readonly right: boolean }
  | { readonly kind: "prepend"; readonly text: string }
  | { readonly kind: "replace"; readonly pattern: PatternSpecification; readonly content: string }
  | { readonly kind: "byte-level" }
  | {
      /** SentencePiece's rules: by longest match, as it applies them itself, or by grapheme cluster, as Hugging Face does. */
      readonly kind: "precompiled";
      readonly charsMap: Uint8Array;
      readonly by: "longest-match" | "cluster";
    };

export type SplitBehavior =
  | "removed"
  | "isolated"
  | "merged-with-previous"
  | "merged-with-next"
  | "contiguous";

export type PreTokenizerSpecification =
  | { readonly kind: "sequence"; readonly items: readonly PreTokenizerSpecification[] }
  | { readonly kind: "byte-level"; readonly addPrefixSpace: boolean; readonly useRegex: boolean }
  | {
      readonly kind: "split";
      readonly pattern: PatternSpecification;
      readonly behavior: SplitBehavior;
      readonly invert: boolean;
    }
  | {
      readonly kind: "metaspace";
      readonly replacement: string;
      readonly prepend: "always" | "first" | "never";
      readonly split: boolean;
    }
  | { readonly kind: "digits"; readonly individual: boolean }
  | { readonly kind: "punctuation"; readonly behavior: SplitBehavior }
  | { readonly kind: "whitespace" }
  | { readonly kind: "whitespace-split" }
  | { readonly kind: "character-delimiter"; readonly delimiter: string };

export type DecoderSpecification =
  | { readonly kind: "sequence"; readonly items: readonly DecoderSpecification[] }
  | { readonly kind: "byte-level" }
  | { readonly kind: "byte-fallback" }
  | { readonly kind: "fuse" }
  | { readonly kind: "strip"; readonly content: string; readonly start: number; readonly stop: number }
  | { readonly kind: "replace"; readonly pattern: PatternSpecification; readonly content: string }
  | {
      readonly kind: "metaspace";
      readonly replacement: string;
      readonly prepend: "always" | "first" | "never";
    }
  | { readonly kind: "bpe"; readonly suffix: string }
  | { readonly kind: "word-piece"; readonly prefix: string; readonly cleansUp: boolean };

/** Ids put around an encoded text when special tokens are asked for. */
export interface PostProcessorSpecification {
  readonly before: readonly number[];
  readonly after: readonly number[];
  /** How two texts are put together; absent where the file says it in a way that is not known. */
  readonly pair?: PairTemplate | undefined;
}

/** Ids around the first of two texts and the second. */
export interface PairTemplate {
  readonly before: readonly number[];
  readonly between: readonly number[];
  readonly after: readonly number[];
  /** The second text and what follows it are of type 1. */
  readonly hasTypes: boolean;
}

/** Packs tokens by id; undefined for an id without a token. */
export function packVocabulary(tokens: readonly (string | undefined)[]): Vocabulary {
  const used = Uint8Array.from(tokens, (token) => (token === undefined ? 0 : 1));
  return { ...packStrings(tokens.map((token) => token ?? "")), used };
}
