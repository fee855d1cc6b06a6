import type { ConfigPatch } from "./config-patch.js";
import type { FeedEntry } from "./feed-state.js";
import type { JudgedCause } from "./judged-causes.js";

type ServeChange = Omit<ConfigPatch, "of">;

/** Settings in force; those that are absent have their defaults. */
export type ServeSettings = Readonly<Record<string, unknown>>;

/** What of a cluster decides which setting is changed. */
export type FixEvidence = Pick<FeedEntry, "kind" | "cause"> &
  Partial<Pick<FeedEntry, "by_tenant" | "largest_batch" | "judged">>;

interface Known {
  readonly evidence: FixEvidence;
  readonly settings: ServeSettings;
  /** A setting's number, or what it usually is. */
  readonly current: (name: string, usual: number) => number;
}

type Proposal = (known: Known) => ServeChange | undefined;

const raised = (value: number, factor: number) => Math.round(value * factor);
const gibibytes = 2 ** 30;

const moreCache: Proposal = ({ current }) => ({
  set: { "kv-cache-memory": raised(current("kv-cache-memory", 4 * gibibytes), 4) },
  why: "the KV cache was too small for what ran at once",
});

const fairScheduling: ServeChange = {
  set: { "scheduling-policy": "fair" },
  why: "the steps' tokens went to other requests",
};

/** Fewer than these of what may run at once did: something else than the limit kept requests out. */
const fullShare = 0.75;
/** Of a cluster of several tenants, findings of one that has most of them. */
const dominantShare = 0.6;

/** On by default: where it was turned off, prompts that begin alike are computed whole, and keep others waiting. */
const caching: Proposal = ({ settings }) =>
  settings["enable-prefix-caching"] === false
    ? { set: { "enable-prefix-caching": true }, why: "prompts were computed whole, with prefix caching off" }
    : undefined;

const moreSequences: Proposal = (known) => {
  const { evidence, settings, current } = known;
  const uncached = caching(known);
  if (uncached !== undefined) return uncached;
  const limit = current("max-num-seqs", 256);
  const { by_tenant: byTenant = {}, largest_batch: largestBatch } = evidence;
  if (largestBatch !== undefined && largestBatch < fullShare * limit) return moreCache(known);
  const counts = Object.values(byTenant);
  const all = counts.reduce((sum, count) => sum + count, 0);
  if (
    counts.length > 1 &&
    Math.max(...counts) > dominantShare * all &&
    settings["scheduling-policy"] !== "fair"
  )
    return { ...fairScheduling, why: "one tenant's requests filled the queue that the others waited in" };
  return { set: { "max-num-seqs": raised(limit, 4) }, why: "requests waited for admission while others ran" };
};

const laterTimeout: Proposal = ({ current }) => {
  const [name] = ["ttft-timeout", "queue-timeout", "request-timeout"]
    .filter((timeout) => current(timeout, 0) > 0)
    .toSorted((a, b) => current(a, 0) - current(b, 0));
  return name === undefined
    ? undefined
    : // durations are milliseconds once read, and seconds in the file
      { set: { [name]: (4 * current(name, 0)) / 1000 }, why: "requests were ended before they could end" };
};

/**
 * What is changed first, by the cause that the engine measured (docs/guide/slow-tokens.md) or the error's code. Causes that no
 * setting of the server answers are not here: they are the model's, the prompt's or the machine's.
 */
const proposals: Readonly<Record<string, Proposal>> = {
  queue: moreSequences,
  queue_full: ({ current }) => ({
    set: { "max-queued-requests": Math.max(64, raised(current("max-queued-requests", 1024), 4)) },
    why: "requests were refused because too many waited",
  }),
  deadline_exceeded: laterTimeout,
  prefill: caching,
  prefill_burst: (known) => {
    const uncached = caching(known);
    if (uncached !== undefined) return uncached;
    const { current } = known;
    const bound = current("max-prefill-step-ms", 200);
    return {
      set: { "max-prefill-step-ms": bound === 0 ? 50 : Math.max(10, Math.floor(bound / 4)) },
      why: "long prompts of others took the steps in which streams decode",
    };
  },
  preemption: moreCache,
  eviction: moreCache,
  not_scheduled: () => fairScheduling,
  batch_growth: ({ current }) => ({
    set: { "max-num-seqs": Math.max(1, Math.floor(current("max-num-seqs", 256) / 2)) },
    why: "each step grew with the sequences beside it",
  }),
  context_length_exceeded: ({ current }) => ({
    set: { "max-model-len": raised(current("max-model-len", 4096), 4) },
    why: "prompts did not fit the configured context",
  }),
};

/** Settings that change answers, the first to be taken back first, and whose answers they change. */
const answerSettings: readonly {
  readonly name: string;
  readonly usual: unknown;
  readonly of: RegExp;
}[] = [
  { name: "tool-call-parser", usual: "auto", of: /tool|function|parameter/ },
  { name: "chat-template", usual: undefined, of: /./ },
  { name: "generation-config", usual: "auto", of: /./ },
  { name: "kv-cache-dtype", usual: "auto", of: /./ },
  { name: "dtype", usual: "auto", of: /./ },
];

/** Wrong answers: the setting that most likely made them is taken back to its default. */
const usualAnswers: Proposal = ({ evidence, settings }) => {
  const odd = answerSettings.find(
    ({ name, usual, of }) =>
      of.test(evidence.cause) && settings[name] !== undefined && settings[name] !== usual,
  );
  return odd === undefined
    ? undefined
    : {
        set: { [odd.name]: null },
        why: `answers were wrong under a ${odd.name} that is not the model's own`,
      };
};

/** Takes back the first of these that is not as it is by default. */
const takenBack =
  (...names: readonly string[]): Proposal =>
  ({ settings }) => {
    const odd = names.find((name) => {
      const usual = answerSettings.find((one) => one.name === name)?.usual ?? "auto";
      return settings[name] !== undefined && settings[name] !== usual;
    });
    return odd === undefined
      ? undefined
      : { set: { [odd]: null }, why: `a judge named what ${odd} decides as the cause` };
  };

/** What answers causes that a judge names; the prompt, the model and the input are no settings. */
const judgedProposals: Readonly<Partial<Record<JudgedCause, Proposal>>> = {
  chat_template: takenBack("chat-template"),
  tool_parser: takenBack("tool-call-parser"),
  precision: takenBack("kv-cache-dtype", "dtype", "quantization"),
  sampling: takenBack("generation-config"),
  context: (known) => proposals["context_length_exceeded"]?.(known),
};

/** Whether what was measured, or the error's code, names the cause. */
export function hasMeasuredCause({ cause }: Pick<FixEvidence, "cause">): boolean {
  return Object.hasOwn(proposals, cause);
}

/**
 * The change of `octavo serve`'s options to try first; undefined where none answers the cause. What was measured comes before what a
 * judge named, and that before what is usual.
 */
export function proposeFix(evidence: FixEvidence, settings: ServeSettings = {}): ConfigPatch | undefined {
  const known: Known = {
    evidence,
    settings,
    current: (name, usual) => {
      const value = settings[name];
      return typeof value === "number" && Number.isFinite(value) ? value : usual;
    },
  };
  const judged = evidence.judged?.cause;
  const proposed = hasMeasuredCause(evidence)
    ? proposals[evidence.cause]?.(known)
    : ((judged ? judgedProposals[judged]?.(known) : undefined) ??
      (evidence.kind === "answer" ? usualAnswers(known) : undefined));
  return proposed && { of: "serve", ...proposed };
}
