import type { ConfigJson } from "./config-schema.js";

/** Qwen's rule: under `use_sliding_window`, layers from `max_window_layers` on. */
export function lateWindow(layer: number, config: ConfigJson): boolean {
  return config.use_sliding_window === true && layer >= (config.max_window_layers ?? 28);
}

/** Gemma's rule: every `pattern`-th layer has full attention, the others a window. */
export function windowExceptEvery(pattern: number): (layer: number, config: ConfigJson) => boolean {
  return (layer, config) => (layer + 1) % (config.sliding_window_pattern ?? pattern) !== 0;
}
