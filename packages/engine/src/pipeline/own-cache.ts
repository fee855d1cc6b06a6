import type { KvCacheSpec } from "@octavo/kernels";
import type { LoadedModel } from "../model/load-model.js";

/** What a stage keeps of a whole model's cache. */
export function ownCache(
  { states, layers, ...spec }: KvCacheSpec,
  loaded: Pick<LoadedModel, "kvLayers" | "states">,
): KvCacheSpec {
  const own = loaded.kvLayers.flatMap((layer) => layers[layer] ?? []);
  const widths = loaded.states.flatMap((state) => states?.widths[state] ?? []);
  return {
    ...spec,
    layers: own.length > 0 ? own : layers.slice(0, 1),
    ...(states !== undefined && widths.length > 0 && { states: { ...states, widths } }),
  };
}
