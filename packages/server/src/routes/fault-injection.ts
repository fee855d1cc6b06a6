import type { ActiveFault, Fault, FaultControl } from "@octavo/engine";
import {
  type FaultInfo,
  type FaultInjectionRequest,
  faultInjectionRequest,
  type FaultList,
  OctavoError,
} from "@octavo/protocol";
import { snakeCased } from "../generation/serving-records.js";
import type { RequestContext } from "../http/request-context.js";
import { sendJson } from "../http/respond.js";
import type { Route } from "../http/router.js";
import type { Service } from "../service.js";

type FieldName = keyof FaultInjectionRequest;

/** Which fields go with which kind. */
const fieldsOf: Readonly<Record<Fault["kind"], readonly FieldName[]>> = {
  evict: ["request_id", "tenant", "prompt_tokens", "cache_salt", "probability", "seed", "duration_ms"],
  preempt: ["request_id", "tenant", "probability", "seed", "duration_ms"],
  delay: ["delay_ms", "probability", "seed", "duration_ms"],
  throttle: ["factor", "duration_ms"],
};

/** Only there where they are enabled. */
export function faultRoutes(service: Service): readonly Route[] {
  const path = "/fault_injection";
  const access = "key";
  return [
    {
      method: "POST",
      path,
      access,
      summary: "Makes the engine evict, preempt, wait or be slow; only with `--enable-fault-injection`.",
      request: faultInjectionRequest,
      handle: (context) => handleAddFault(service, context),
    },
    {
      method: "GET",
      path,
      access,
      summary: "The faults that stand; only with `--enable-fault-injection`.",
      handle: (context) => handleFaults(service, context),
    },
    {
      method: "DELETE",
      path,
      access,
      summary: "Takes all of them back; only with `--enable-fault-injection`.",
      handle: (context) => handleClearFaults(service, context),
    },
    {
      method: "DELETE",
      path: `${path}/*`,
      access,
      summary: "Takes the one of that id back; only with `--enable-fault-injection`.",
      handle: (context, id) => handleClearFault(service, context, id),
    },
  ];
}

/** POST /fault_injection */
async function handleAddFault(service: Service, context: RequestContext): Promise<void> {
  const faults = operatorsFaults(service, context);
  const request = await service.readRequest(context, faultInjectionRequest);
  const added = faults.add(faultOf(request));
  context.log.warn({ fault: faultInfo(added) }, "a fault was added");
  sendJson(context.response, 200, faultInfo(added));
}

/** GET /fault_injection */
function handleFaults(service: Service, context: RequestContext): void {
  const { active } = operatorsFaults(service, context);
  const list: FaultList = { faults: active.map(faultInfo) };
  sendJson(context.response, 200, list);
}

/** DELETE /fault_injection */
function handleClearFaults(service: Service, context: RequestContext): void {
  sendJson(context.response, 200, { num_cleared: operatorsFaults(service, context).clear() });
}

/** DELETE /fault_injection/ID */
function handleClearFault(service: Service, context: RequestContext, id: string): void {
  const faults = operatorsFaults(service, context);
  if (!/^\d{1,15}$/.test(id) || faults.clear(Number(id)) === 0)
    throw new OctavoError(
      "not_found",
      `there is no fault ${JSON.stringify(id.slice(0, 100))}; it may be over`,
    );
  sendJson(context.response, 200, { num_cleared: 1 });
}

/** Faults hit everybody, so a tenant's own key does not open them. */
function operatorsFaults(service: Service, { key }: RequestContext): FaultControl {
  const { faults } = service.model.engine;
  if (faults === undefined) throw new OctavoError("internal_error", "the engine takes no faults");
  if (key?.tenant !== undefined)
    throw new OctavoError(
      "unauthorized",
      "this key is a tenant's; faults are for the operator's (--api-key)",
    );
  return faults;
}

function faultOf(request: FaultInjectionRequest): Fault {
  const { kind } = request;
  for (const [name, value] of Object.entries(request)) {
    if (name === "kind" || value === null || value === undefined) continue;
    if (!fieldsOf[kind].includes(name as FieldName))
      throw new OctavoError("invalid_request", `${name}: not a field of the kind ${kind}`, { param: name });
  }
  const durationMs = request.duration_ms ?? undefined;
  const chance = { probability: request.probability ?? undefined, seed: request.seed ?? undefined };
  const target = { requestId: request.request_id ?? undefined, tenant: request.tenant ?? undefined };
  switch (kind) {
    case "evict": {
      const promptTokens = request.prompt_tokens ? Int32Array.from(request.prompt_tokens) : undefined;
      const cacheSalt = request.cache_salt ?? undefined;
      return { kind, ...target, ...chance, durationMs, promptTokens, cacheSalt };
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
  throw new OctavoError("invalid_request", `${name}: needed for the kind ${kind}`, { param: name });
}

function faultInfo({ id, fault, numInjected, remainingMs }: ActiveFault): FaultInfo {
  const { promptTokens, ...fields } = { promptTokens: undefined, ...fault };
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
