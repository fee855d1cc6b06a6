import type { LanguageModel } from "@octavo/engine";
import type { ServerConfig } from "./config.js";

/** Names that requests may use for the model itself; the first is the one that answers carry. */
export function servedNames(
  model: Pick<LanguageModel, "name">,
  config: Pick<ServerConfig, "servedModelNames">,
): readonly [string, ...string[]] {
  const [first = model.name, ...others] = config.servedModelNames;
  return [first, ...others];
}
