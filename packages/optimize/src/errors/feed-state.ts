import { OctavoError } from "@octavo/protocol";
import { z } from "zod";
import { type FixProof, fixProofSchema } from "../replay/fix-proof.js";
import type { FindingCluster } from "./clustering/cluster-findings.js";
import { type CauseJudgement, judgementSchema } from "./judged-causes.js";

/** What an entry of the error feed can be. */
export const feedStatuses = ["new", "escalating", "acknowledged", "fixed", "regressed"] as const;
/** Where a cluster stands in its life. */
export type FeedStatus = (typeof feedStatuses)[number];

const entrySchema = z.strictObject({
  id: z.string(),
  kind: z.string(),
  cause: z.string(),
  wording: z.string(),
  status: z.enum(feedStatuses),
  /** When the status was set, ms since 1970. */
  since: z.number(),
  first_seen: z.number(),
  last_seen: z.number(),
  /** Findings now, and when the feed was brought up to date before. */
  count: z.int().nonnegative(),
  previous_count: z.int().nonnegative(),
  /** How much alike its findings are: different wordings, the share with the commonest, and the mean distance from it. */
  wordings: z.int().positive().optional(),
  commonest_share: z.number().optional(),
  spread: z.number().optional(),
  traces: z.array(z.string()),
  tenants: z.array(z.string()),
  replicas: z.array(z.string()),
  lost_ms: z.number(),
  quotes: z.array(z.strictObject({ field: z.string(), text: z.string(), trace: z.string() })),
  /** Findings by tenant, of those that name theirs. */
  by_tenant: z.record(z.string(), z.int().positive()).optional(),
  /** Most sequences that ran beside one of its calls. */
  largest_batch: z.number().optional(),
  /** The gateway's target that failed, and the routes on which it was asked. */
  target: z.string().optional(),
  routes: z.array(z.string()).optional(),
  /** Fewest other attempts that the target had, and the share of all its attempts that it failed. */
  outstanding: z.number().optional(),
  failed_share: z.number().optional(),
  /** What a judge named as the cause, where nothing that was measured does. */
  judged: judgementSchema.optional(),
  /** What replays said of the last patch that was tried. */
  proof: fixProofSchema.optional(),
});
const stateSchema = z.strictObject({ version: z.literal(1), entries: z.array(entrySchema) });

/** A cluster of the error feed as its state file keeps it: status, times, fix and proof. */
export type FeedEntry = z.output<typeof entrySchema>;
/** What the error feed's state file holds. */
export type FeedState = z.output<typeof stateSchema>;

/** A feed that has seen nothing. */
export const emptyFeed: FeedState = { version: 1, entries: [] };

/** Traces that an entry keeps, with their quotes. */
const keptExamples = 5;

/** Throws `invalid_option` that names the file. */
export function parseFeedState(path: string, text: string): FeedState {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new OctavoError("invalid_option", `${path} is not JSON`, { param: path, cause });
  }
  const parsed = stateSchema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw new OctavoError(
    "invalid_option",
    `${path} is no state of the error feed: ${z.prettifyError(parsed.error)}`,
    {
      param: path,
    },
  );
}

/**
 * The feed after these clusters, of all findings that are kept, were found. A cluster that was fixed and has a finding since is
 * `regressed`; one with twice as many findings as before, and at least five more, is `escalating`, unless it was acknowledged.
 * Clusters without findings now keep their last figures.
 */
export function updateFeed(state: FeedState, clusters: readonly FindingCluster[], nowMs: number): FeedState {
  const before = new Map(state.entries.map((entry) => [entry.id, entry]));
  const found = clusters.map((cluster) => {
    const old = before.get(cluster.id);
    before.delete(cluster.id);
    return entryOf(cluster, old, nowMs);
  });
  return { version: 1, entries: [...found, ...before.values()] };
}

