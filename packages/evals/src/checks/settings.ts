import { z } from "zod";

type CamelCase<Name extends string> = Name extends `${infer Head}_${infer Tail}`
  ? `${Head}${Capitalize<CamelCase<Tail>>}`
  : Name;

type CamelKeys<Fields> = {
  readonly [Name in keyof Fields & string as CamelCase<Name>]: Fields[Name];
};

/** Settings as code reads them, from settings as files write them: the keys of the outermost object in camelCase. */
export function camelKeys<Fields extends object>(fields: Fields): CamelKeys<Fields> {
  const entries = Object.entries(fields).map(([name, value]) => [
    name.replace(/_([a-z])/g, (_match, letter: string) => letter.toUpperCase()),
    value,
  ]);
  return Object.fromEntries(entries) as CamelKeys<Fields>;
}

/** A share of something, such as a margin of scores from 0 to 1. */
export const share = z.number().min(0).max(1);

/** What every check that compares scores is told before the run. */
export const comparisonFields = {
  /** Two-sided: one verdict in twenty may be wrong where the truth lies on the margin. */
  alpha: z.number().gt(0).max(0.5).default(0.05),
  /** For planning: how often a true effect of the margin's size should be decided. */
  power: z.number().min(0.5).lt(1).default(0.8),
  /** With more answers or scores missing than this share, nothing passes: the missing ones may be those that went wrong. */
  max_missing_share: share.default(0.05),
};

/** Settings of checks that may look at cases as they come. */
export const sequentialFields = {
  /**
   * Cases are sent a few at a time, in an order drawn from the seed, until the check is decided: intervals are then confidence
   * sequences, which hold however often one looks, and are wider than those of a number fixed before.
   */
  sequential: z.boolean().default(false),
  /**
   * Cases after which the fixed test of all of them is looked at as well, once, at half of `alpha`; the sequence has the other
   * half. A run sets it to the number of its cases; without it, as in recorded answers, there is the sequence alone.
   */
  planned_cases: z.int().min(1).optional(),
  /** Cases between two looks. */
  look_every: z.int().min(1).max(1_000_000).default(50),
};

/** Requests or cases under way at once while a check collects. */
export const concurrency = z.int().min(1).max(1024);
