import { artifactUnsupported } from "@octavo/text/files/artifact-file";
import { checkExperts } from "../config/config-experts.js";
import type { ExpertsConfig } from "../program/model-config.js";
import type { ExpertRouting, GgufBase } from "../program/model-family.js";
import type { GgufValues } from "./values.js";

/** Every `pattern`-th layer has full attention, unless the file says which. */
export function ggufWindows(
  values: GgufValues,
  { numLayers }: GgufBase,
  window: number | undefined,
  pattern: number,
): (number | undefined)[] {
  const length = Math.min(numLayers, 1_024);
  const layers = Array.from({ length }, (_, layer) => layer);
  if (window === undefined || window === 0) return layers.map(() => undefined);
  const listed = values.booleans("attention.sliding_window_pattern");
  if (listed !== undefined) return layers.map((layer) => (listed[layer] === true ? window : undefined));
  const every = values.number("attention.sliding_window_pattern") ?? pattern;
  return layers.map((layer) => (every > 0 && (layer + 1) % every === 0 ? undefined : window));
}

/** The mixture of experts that a file describes. @throws OctavoError `artifact_invalid` or `artifact_unsupported` */
export function ggufExperts(
  values: GgufValues,
  { intermediateSize, numLayers }: GgufBase,
  kind: {
    readonly normalizeWeights: boolean;
    readonly hasOwnSize?: boolean;
    readonly isShared?: boolean;
    /** Only for families with routing other than a plain softmax; a file of any other family that asks for it is refused. */
    readonly routing?: ExpertRouting;
  },
): { readonly experts: ExpertsConfig } {
  const scale = values.number("expert_weights_scale") ?? 0;
  const gating = values.number("expert_gating_func") ?? 0;
  if (gating > 2 || (gating === 2 && kind.routing === undefined))
    throw artifactUnsupported(
      values.path,
      `has experts whose weights are not a softmax (expert_gating_func ${gating}), which is not supported yet`,
    );
  const numDense = values.number("leading_dense_block_count") ?? 0;
  const key = (name: string): string => values.keyOf(name);
  const perToken = values.needNumber("expert_used_count");
  const ownSize = values.uniform("expert_feed_forward_length") ?? Math.trunc(intermediateSize / perToken);
  const sharedIntermediateSize = values.number("expert_shared_feed_forward_length") ?? intermediateSize;
  const experts: ExpertsConfig = {
    count: values.needNumber("expert_count"),
    perToken,
    intermediateSize: kind.hasOwnSize === true ? ownSize : intermediateSize,
    normalizeWeights: values.boolean("expert_weights_norm") ?? kind.normalizeWeights,
    ...(kind.isShared === true && { sharedIntermediateSize }),
    denseLayers: Array.from({ length: Math.min(numLayers, 1_024) }, (_, layer) => layer < numDense),
    ...kind.routing,
    ...(gating === 2 && { scoring: "sigmoid" as const }),
    ...(scale !== 0 && scale !== 1 && { weightScale: scale }),
  };
  return {
    experts: checkExperts(values.path, experts, {
      count: key("expert_count"),
      perToken: key("expert_used_count"),
      intermediateSize: key(kind.hasOwnSize === true ? "expert_feed_forward_length" : "feed_forward_length"),
      sharedIntermediateSize: key("expert_shared_feed_forward_length"),
    }),
  };
}
