import { normalizeUnicode } from "@octavo/text/tokenizer/unicode-normalization";
import { z } from "zod";
import type { EvaluatorInput, Sample } from "../evaluator.js";

/** How two texts are made alike before they are compared; white space around them never counts. */
export const comparisonOptions = {
  ignoreCase: z.boolean().default(false),
  /** Any run of white space becomes one space. */
  collapseSpace: z.boolean().default(false),
  ignorePunctuation: z.boolean().default(false),
};

export interface TextComparison {
  readonly ignoreCase: boolean;
  readonly collapseSpace: boolean;
  readonly ignorePunctuation: boolean;
}

/** NFC first: two spellings of one character are one character. */
export function comparable(text: string, how: TextComparison): string {
  let result = normalizeUnicode(text, "NFC");
  if (how.ignoreCase) result = result.toLowerCase();
  if (how.ignorePunctuation) result = result.replaceAll(/\p{P}/gu, "");
  if (how.collapseSpace) result = result.replaceAll(/\s+/g, " ");
  return result.trim();
}

/** A text as a reason quotes it. */
export function quote(text: string, length = 60): string {
  return JSON.stringify(text.length <= length ? text : `${text.slice(0, length - 1)}…`);
}

/** Texts to look for: one, several, or what the case expects. */
export const wantedOptions = {
  value: z.string().optional(),
  values: z.array(z.string()).min(1).max(1000).optional(),
};

interface Wanted {
  readonly value?: string | undefined;
  readonly values?: readonly string[] | undefined;
}

/** What an evaluator with `wantedOptions` reads, and where it finds its texts. */
export function wantedTexts(options: Wanted): {
  readonly inputs: readonly EvaluatorInput[];
  of(sample: Sample): readonly string[];
} {
  const given = [...(options.value === undefined ? [] : [options.value]), ...(options.values ?? [])];
  if (given.length > 0) return { inputs: ["output"], of: () => given };
  return { inputs: ["output", "expectedOutput"], of: (sample) => sample.case.expected.outputs ?? [] };
}
