import type { LoadedAdapter } from "@octavo/engine";
import type { ModelCard, ModelList } from "@octavo/protocol";
import type { RequestContext } from "../http/request-context.js";
import { sendJson } from "../http/respond.js";
import type { Service } from "../service.js";

export function handleModels(service: Service, context: RequestContext): void {
  const list: ModelList = {
    object: "list",
    data: (service.models?.all ?? [service]).flatMap((each) => [
      ...each.modelNames.map((name) => modelCard(each, name, undefined)),
      ...each.adapters.map((adapter) => modelCard(each, adapter.name, adapter)),
    ]),
  };
  sendJson(context.response, 200, list);
}

/** Ids may hold slashes, escaped or not. */
export function handleModel(service: Service, context: RequestContext, id: string): void {
  const { adapter } = service.servedModel(id);
  sendJson(context.response, 200, modelCard(service, id, adapter));
}

/** An adapter's parent is the model that it adapts. */
function modelCard(service: Service, id: string, adapter: LoadedAdapter | undefined): ModelCard {
  const created = service.startedAtSeconds;
  const state = service.models?.stateOf(service);
  return {
    id,
    object: "model",
    created,
    owned_by: "octavo",
    root: adapter?.path ?? service.model.name,
    parent: adapter === undefined ? null : (adapter.baseModelName ?? service.modelNames[0]),
    max_model_len: service.model.engine.maxModelLen,
    ...(state !== undefined && { state }),
    permission: [
      {
        id: `modelperm-${service.fingerprint}`,
        object: "model_permission",
        created,
        allow_create_engine: false,
        allow_sampling: true,
        allow_logprobs: true,
        allow_search_indices: false,
        allow_view: true,
        allow_fine_tuning: false,
        organization: "*",
        group: null,
        is_blocking: false,
      },
    ],
  };
}
