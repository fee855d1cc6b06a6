import { readCases, writeResults } from "../support/merged-results.js";
import type { RunRecord } from "../support/results.js";
import type { Making } from "./artifacts.js";
import type { Quality } from "./quality.js";
import type { Speed } from "./speed.js";

/** A format's parts, each of which keeps the record of the run that it is from. */
export interface FormatCase {
  readonly name: string;
  readonly quality?: Quality & { readonly run: RunRecord };
  readonly speed?: Speed & { readonly run: RunRecord };
  /** How the artifact whose speed is measured was made. */
  readonly making?: Making & { readonly run: RunRecord };
}

export interface FormatResults extends RunRecord {
  readonly benchmark: "formats";
  readonly cases: readonly FormatCase[];
}

/** What one run measured of a format. */
export interface MeasuredParts {
  readonly name: string;
  readonly quality?: Quality;
  readonly speed?: Speed;
  readonly making?: Making;
}

/**
 * Parts of one run take the place of earlier ones of the same format; the others stay.
 * @param order - formats' names as they are to stand; others come after them
 */
export function mergeFormats(
  earlier: readonly FormatCase[],
  run: RunRecord,
  measured: readonly MeasuredParts[],
  order: readonly string[],
): FormatResults {
  const merged = new Map(earlier.map((one) => [one.name, one]));
  for (const { name, quality, speed, making } of measured) {
    merged.set(name, {
      ...merged.get(name),
      name,
      ...(quality !== undefined && { quality: { ...quality, run } }),
      ...(speed !== undefined && { speed: { ...speed, run } }),
      ...(making !== undefined && { making: { ...making, run } }),
    });
  }
  const placeOf = ({ name }: FormatCase): number =>
    order.includes(name) ? order.indexOf(name) : order.length;
  const cases = [...merged.values()].toSorted((a, b) => placeOf(a) - placeOf(b));
  return { benchmark: "formats", ...run, cases };
}

export function readFormats(path: string): readonly FormatCase[] {
  return readCases(path, "formats") as FormatCase[];
}

/** Merges into a file, which is made where there is none. */
export function saveFormats(
  path: string,
  run: RunRecord,
  measured: readonly MeasuredParts[],
  order: readonly string[],
): FormatResults {
  const results = mergeFormats(readFormats(path), run, measured, order);
  writeResults(path, results);
  return results;
}
