import { createHash, timingSafeEqual } from "node:crypto";
import { resolveSamplingParams } from "@octavo/engine";
import {
  type CachedPrefixInfo,
  OctavoError,
  replicaKeyHeader,
  type WarmPrefixesRequest,
  warmPrefixesRequest,
} from "@octavo/protocol";
import type { RequestContext } from "../http/request-context.js";
import { sendJson } from "../http/respond.js";
import { requestQuery } from "../http/router.js";
import type { Service } from "../service.js";
import { type Endpoint, endpoint, endpointWithBody } from "./endpoint.js";

/** What one replica tells another through their cluster: prompts of every tenant, so that only who shows the key is answered. */
export const prefixCacheEndpoints: readonly Endpoint[] = [
  endpoint({
    method: "GET",
    path: "/prefix_cache/hot",
    onlyWith: "replicaKey",
    access: "admin",
    span: "none",
    answer: "json",
    summary:
      "`?max_tokens=n`: the cached prefixes that requests found most, as token ids; only for the cluster, with `--replica-key`.",
    handle: handleHotPrefixes,
  }),
  endpointWithBody({
    method: "POST",
    path: "/prefix_cache/warm",
    onlyWith: "replicaKey",
    access: "admin",
    span: "none",
    answer: "json",
    summary:
      "Computes such prefixes into the cache, each under its own scope and salt; only for the cluster, with `--replica-key`.",
    request: warmPrefixesRequest,
    handle: handleWarmPrefixes,
  }),
];

const mostTokens = 1_048_576;

function handleHotPrefixes(service: Service, context: RequestContext): void {
  checkReplicaKey(service, context);
  const asked = Number(requestQuery(context.request.url ?? "/").get("max_tokens") ?? mostTokens);
  const maxTokens = Number.isInteger(asked) && asked > 0 ? Math.min(asked, mostTokens) : mostTokens;
  const prefixes = service.model.engine
    .hotPrefixes(maxTokens)
    .map(({ tokens, cacheScope, cacheSalt, heat }): CachedPrefixInfo => ({
      tokens: [...tokens],
      cache_scope: cacheScope ?? null,
      cache_salt: cacheSalt ?? null,
      heat,
    }));
  sendJson(context.response, 200, { prefixes });
}

/** One after the other; those that do not fit, or not in time, are left out. */
async function handleWarmPrefixes(
  service: Service,
  context: RequestContext,
  { prefixes, timeout_ms }: WarmPrefixesRequest,
): Promise<void> {
  checkReplicaKey(service, context);
  const { engine, tokenizer } = service.model;
  const signal = AbortSignal.any([context.signal, AbortSignal.timeout(timeout_ms)]);
  let [numPrefixes, numTokens] = [0, 0];
  for (const [index, { tokens, cache_scope, cache_salt }] of prefixes.entries()) {
    if (signal.aborted) break;
    const promptTokens = Int32Array.from(tokens);
    service.checkTokens(promptTokens, `prefixes[${index}].tokens`);
    const numPromptTokens = tokens.length;
    const { maxModelLen } = engine;
    if (numPromptTokens >= maxModelLen) continue;
    const params = resolveSamplingParams(
      { maxTokens: 1, temperature: 0, ignoreEos: true },
      { defaults: {}, vocabSize: tokenizer.vocabSize, maxModelLen, numPromptTokens },
    );
    const events = engine.generate(
      {
        kind: "generate",
        requestId: `${context.octavoId}-${index}`,
        promptTokens,
        params,
        account: {
          tenant: clusterTenant,
          ...(typeof cache_scope === "string" && { cacheScope: cache_scope }),
        },
        ...(typeof cache_salt === "string" && { cacheSalt: cache_salt }),
      },
      signal,
    );
    const isWhole = await isComputed(events);
    if (!isWhole) break;
    numPrefixes += 1;
    numTokens += tokens.length;
  }
  sendJson(context.response, 200, { prefixes: numPrefixes, tokens: numTokens });
}

/** Whom warming is accounted to. */
const clusterTenant = "cluster";

async function isComputed(events: ReturnType<Service["model"]["engine"]["generate"]>): Promise<boolean> {
  let isWhole = false;
  for await (const event of events)
    if (event.kind === "delta")
      isWhole ||= event.deltas.some(({ finishReason }) => finishReason === "length");
  return isWhole;
}

/** Who has no key is told no more than that there is nothing here. */
function checkReplicaKey({ config }: Service, { request }: RequestContext): void {
  const digest = (key: string): Buffer => createHash("sha256").update(key).digest();
  const shown = request.headers[replicaKeyHeader];
  const isKnown =
    config.replicaKey !== undefined &&
    typeof shown === "string" &&
    timingSafeEqual(digest(shown), digest(config.replicaKey));
  if (!isKnown)
    throw new OctavoError("not_found", `this is for the cluster, which shows ${replicaKeyHeader}`);
}
