import type { KvCacheSpec } from "@octavo/kernels";
import type { LoadedModel } from "../model/load-model.js";

/** What a stage keeps of a whole model's cache. */
export function ownCache(
  { states, ...spec }: KvCacheSpec,
  loaded: Pick<LoadedModel, "numLayers" | "states">,
): KvCacheSpec {
  const widths = loaded.states.flatMap((state) => states?.widths[state] ?? []);
  return {
    ...spec,
    numLayers: Math.max(1, loaded.numLayers),
    ...(states !== undefined && widths.length > 0 && { states: { ...states, widths } }),
  };
}
