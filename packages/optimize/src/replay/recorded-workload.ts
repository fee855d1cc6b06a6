import { createHash } from "node:crypto";
import {
  type EvalCase,
  observationOf,
  type Observation,
  recordedExchanges,
  type ScheduledCase,
  type SpanRecord,
} from "@octavo/evals";
import { OctavoError } from "@octavo/protocol";
import { Random } from "@octavo/statistics";

/** What a recording says of one request: enough to send it again, or one of the same shape. */
export interface ReplayedRequest {
  /** From the first of the workload. */
  readonly atMs: number;
  readonly tenant: string | undefined;
  /** As it was asked, where its content was kept. */
  readonly asked: EvalCase | undefined;
  /** Of a prompt that was not kept; of a request that was refused before it was counted, an answered one's. */
  readonly promptTokens: number;
  /** Of these, what was found in the prefix cache: text that it shares with others of its tenant. */
  readonly cachedTokens: number;
  readonly outputTokens: number;
  /** Whether the cluster has it. */
  readonly isOfCluster: boolean;
}

/** A stretch of recorded calls, as they are replayed. */
export interface RecordedWorkload {
  readonly requests: readonly ReplayedRequest[];
  /** Calls that the recording holds, of which the workload is a stretch. */
  readonly numRecorded: number;
  readonly numWithPrompts: number;
}

/** A call of the recorded traffic. */
export interface RecordedCall {
  readonly span: SpanRecord;
  readonly isOfCluster: boolean;
}

/**
 * Of a recording the stretch of at most `mostRequests` requests that has most of the cluster, in order of arrival. Lengths that were
 * not recorded, as of refused requests, are those of answered ones, in turn.
 * @throws OctavoError `dataset_invalid` where no call of the recording is of the cluster
 */
export function recordedWorkload(calls: readonly RecordedCall[], mostRequests: number): RecordedWorkload {
  const ordered = calls.toSorted((a, b) => a.span.startEpochMs - b.span.startEpochMs);
  const stretch = stretchOf(ordered, mostRequests);
  if (!stretch.some(({ isOfCluster }) => isOfCluster))
    throw new OctavoError(
      "dataset_invalid",
      "none of the recorded calls is of this cluster: give the spans that it was found in",
      { param: "spans" },
    );
  const seen = stretch.map(({ span }) => observationOf(span, ""));
  const answered = seen.filter(
    ({ failureCode, promptTokens }) => failureCode === undefined && promptTokens !== undefined,
  );
  const beginMs = stretch[0]!.span.startEpochMs;
  let turn = 0;
  const like = (): Observation | undefined => answered[turn++ % Math.max(1, answered.length)];
  const requests = stretch.map(({ span, isOfCluster }, index): ReplayedRequest => {
    const exchanges = recordedExchanges(span);
    const own = seen[index]!;
    const asked = typeof exchanges === "string" ? undefined : exchanges[0]?.evalCase;
    const { promptTokens, completionTokens } = own;
    const other = promptTokens === undefined || completionTokens === undefined ? like() : undefined;
    const prompt = promptTokens ?? other?.promptTokens ?? usualPromptTokens;
    return {
      atMs: span.startEpochMs - beginMs,
      tenant: own.tenant,
      asked,
      promptTokens: prompt,
      cachedTokens: Math.round((own.cacheHitRatio ?? 0) * prompt),
      outputTokens: completionTokens ?? other?.completionTokens ?? usualOutputTokens,
      isOfCluster,
    };
  });
  return {
    requests,
    numRecorded: calls.length,
    numWithPrompts: requests.filter(({ asked }) => asked !== undefined).length,
  };
}

/** Where a recording has no answered call to take lengths from. */
export const [usualPromptTokens, usualOutputTokens] = [64, 32];

/** The window with most of the cluster; of several the first. */
export function stretchOf<T extends { readonly isOfCluster: boolean }>(
  ordered: readonly T[],
  most: number,
): readonly T[] {
  let inside = 0;
  let best = { start: 0, inside: -1 };
  for (const [index, { isOfCluster }] of ordered.entries()) {
    inside += Number(isOfCluster);
    const start = index - most + 1;
    if (start > 0) inside -= Number(ordered[start - 1]!.isOfCluster);
    if (inside > best.inside) best = { start: Math.max(0, start), inside };
  }
  return ordered.slice(best.start, best.start + most);
}

/** Tokens of a prompt by its words, as a server counts them: `base + perWord * words`. */
export interface TokenScale {
  readonly base: number;
  readonly perWord: number;
}

export interface ReplayOptions {
  readonly scale: TokenScale;
  readonly seed: number;
  /** How many times as fast as it was recorded. */
  readonly speedup: number;
}

/**
 * The workload as requests to send: recorded prompts with their own parameters; where none was kept, text of the recorded length that
 * shares its beginning with others of its tenant as far as it was cached, answered at the recorded length.
 */
export function scheduleOf(
  { requests }: RecordedWorkload,
  { scale, seed, speedup }: ReplayOptions,
): readonly ScheduledCase[] {
  return requests.map((request, index) => {
    const { atMs, tenant, asked } = request;
    const evalCase =
      asked === undefined
        ? likeOf(request, index, seed, scale)
        : { ...asked, id: `replay-${index}`, parameters: { temperature: 0, seed, ...asked.parameters } };
    return { evalCase, atMs: atMs / speedup, ...(tenant !== undefined && { tenant }) };
  });
}

function likeOf(
  { tenant, promptTokens, cachedTokens, outputTokens }: ReplayedRequest,
  index: number,
  seed: number,
  { base, perWord }: TokenScale,
): EvalCase {
  const wordsIn = (tokens: number): number => Math.max(0, Math.round((tokens - base) / perWord));
  const shared = wordsOf(new Random(seed).fork(tenantSeed(tenant)), wordsIn(cachedTokens));
  const own = wordsOf(
    new Random(seed * 1_000_003 + index),
    Math.max(1, wordsIn(promptTokens) - wordsIn(cachedTokens)),
  );
  const maxTokens = Math.max(1, outputTokens);
  return fixedCase(`replay-${index}`, shared === "" ? own : `${shared} ${own}`, maxTokens, tenant);
}

/** A case that is answered at a fixed length. */
export function fixedCase(id: string, content: string, maxTokens: number, tenant?: string): EvalCase {
  return {
    id,
    messages: [{ role: "user", content }],
    tools: [],
    context: undefined,
    expected: {},
    parameters: { maxTokens, temperature: 0, extraBody: { min_tokens: maxTokens } },
    tenant,
    cluster: undefined,
    tags: [],
    metadata: {},
  };
}

function tenantSeed(tenant = ""): number {
  return createHash("sha256").update(tenant).digest().readUInt32LE();
}

const words =
  "river stone window garden letter market winter signal copper bridge orange silver forest engine ticket harbor".split(
    " ",
  );

export function wordsOf(random: Random, count: number): string {
  return Array.from({ length: count }, () => random.pick(words)).join(" ");
}
