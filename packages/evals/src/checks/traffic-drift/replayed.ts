import type { Observation } from "../observation.js";

/** Tag of requests sent as recorded: same times, tenants and output lengths. */
export const replayedTag = "replayed";

/** What a replay has from the recording cannot differ from it, and shows nothing. */
export function isReplay(evaluation: readonly Observation[]): boolean {
  return evaluation.some(({ tags }) => tags.includes(replayedTag));
}

export const replayNote =
  "The evaluation's side is a replay: arrivals, tenants and output lengths are the recording's own and were not judged. Judged is whether the cases have production's prompt lengths, and what they score under its arrivals. Whether an evaluation as it was run had production's traffic, its own spans say (--spans production=FILE evaluation=FILE).";
