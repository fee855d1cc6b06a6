import type { Adapters } from "@octavo/engine";
import { type LoadLoraRequest, OctavoError, type UnloadLoraRequest } from "@octavo/protocol";
import type { RequestContext } from "../http/request-context.js";
import { sendText } from "../http/respond.js";
import type { Service } from "../service.js";
import { invalidField } from "@octavo/protocol/refusal";

/**
 * A caller with the operator's key learns what is wrong. On a server without keys, anybody may ask: all failures look alike, so
 * that they do not tell which paths exist.
 */
export async function handleLoadLora(
  service: Service,
  context: RequestContext,
  request: LoadLoraRequest,
): Promise<void> {
  const adapters = changeableAdapters(service);
  const { lora_name: name, lora_path: path } = request;
  if (service.modelNames.includes(name)) {
    throw invalidField("lora_name", `${JSON.stringify(name)} is the served model's own name`);
  }
  const { signal, account, log } = context;
  try {
    await adapters.load({ name, path }, { inPlace: request.load_inplace ?? false, signal });
  } catch (thrown) {
    const error = OctavoError.from(thrown);
    const isOfPath = error.param !== "lora_name" && error.code !== "shutting_down" && !signal.aborted;
    if (!isOfPath || account.key !== undefined) throw error;
    log.warn({ err: error, path }, "an adapter could not be loaded");
    const message = "lora_path: no adapter for this model was found there; the server's log says why";
    throw new OctavoError("not_found", message, { param: "lora_path" });
  }
  sendText(
    context.response,
    200,
    "text/plain; charset=utf-8",
    `Success: LoRA adapter '${name}' added successfully.`,
  );
}

export async function handleUnloadLora(
  service: Service,
  context: RequestContext,
  request: UnloadLoraRequest,
): Promise<void> {
  const adapters = changeableAdapters(service);
  const { name, numRequests } = adapters.unload(request.lora_name);
  const rest =
    numRequests === 0
      ? ""
      : ` Requests that still run under it: ${numRequests}; its memory is freed when they end.`;
  sendText(
    context.response,
    200,
    "text/plain; charset=utf-8",
    `Success: LoRA adapter '${name}' removed successfully.${rest}`,
  );
}

/** Throws `not_found` unless the operator allows it: the path in a request is read from the server's disk. */
export function changeableAdapters({ model, config }: Service): Adapters {
  if (model.adapters !== undefined && config.allowRuntimeLoraUpdating) return model.adapters;
  throw new OctavoError(
    "not_found",
    "loading and unloading adapters is off here; the server's operator can allow it with --enable-lora --allow-runtime-lora-updating",
  );
}
