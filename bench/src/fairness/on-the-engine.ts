import { LLM, type SchedulingPolicyName } from "@octavo/engine";
import { requestsOf, type SimulatedRequest, type TenantLoad } from "@octavo/engine/testing";
import { decodeRequest } from "../steps/step-costs.js";
import { embeddedModel } from "../support/served-model.js";
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
  /** Of the time of the load, which goes on where nobody is there and is not waited for. */
  readonly busyShare: number;
}

const maxNumSeqs = 32;
const lengths = { promptTokens: 250, outputTokens: 48, burstiness: 0.25 };

/** Everything at once: warms an engine up, and says what it can do. */
const probe = requestsOf({ ...lengths, account: { tenant: "probe" }, requestsPerMinute: 60_000 }, 500, 5);

/** The two tenants, 1 to 100, so that the large one takes `share` of what the engine can do. */
export async function calibratedLoads(share: number): Promise<{ small: TenantLoad; large: TenantLoad }> {
  const { busyMs } = await runLoad("fcfs", probe);
  const large = Math.round((share * probe.length * 60_000) / busyMs);
  return {
    small: { ...lengths, account: { tenant: "small" }, requestsPerMinute: large / 100 },
    large: { ...lengths, account: { tenant: "large" }, requestsPerMinute: large },
  };
}

/**
 * An open loop of requests on a new engine that is warm, each timed from when it was due. Where nothing is under way, the
 * time until the next request is skipped: an idle engine would not notice it, and a small tenant's percentile takes many
 * of its rare requests.
 */
export async function runLoad(
  schedulingPolicy: SchedulingPolicyName,
  requests: readonly SimulatedRequest[],
): Promise<EngineRun> {
  await using llm = await LLM.load(embeddedModel, {
    schedulingPolicy,
    maxNumSeqs,
    maxNumBatchedTokens: 512,
    maxQueuedRequests: 1_000_000,
    enablePrefixCaching: false,
  });
  await offer(llm, probe);
  return await offer(llm, requests);
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
  const prompt = Int32Array.from(
    { length: promptTokens },
    (_, at) => 300 + ((at * 7919 + index * 104_729) % 1500),
  );
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
