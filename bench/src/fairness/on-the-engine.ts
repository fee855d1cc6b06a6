import { LLM, type SchedulingPolicyName } from "@octavo/engine";
import { requestsOf, type SimulatedRequest, together } from "@octavo/engine/testing";
import { decodeRequest } from "../steps/step-costs.js";
import { saltedPrompt } from "../support/prompts.js";
import { InFlight } from "./in-flight.js";

/** How a request fared on the engine, in ms. */
export interface Fared {
  readonly tenant: string;
  readonly firstTokenMs: number;
  readonly e2eMs: number;
}

export interface EngineRun {
  readonly fared: readonly Fared[];
  /** Tokens of prompts and outputs. */
  readonly tokens: number;
  /** In which any request was under way. */
  readonly busyMs: number;
  /** Share of the load's duration in which any request was running. */
  readonly busyShare: number;
}

/** What small tenants and a large one, of a hundred times the requests of each, ask a model for. */
export interface EngineCase {
  readonly name: string;
  readonly model: string;
  /** Mean per request. */
  readonly promptTokens: number;
  readonly outputTokens: number;
  /** Each beside the large one and the other small ones: of a slow model's time, several make more of what is measured. */
  readonly smallTenants: number;
}

/** Loads of one seed. */
export interface Loads {
  /** Requests of each small tenant. */
  readonly small: readonly (readonly SimulatedRequest[])[];
  /** Requests of all small tenants and the large one. */
  readonly all: readonly SimulatedRequest[];
}

const maxNumSeqs = 32;
const timesAsMany = 100;
const burstiness = 0.25;
const smallTenant = "small";

/** About so many requests at once: warms an engine up, and says what it can do. */
function atOnce({ promptTokens, outputTokens }: EngineCase, count: number): readonly SimulatedRequest[] {
  const load = { promptTokens, outputTokens, burstiness, account: { tenant: "probe" } };
  return requestsOf({ ...load, requestsPerMinute: 60_000 }, count, 5);
}

/** Requests a minute of a small tenant, so that all of them together take `share` of what the engine can do. */
export async function calibratedRate(engineCase: EngineCase, share: number): Promise<number> {
  await using llm = await loadModel(engineCase, "fcfs");
  await offer(llm, atOnce(engineCase, 2 * maxNumSeqs));
  const requests = atOnce(engineCase, 6 * maxNumSeqs);
  const { busyMs } = await offer(llm, requests);
  const total = (share * requests.length * 60_000) / busyMs;
  return total / (timesAsMany + engineCase.smallTenants);
}

/** So long that there are about `numSmall` requests of small tenants. */
export function loadsOf(engineCase: EngineCase, rate: number, numSmall: number, seed: number): Loads {
  const { promptTokens, outputTokens, smallTenants } = engineCase;
  const durationMs = (numSmall * 60_000) / rate / smallTenants;
  const requests = (tenant: string, requestsPerMinute: number, own: number): readonly SimulatedRequest[] =>
    requestsOf(
      { account: { tenant }, requestsPerMinute, burstiness, promptTokens, outputTokens },
      durationMs,
      own,
    );
  const small = Array.from({ length: smallTenants }, (_, index) =>
    requests(`${smallTenant}-${index}`, rate, seed + 104_729 * index),
  );
  return { small, all: together(...small, requests("large", timesAsMany * rate, seed + 7919)) };
}

export function isSmall({ tenant }: Fared): boolean {
  return tenant.startsWith(smallTenant);
}

/**
 * Open loops of requests, one after another on a new engine that is warm, each request timed from when it was due. Where nothing
 * is under way, the time until the next request is skipped: an idle engine would not notice it, and a small tenant's percentile
 * takes many of its rare requests.
 */
export async function runLoads(
  engineCase: EngineCase,
  schedulingPolicy: SchedulingPolicyName,
  loads: readonly (readonly SimulatedRequest[])[],
): Promise<readonly EngineRun[]> {
  await using llm = await loadModel(engineCase, schedulingPolicy);
  await offer(llm, atOnce(engineCase, 2 * maxNumSeqs));
  const runs: EngineRun[] = [];
  for (const requests of loads) runs.push(await offer(llm, requests));
  return runs;
}

function loadModel({ model }: EngineCase, schedulingPolicy: SchedulingPolicyName): Promise<LLM> {
  return LLM.load(model, {
    schedulingPolicy,
    maxNumSeqs,
    maxNumBatchedTokens: 512,
    maxQueuedRequests: 1_000_000,
    maxModelLen: 1024,
    enablePrefixCaching: false,
  });
}

async function offer(llm: LLM, requests: readonly SimulatedRequest[]): Promise<EngineRun> {
  const inFlight = new InFlight();
  const fared: Promise<Fared>[] = [];
  const beginMs = performance.now();
  /** Where the load's time began: earlier with everything that was skipped. */
  let startMs = beginMs;
  for (const [index, request] of requests.entries()) {
    await inFlight.untilIdle(startMs + request.arrivalMs - performance.now());
    startMs = Math.min(startMs, performance.now() - request.arrivalMs);
    fared.push(inFlight.track(run(llm, request, index, startMs + request.arrivalMs)));
  }
  const all = await Promise.all(fared);
  const endMs = performance.now();
  return {
    fared: all,
    tokens: requests.reduce((sum, { promptTokens, outputTokens }) => sum + promptTokens + outputTokens, 0),
    busyMs: endMs - beginMs,
    busyShare: (endMs - beginMs) / (endMs - startMs),
  };
}

async function run(llm: LLM, request: SimulatedRequest, index: number, dueMs: number): Promise<Fared> {
  const { account, promptTokens, outputTokens } = request;
  const prompt = saltedPrompt(promptTokens, index);
  let firstTokenMs: number | undefined;
  const events = llm.engine.generate({ ...decodeRequest(prompt, outputTokens), account, arrivalMs: dueMs });
  for await (const event of events) {
    if (event.kind === "delta") firstTokenMs ??= performance.now() - dueMs;
  }
  return {
    tenant: account.tenant,
    firstTokenMs: firstTokenMs ?? Number.NaN,
    e2eMs: performance.now() - dueMs,
  };
}
