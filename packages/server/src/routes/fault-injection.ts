import type { ActiveFault, Fault, FaultControl } from "@octavo/engine";
import { type FaultInfo, type FaultInjectionRequest, type FaultList, OctavoError } from "@octavo/protocol";
import { snakeCased } from "../generation/serving-records.js";
import type { RequestContext } from "../http/request-context.js";
import { sendJson } from "../http/respond.js";
import type { Service } from "../service.js";
import { invalidField } from "@octavo/protocol/refusal";

type FieldName = keyof FaultInjectionRequest;

/** Fields that each kind accepts. */
const fieldsOf: Readonly<Record<Fault["kind"], readonly FieldName[]>> = {
  evict: ["request_id", "tenant", "prompt_tokens", "cache_salt", "probability", "seed", "duration_ms"],
  preempt: ["request_id", "tenant", "probability", "seed", "duration_ms"],
  delay: ["delay_ms", "probability", "seed", "duration_ms"],
  throttle: ["factor", "duration_ms"],
};

export async function handleAddFault(
  service: Service,
  context: RequestContext,
  request: FaultInjectionRequest,
): Promise<void> {
  const faults = faultControl(service);
  const added = faults.add(faultOf(request, context.account.charged.cacheScope));
  context.log.warn({ fault: faultInfo(added) }, "a fault was added");
  sendJson(context.response, 200, faultInfo(added));
}

export function handleFaults(service: Service, context: RequestContext): void {
  const { active } = faultControl(service);
  const list: FaultList = { faults: active.map(faultInfo) };
  sendJson(context.response, 200, list);
}

export function handleClearFaults(service: Service, context: RequestContext): void {
  sendJson(context.response, 200, { num_cleared: faultControl(service).clear() });
}

export function handleClearFault(service: Service, context: RequestContext, id: string): void {
  const faults = faultControl(service);
  if (!/^\d{1,15}$/.test(id) || faults.clear(Number(id)) === 0)
    throw new OctavoError(
      "not_found",
      `there is no fault ${JSON.stringify(id.slice(0, 100))}; it may be over`,
    );
  sendJson(context.response, 200, { num_cleared: 1 });
}

function faultControl({ model }: Service): FaultControl {
  const { faults } = model.engine;
  if (faults === undefined) throw new OctavoError("internal_error", "the engine takes no faults");
  return faults;
}

/** `cacheScope`: the caller's, in whose cached prefixes prompt tokens are looked up. */
function faultOf(request: FaultInjectionRequest, cacheScope: string | undefined): Fault {
  const { kind } = request;
  for (const [name, value] of Object.entries(request)) {
    if (name === "kind" || value === null || value === undefined) continue;
    if (!fieldsOf[kind].includes(name as FieldName))
      throw invalidField(name, `not a field of the kind ${kind}`);
  }
  const durationMs = request.duration_ms ?? undefined;
  const chance = { probability: request.probability ?? undefined, seed: request.seed ?? undefined };
  const target = { requestId: request.request_id ?? undefined, tenant: request.tenant ?? undefined };
  switch (kind) {
    case "evict": {
      const promptTokens = request.prompt_tokens ? Int32Array.from(request.prompt_tokens) : undefined;
      const cacheSalt = request.cache_salt ?? undefined;
      return { kind, ...target, ...chance, durationMs, promptTokens, cacheSalt, cacheScope };
    }
    case "preempt":
      return { kind, ...target, ...chance, durationMs };
    case "delay":
      return { kind, ...chance, durationMs, delayMs: needed(request.delay_ms, "delay_ms", kind) };
    case "throttle":
      return { kind, durationMs, factor: needed(request.factor, "factor", kind) };
  }
}

function needed(value: number | null | undefined, name: FieldName, kind: Fault["kind"]): number {
  if (value !== null && value !== undefined) return value;
  throw invalidField(name, `needed for the kind ${kind}`);
}

function faultInfo({ id, fault, numInjected, remainingMs }: ActiveFault): FaultInfo {
  const {
    promptTokens,
    cacheScope: _,
    ...fields
  } = {
    promptTokens: undefined,
    cacheScope: undefined,
    ...fault,
  };
  const all = {
    id,
    ...fields,
    numPromptTokens: promptTokens?.length,
    remainingMs: remainingMs === undefined ? undefined : Math.round(remainingMs),
    numInjected,
  };
  const given = Object.entries(all).filter(([, value]) => value !== undefined);
  return Object.fromEntries(given.map(([name, value]) => [snakeCased(name), value])) as unknown as FaultInfo;
}
