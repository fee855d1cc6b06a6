import type { SharedStore } from "../store/shared-store.js";

const nameOf = (rollout: string): string => `purged:${rollout}`;

/** From now on, no cached answer that this rollout's canary wrote for calls that arrived before `atMs` (since 1970) is served. */
export async function purgeRollout(store: SharedStore, rollout: string, atMs: number): Promise<void> {
  for (;;) {
    const known = await store.readDocument(nameOf(rollout));
    if (await store.writeDocument(nameOf(rollout), String(atMs), known?.version ?? 0)) return;
  }
}

/** Whether what a rollout's canary wrote for a call that arrived then has been purged. */
export async function isPurged(store: SharedStore, rollout: string, arrivedMs: number): Promise<boolean> {
  const purged = await store.readDocument(nameOf(rollout));
  return purged !== undefined && arrivedMs <= Number(purged.value);
}
