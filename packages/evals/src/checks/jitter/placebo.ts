import { groupBy } from "@octavo/protocol";
import type { Placebo } from "../judging/false-alarms.js";
import type { JitterSettings } from "./settings.js";

/** Turns of the quiet time, dealt to both sides: streams of one turn shared its steps, so they stay together. */
export function quietPlacebo({ baseline, current, sliceMs }: JitterSettings): Placebo {
  return (observations, random) => {
    const quiet = observations.filter(({ condition }) => condition === baseline);
    const turns = [
      ...groupBy(quiet, ({ scheduledEpochMs }) => Math.floor(scheduledEpochMs / sliceMs)).values(),
    ];
    const isJudged = random.shuffle(turns.map((_, index) => index % 2 === 0));
    return turns.flatMap((turn, index) =>
      isJudged[index] === true ? turn.map((seen) => ({ ...seen, condition: current })) : turn,
    );
  };
}
