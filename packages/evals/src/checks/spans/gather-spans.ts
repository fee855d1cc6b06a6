import { OctavoError } from "@octavo/protocol";
import type { Observation } from "../observation.js";
import { readSpans } from "./read-spans.js";

export interface SpanFile {
  readonly path: string;
  /** Of spans that do not say theirs. */
  readonly condition: string;
}

export interface SpanLimits {
  readonly calls: number;
  /** Of outputs, in all. */
  readonly characters: number;
}

/** About a gibibyte of memory each. */
const usualLimits: SpanLimits = { calls: 1_000_000, characters: 2 ** 29 };

/**
 * All calls of some files, for checks, which hold what they judge in memory.
 *
 * @throws OctavoError `dataset_invalid` where a file cannot be read, or they are too many
 */
export async function gatherSpans(
  files: readonly SpanFile[],
  limits: SpanLimits = usualLimits,
): Promise<readonly Observation[]> {
  const observations: Observation[] = [];
  let characters = 0;
  for (const { path, condition } of files)
    for await (const observation of readSpans(path, { condition })) {
      observations.push(observation);
      characters += observation.output?.length ?? 0;
      const excess =
        observations.length > limits.calls
          ? `${limits.calls.toLocaleString("en-US")} calls`
          : characters > limits.characters
            ? `${limits.characters.toLocaleString("en-US")} characters of output`
            : undefined;
      if (excess !== undefined)
        throw new OctavoError(
          "dataset_invalid",
          `${path}: more than ${excess}, which are held in memory: give a part of them, such as a day, or whole conversations drawn at random`,
          { param: path },
        );
    }
  return observations;
}
