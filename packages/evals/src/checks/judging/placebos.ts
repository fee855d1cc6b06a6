import type { Random } from "@octavo/statistics";
import type { Observation } from "../observation.js";
import type { Placebo } from "./false-alarms.js";

/** Swaps what a case did under two conditions, or does not, as a coin falls: then neither condition did anything. */
export function swapConditions(one: string, other: string): Placebo {
  return (observations, random) => {
    const swaps = coinsByCase(random);
    return observations.flatMap((observation) => {
      const { condition, caseId } = observation;
      if (condition !== one && condition !== other) return [];
      if (!swaps(caseId)) return [observation];
      return [{ ...observation, condition: condition === one ? other : one }];
    });
  };
}

/** As above, on the small tenant's observations only. */
export function swapSmallTenant(settings: {
  readonly solo: string;
  readonly shared: string;
  readonly smallTenant: string;
}): Placebo {
  const swap = swapConditions(settings.solo, settings.shared);
  return (observations, random) =>
    swap(
      observations.filter(({ tenant }) => tenant === settings.smallTenant),
      random,
    );
}

/**
 * As if an undisturbed answer and its repetition were one with a disturbance and one without. Where nothing was repeated,
 * answers with and without the disturbance are swapped.
 */
export function disturbNothing(undisturbed: string, repeated: string, disturbed: string): Placebo {
  return (observations, random) => {
    const hasRepeated = observations.some(({ condition }) => condition === repeated);
    const source = hasRepeated ? repeated : disturbed;
    const relabelled = observations.flatMap((observation) =>
      observation.condition === undisturbed
        ? [observation]
        : observation.condition === source
          ? [{ ...observation, condition: disturbed }]
          : [],
    );
    return swapConditions(undisturbed, disturbed)(relabelled, random).map(withoutLosses);
  };
}

/**
 * Shuffles which replica gave which answer to a case. Digests are left out: chance cannot make logits differ, so one replica
 * that does would fail every dealing of them.
 */
export const shuffleReplicas: Placebo = (observations, random) => {
  const cases = new Map<string, Observation[]>();
  for (const observation of observations)
    cases.set(observation.caseId, [...(cases.get(observation.caseId) ?? []), observation]);
  return [...cases.values()].flatMap((answers) => {
    const bare = answers.map(({ logitsDigest: _digest, ...rest }) => rest);
    const replicas = random.shuffle(answers.map(({ replica }) => replica));
    return bare.map((answer, index) => ({ ...answer, replica: replicas[index] }));
  });
};

/** Shuffles the lengths of prompts and of answers between cases, and the scores of an answer between its parts. */
export const shufflePlaces: Placebo = (observations, random) => {
  const lengths = random.shuffle(observations.map(({ promptTokens }) => promptTokens));
  const outputLengths = random.shuffle(observations.map(({ completionTokens }) => completionTokens));
  return observations.map((observation, index) => {
    const { parts, slices } = observation;
    return {
      ...observation,
      promptTokens: lengths[index],
      completionTokens: outputLengths[index],
      ...(parts === undefined ? {} : { parts: shuffleValues(parts, random) }),
      ...(slices === undefined ? {} : { slices: shuffleValues(slices, random) }),
    };
  });
};

type Parts = NonNullable<Observation["parts"]>;

function shuffleValues(parts: Parts, random: Random): Parts {
  const values = new Map(
    [...new Set(parts.map(({ evaluator }) => evaluator))].map((evaluator) => [
      evaluator,
      random.shuffle(parts.flatMap((part) => (part.evaluator === evaluator ? [part.value] : []))),
    ]),
  );
  return parts.map((part) => ({ ...part, value: values.get(part.evaluator)!.pop()! }));
}

/** Nothing was lost, so nothing says that it was. */
function withoutLosses(observation: Observation): Observation {
  const { evictedPrefixTokens: _evicted, ...rest } = observation;
  return { ...rest, preemptions: undefined, recomputedTokens: undefined, cacheHitRatio: undefined };
}

function coinsByCase(random: Random): (caseId: string) => boolean {
  const coins = new Map<string, boolean>();
  return (caseId) => {
    const known = coins.get(caseId) ?? random.uniform() < 0.5;
    coins.set(caseId, known);
    return known;
  };
}
