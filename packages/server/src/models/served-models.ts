import type { RequestContext } from "../http/request-context.js";
import { requestQuery } from "../http/router.js";
import type { Endpoint } from "../routes/endpoint.js";
import type { ModelCard } from "@octavo/protocol";
import type { ServerModels, Service } from "../service.js";
import type { ModelPool } from "./model-pool.js";

/** The models of one server, and which of them a request is for: the one it names, else the first. */
export class ServedModels implements ServerModels {
  readonly all: readonly [Service, ...Service[]];
  readonly pool: ModelPool | undefined;

  /** Models that sleep by turns have a pool. */
  constructor(all: readonly [Service, ...Service[]], pool: ModelPool | undefined) {
    this.all = all;
    this.pool = pool;
    for (const service of all) service.models = this;
  }

  stateOf(service: Service): ModelCard["state"] {
    return this.pool?.stateOf(service);
  }

  /** The model of this name, or with an adapter of it; the first for no name and for one that nobody has. */
  named(name: string | null | undefined): Service {
    return this.all.find((service) => service.serves(name)) ?? this.all[0];
  }

  /** The service that answers a request. Where its model sleeps, it is awake then, and stays so until the answer is out. */
  async serviceFor(endpoint: Endpoint, context: RequestContext, rest: string): Promise<Service> {
    if (this.all.length === 1) return this.all[0];
    const service = await this.#chosen(endpoint, context, rest);
    if (this.pool !== undefined && (endpoint.runsModel ?? endpoint.span !== "none")) {
      const release = await this.pool.use(service, context.signal);
      if (context.response.closed) release();
      else context.response.once("close", release);
    }
    return service;
  }

  async #chosen(endpoint: Endpoint, context: RequestContext, rest: string): Promise<Service> {
    if (endpoint.path === "/v1/models/*") return this.named(rest);
    if (endpoint.path === "/v1/requests/*") {
      const id = rest.replace(/\/.*$/, "");
      return this.all.find(({ model }) => model.engine.evidence.request(id) !== undefined) ?? this.all[0];
    }
    const asked = requestQuery(context.request.url ?? "/").get("model");
    const named = asked ?? (endpoint.request === undefined ? undefined : modelOf(await context.peekBody()));
    const service = this.named(named);
    if (asked !== null) service.servedModel(asked);
    return service;
  }
}

function modelOf(body: unknown): string | undefined {
  const model = typeof body === "object" && body !== null && "model" in body ? body.model : undefined;
  return typeof model === "string" ? model : undefined;
}