function entryOf(cluster: FindingCluster, old: FeedEntry | undefined, nowMs: number): FeedEntry {
  const { id, kind, cause, wording, findings } = cluster;
  const last = findings.at(-1)!.epochMs;
  const count = findings.length;
  const status = statusOf(old, count, last);
  const batches = findings.flatMap(({ batchSize }) => batchSize ?? []);
  const byTenant = countBy(findings.flatMap(({ tenant }) => tenant ?? []));
  const distinct = (values: readonly (string | undefined)[]) => [
    ...new Set(values.filter((value) => value !== undefined)),
  ];
  return {
    id,
    kind,
    cause,
    wording,
    status,
    since: status === old?.status ? old.since : nowMs,
    first_seen: Math.min(old?.first_seen ?? Infinity, findings[0]!.epochMs),
    last_seen: Math.max(old?.last_seen ?? 0, last),
    count,
    previous_count: old?.count ?? 0,
    wordings: cluster.numWordings,
    commonest_share: cluster.commonestShare,
    spread: cluster.spread,
    traces: distinct(findings.map(({ traceId }) => traceId)).slice(0, keptExamples),
    tenants: distinct(findings.map(({ tenant }) => tenant)).toSorted(),
    replicas: distinct(findings.map(({ replica }) => replica)).toSorted(),
    lost_ms: findings.reduce((sum, { lostMs }) => sum + (lostMs ?? 0), 0),
    quotes: findings
      .slice(0, keptExamples)
      .flatMap(({ quotes, traceId }) => quotes.map((quote) => ({ ...quote, trace: traceId }))),
    ...(Object.keys(byTenant).length > 0 && { by_tenant: byTenant }),
    ...(batches.length > 0 && { largest_batch: batches.reduce((most, size) => Math.max(most, size), 0) }),
    ...ofGateway(findings),
    ...(old?.judged !== undefined && { judged: old.judged }),
    ...(old?.proof !== undefined && { proof: old.proof }),
  };
}

function ofGateway(
  findings: FindingCluster["findings"],
): Pick<FeedEntry, "target" | "routes" | "outstanding" | "failed_share"> {
  const target = findings.find((one) => one.target !== undefined)?.target;
  const routes = [...new Set(findings.flatMap(({ route }) => route ?? []))].toSorted();
  const besides = findings.flatMap(({ outstanding }) => outstanding ?? []);
  const share = findings.at(-1)?.failedShare;
  return {
    ...(target !== undefined && { target }),
    ...(routes.length > 0 && { routes }),
    ...(besides.length > 0 && { outstanding: besides.reduce((least, one) => Math.min(least, one)) }),
    ...(share !== undefined && { failed_share: share }),
  };
}

function countBy(names: readonly string[]): Record<string, number> {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return Object.fromEntries(counts);
}

function statusOf(old: FeedEntry | undefined, count: number, lastMs: number): FeedStatus {
  if (old === undefined) return "new";
  if (old.status === "fixed" && lastMs > old.since) return "regressed";
  const grows = count >= 2 * old.count && count >= old.count + 5;
  return grows && (old.status === "new" || old.status === "escalating") ? "escalating" : old.status;
}

/** Throws `not_found` where no entry's id begins so, or several do. */
export function entryNamed(state: FeedState, id: string): FeedEntry {
  const found = state.entries.filter((entry) => entry.id.startsWith(id));
  if (found.length === 1) return found[0]!;
  throw new OctavoError(
    "not_found",
    found.length === 0
      ? `no cluster of the feed is ${id}: octavo errors list shows them`
      : `${found.length} clusters of the feed begin with ${id}`,
    { param: "id" },
  );
}

/** Throws as `entryNamed`. */
export function markEntry(state: FeedState, id: string, status: FeedStatus, nowMs: number): FeedState {
  return changeEntry(state, id, { status, since: nowMs });
}

/** Keeps what replays said; an accepted patch makes the cluster `fixed`. Throws as `entryNamed`. */
export function recordProof(state: FeedState, id: string, proof: FixProof): FeedState {
  const fixed = { status: "fixed", since: proof.at } as const;
  return changeEntry(state, id, { proof, ...(proof.verdict === "accepted" && fixed) });
}

/** Keeps what a judge named. Throws as `entryNamed`. */
export function recordJudgement(state: FeedState, id: string, judged: CauseJudgement): FeedState {
  return changeEntry(state, id, { judged });
}

function changeEntry(state: FeedState, id: string, change: Partial<FeedEntry>): FeedState {
  const changed = entryNamed(state, id);
  return {
    version: 1,
    entries: state.entries.map((entry) => (entry === changed ? { ...entry, ...change } : entry)),
  };
}
