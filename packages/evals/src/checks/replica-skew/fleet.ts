import type { Observation } from "../observation.js";
import type { ReplicaSkewSettings } from "./settings.js";

/** Every case with its answers by replica. */
export interface Fleet {
  readonly replicas: readonly string[];
  readonly cases: readonly FleetCase[];
  readonly failures: ReadonlyMap<string, number>;
  /** Cases that some replica did not answer. */
  readonly incomplete: number;
  readonly unnamed: number;
}

export interface FleetCase {
  readonly caseId: string;
  readonly cluster: string;
  readonly answers: ReadonlyMap<string, Observation>;
}

/** Cases by replica; of a case that one replica answered several times, the first answer counts. */
export function fleetOf(observations: readonly Observation[], { condition }: ReplicaSkewSettings): Fleet {
  const replicas = new Set<string>();
  const failures = new Map<string, number>();
  const cases = new Map<string, { cluster: string; answers: Map<string, Observation> }>();
  let unnamed = 0;
  for (const observation of observations) {
    if (condition !== null && observation.condition !== condition) continue;
    const { replica, caseId } = observation;
    if (replica === undefined) {
      unnamed++;
      continue;
    }
    replicas.add(replica);
    if (observation.failureCode !== undefined) {
      failures.set(replica, (failures.get(replica) ?? 0) + 1);
      continue;
    }
    const own = cases.get(caseId) ?? { cluster: observation.cluster ?? caseId, answers: new Map() };
    if (!own.answers.has(replica)) own.answers.set(replica, observation);
    cases.set(caseId, own);
  }
  const answered = [...cases].map(([caseId, { cluster, answers }]) => ({ caseId, cluster, answers }));
  return {
    replicas: [...replicas].toSorted(),
    cases: answered.filter(({ answers }) => answers.size >= 2),
    failures,
    incomplete: answered.filter(({ answers }) => answers.size < replicas.size).length,
    unnamed,
  };
}
