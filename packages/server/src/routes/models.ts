import { OctavoError, type ModelCard, type ModelList } from "@octavo/protocol";
import type { RequestContext } from "../http/request-context.js";
import { sendJson } from "../http/respond.js";
import type { Service } from "../service.js";

/** GET /v1/models */
export function handleModels(service: Service, context: RequestContext): void {
  const list: ModelList = {
    object: "list",
    data: service.modelNames.map((name) => modelCard(service, name)),
  };
  sendJson(context.response, 200, list);
}

/** GET /v1/models/{id}; ids may hold slashes, escaped or not. */
export function handleModel(service: Service, context: RequestContext, id: string): void {
  if (!service.modelNames.includes(id)) {
    throw new OctavoError(
      "model_not_found",
      `the model ${JSON.stringify(id.slice(0, 200))} does not exist here`,
      { param: "model" },
    );
  }
  sendJson(context.response, 200, modelCard(service, id));
}

function modelCard(service: Service, id: string): ModelCard {
  const created = service.startedAtSeconds;
  return {
    id,
    object: "model",
    created,
    owned_by: "octavo",
    root: service.model.name,
    parent: null,
    max_model_len: service.model.engine.maxModelLen,
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
