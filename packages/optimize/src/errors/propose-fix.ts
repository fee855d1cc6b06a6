import type { FindingCluster } from "./clustering/cluster-findings.js";

/** A change of `octavo serve`'s configuration: keys as in the file of `--config`. */
export interface ServePatch {
  readonly set: Readonly<Record<string, number | string | boolean>>;
  /** Why this is expected to help, in one sentence. */
  readonly why: string;
}

/** Settings in force; those that are absent have their defaults. */
export type ServeSettings = Readonly<Record<string, unknown>>;

type Proposal = (current: (name: string, usual: number) => number) => ServePatch;

const raised = (bytes: number, factor: number) => Math.round(bytes * factor);
const gibibytes = 2 ** 30;

const moreCache: Proposal = (current) => ({
  set: { "kv-cache-memory": raised(current("kv-cache-memory", 4 * gibibytes), 1.5) },
  why: "the KV cache was too small for what ran at once",
});

/**
 * What is changed first, by the cause that the engine measured (docs/guide/slow-tokens.md) or the error's code. Causes that no
 * setting of the server answers are not here: they are the model's, the prompt's or the machine's.
 */
const proposals: Readonly<Record<string, Proposal>> = {
  queue: (current) => ({
    set: { "max-num-seqs": raised(current("max-num-seqs", 256), 2) },
    why: "requests waited for admission while others ran",
  }),
  queue_full: (current) => ({
    set: { "max-queued-requests": raised(current("max-queued-requests", 1024), 2) },
    why: "requests were refused because too many waited",
  }),
  prefill_burst: (current) => {
    const threshold = current("long-prefill-token-threshold", current("max-num-batched-tokens", 2048) / 4);
    return {
      set: { "long-prefill-token-threshold": Math.max(64, Math.floor(threshold / 2)) },
      why: "long prompts of others took the steps in which streams decode",
    };
  },
  preemption: moreCache,
  eviction: moreCache,
  not_scheduled: () => ({
    set: { "scheduling-policy": "fair" },
    why: "the steps' tokens went to other requests",
  }),
  batch_growth: (current) => ({
    set: { "max-num-seqs": Math.max(1, Math.floor(current("max-num-seqs", 256) / 2)) },
    why: "each step grew with the sequences beside it",
  }),
  context_length_exceeded: (current) => ({
    set: { "max-model-len": raised(current("max-model-len", 4096), 2) },
    why: "prompts did not fit the configured context",
  }),
};

/** The change to try first; undefined where no setting answers the cause. */
export function proposeFix(
  { cause }: Pick<FindingCluster, "cause">,
  settings: ServeSettings = {},
): ServePatch | undefined {
  return proposals[cause]?.((name, usual) => {
    const value = settings[name];
    return typeof value === "number" && Number.isFinite(value) ? value : usual;
  });
}

/** As lines for the file of `--config`. */
export function renderPatch({ set }: ServePatch): string {
  return Object.entries(set)
    .map(([name, value]) => `${name}: ${value}\n`)
    .join("");
}
