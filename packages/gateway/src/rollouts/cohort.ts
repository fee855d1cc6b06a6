import { createHash } from "node:crypto";

/**
 * Where a key falls in [0, 1), for one rollout: the same on every instance and at every stage, so that a cohort only grows; and
 * independent between rollouts, so that it is not always the same tenants who go first.
 */
export function cohortPosition(rollout: string, key: string): number {
  const digest = createHash("sha256").update(`${rollout}\0${key}`).digest();
  return digest.readUIntBE(0, 6) / 2 ** 48;
}
