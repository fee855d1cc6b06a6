import { clopperPearson } from "@octavo/statistics";
import { comparePaired } from "../judging/paired-comparison.js";
import type { Planned } from "../judging/loss-effect.js";
import { marginEffect, type TestedEffect, unseenEffect } from "../judging/verdicts.js";
import type { Fleet, FleetCase } from "./fleet.js";
import type { ReplicaSkewSettings } from "./settings.js";

/** Names what fails where at least three replicas answered and no majority of them agrees. */
export const noMajority = "no majority agrees on logits";

const equalityMethod = "equality of logits; Clopper-Pearson";

export interface Fingerprints {
  /** One for each replica; none where answers carry no digests of logits, or the machines differ. */
  readonly effects: readonly TestedEffect[];
  readonly planned: readonly Planned[];
  /** By replica: cases on which it stands alone against an agreeing majority, of those where there is one. */
  readonly differing: ReadonlyMap<
    string,
    { readonly differs: number; readonly of: number; readonly first: string | undefined }
  >;
  readonly kind: "digest" | "output" | undefined;
  /** Cases without a majority, as between two replicas that disagree. Where there are more replicas they count for none. */
  readonly undecided: number;
}

/**
 * Each replica's answers against what more than half of the fleet says, bit for bit where there are digests. With two
 * replicas it is unknown which one is wrong, so both are named. With more, cases without a majority name none, as
 * where one of three disagrees and another failed.
 */
export function compareFingerprints(fleet: Fleet, settings: ReplicaSkewSettings): Fingerprints {
  const hasDigests =
    fleet.cases.length > 0 &&
    fleet.cases.every(({ answers }) => [...answers.values()].every((one) => one.logitsDigest !== undefined));
  const hasOutputs = fleet.cases.some(({ answers }) =>
    [...answers.values()].some((one) => one.output !== undefined),
  );
  const kind = hasDigests ? "digest" : hasOutputs ? "output" : undefined;
  const counts = new Map(
    fleet.replicas.map((replica) => [replica, { differs: 0, of: 0, first: undefined as string | undefined }]),
  );
  let undecided = 0;
  let split = 0;
  for (const one of kind === undefined ? [] : fleet.cases) {
    const prints = printsOf(one, kind === "digest");
    const agreed = majorityOf(prints);
    if (agreed === undefined) {
      undecided++;
      if (prints.size > 2) split++;
      // of two, either may be wrong; among more, other cases tell which one is
      if (fleet.replicas.length > 2) continue;
    }
    for (const [replica, print] of prints) {
      const own = counts.get(replica)!;
      own.of += 1;
      if (print === agreed) continue;
      own.differs += 1;
      own.first ??= one.caseId;
    }
  }
  const { alpha, differenceMargin } = settings;
  const isDecisive = hasDigests && settings.isHomogeneous;
  const isSeen = fleet.replicas.length === 2 || undecided <= settings.maxMissingShare * fleet.cases.length;
  const effects: TestedEffect[] = [];
  const planned: Planned[] = [];
  for (const [replica, { differs, of }] of isDecisive ? counts : []) {
    const name = `${replica}: logits unlike the fleet's`;
    if (of === 0) {
      if (undecided > 0) effects.push(unseenEffect(name, { margin: differenceMargin, alpha }));
      continue;
    }
    const interval = clopperPearson(differs, of, 1 - alpha);
    effects.push(
      marginEffect(
        {
          name,
          method: equalityMethod,
          estimate: differs / of,
          interval,
          pValue: differs > 0 ? 0 : 1,
          isWithin: interval[1] <= differenceMargin && isSeen,
        },
        { margin: differs > 0 ? 0 : differenceMargin, alpha },
      ),
    );
    const scores = Array.from({ length: of }, (_, index) => ({
      cluster: String(index),
      before: 1,
      after: Number(index >= differs),
    }));
    planned.push({
      name: `${replica}: equality`,
      compared: comparePaired(scores)!,
      margin: differenceMargin,
      isEquality: true,
    });
  }
  // three or more do not agree: one of them is wrong, and nothing says which
  if (isDecisive && split > 0)
    effects.push(
      marginEffect(
        {
          name: noMajority,
          method: equalityMethod,
          estimate: split / fleet.cases.length,
          interval: clopperPearson(split, fleet.cases.length, 1 - alpha),
          pValue: 0,
          isWithin: false,
        },
        { margin: 0, alpha },
      ),
    );
  return { effects, planned, differing: counts, kind, undecided };
}

function printsOf({ answers }: FleetCase, byDigest: boolean): ReadonlyMap<string, string> {
  return new Map(
    [...answers].flatMap(([replica, answer]) => {
      const print = byDigest ? answer.logitsDigest : answer.output;
      return print === undefined ? [] : [[replica, print] as const];
    }),
  );
}

/** What more than half say. */
function majorityOf(prints: ReadonlyMap<string, string>): string | undefined {
  const counts = new Map<string, number>();
  for (const print of prints.values()) counts.set(print, (counts.get(print) ?? 0) + 1);
  for (const [print, count] of counts) if (2 * count > prints.size) return print;
  return undefined;
}
