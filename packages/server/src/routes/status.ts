import { OctavoError } from "@octavo/protocol";
import type { RequestContext } from "../http/request-context.js";
import { sendJson, sendText } from "../http/respond.js";
import { prometheusContentType, Registry } from "@octavo/tracing/prometheus";
import type { Service } from "../service.js";
import { hideTenants } from "../tenants/tenant-labels.js";
import { isOperators } from "../tenants/ownership.js";
import { serverVersion } from "../version.js";

/** 200 while requests are taken, 503 while draining or after the engine failed. */
export function handleHealth(service: Service, context: RequestContext): void {
  const all: readonly Service[] = service.models?.all ?? [service];
  const failure = all.map(({ model }) => model.engine.failure).find((each) => each !== undefined);
  if (failure !== undefined)
    throw new OctavoError("engine_failed", `the engine stopped: ${failure.message}`, { cause: failure });
  if (service.isDraining) throw new OctavoError("shutting_down", "the server is draining");
  context.response.writeHead(200, { "content-length": 0 }).end();
}

export function handleVersion(_service: Service, context: RequestContext): void {
  sendJson(context.response, 200, { version: serverVersion });
}

export function handleLoad(service: Service, context: RequestContext): void {
  sendJson(context.response, 200, { server_load: Math.max(0, service.httpMetrics.inFlight - 1) });
}

/** On a server with keys, tenants' names are shown only with the operator's key. */
export function handleMetrics(
  { keys, registry, models }: Service,
  { account, response }: RequestContext,
): void {
  const mayName = !keys.required || (account.key !== undefined && isOperators(account.key));
  const text = Registry.exposeAll(models?.all.map((each) => each.registry) ?? [registry]);
  const shown = mayName ? text : hideTenants(text, (name) => keys.pseudonym(name));
  sendText(response, 200, prometheusContentType, shown);
}
