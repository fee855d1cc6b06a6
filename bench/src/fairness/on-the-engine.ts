import { LLM, type SchedulingPolicyName } from "@octavo/engine";
import { requestsOf, type SimulatedRequest, type TenantLoad, together } from "@octavo/engine/testing";
import { decodeRequest } from "../steps/step-costs.js";
import { embeddedModel } from "../support/served-model.js";

/** How a request fared on the engine, in ms. */
export interface Fared {
  readonly tenant: string;
  readonly firstTokenMs: number;
  readonly e2eMs: number;
}

export interface EngineRun {
  readonly fared: readonly Fared[];
  /** Tokens of prompts and outputs by the seconds in which the backend computed. */
  readonly tokensPerBusySecond: number;
  readonly busyShare: number;
}

const maxNumSeqs = 32;

/** The two tenants, 1 to 100, so that the large one takes `share` of what the engine can do. */
export async function calibratedLoads(share: number): Promise<{ small: TenantLoad; large: TenantLoad }> {
  const lengths = { promptTokens: 250, outputTokens: 48, burstiness: 0.25 };
  const probe = requestsOf({ ...lengths, account: { tenant: "probe" }, requestsPerMinute: 60_000 }, 300, 5);
  const startMs = performance.now();
  await runLoad("fcfs", probe);
  const perMinute = (probe.length * 60_000) / (performance.now() - startMs);
  const large = Math.round(share * perMinute);
  return {
    small: { ...lengths, account: { tenant: "small" }, requestsPerMinute: large / 100 },
    large: { ...lengths, account: { tenant: "large" }, requestsPerMinute: large },
  };
}

/** An open loop of requests, each timed from when it was due. */
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
  let busyMs = 0;
  using _ = llm.engine.observe({ onStep: ({ computeMs }) => void (busyMs += computeMs) });
  const startMs = performance.now();
  const fared = await Promise.all(requests.map((request, index) => run(llm, request, index, startMs)));
  const tokens = requests.reduce(
    (sum, { promptTokens, outputTokens }) => sum + promptTokens + outputTokens,
    0,
  );
  return {
    fared,
    tokensPerBusySecond: (1000 * tokens) / busyMs,
    busyShare: busyMs / (performance.now() - startMs),
  };
}

async function run(llm: LLM, request: SimulatedRequest, index: number, startMs: number): Promise<Fared> {
  const { account, arrivalMs, promptTokens, outputTokens } = request;
  const dueMs = startMs + arrivalMs;
  await new Promise((resolve) => setTimeout(resolve, Math.max(0, dueMs - performance.now())));
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

/** Both tenants' requests over a time. */
export function bothOf(
  { small, large }: { readonly small: TenantLoad; readonly large: TenantLoad },
  durationMs: number,
): { readonly ofSmall: readonly SimulatedRequest[]; readonly all: readonly SimulatedRequest[] } {
  const ofSmall = requestsOf(small, durationMs, 1);
  return { ofSmall, all: together(ofSmall, requestsOf(large, durationMs, 2)) };
}
