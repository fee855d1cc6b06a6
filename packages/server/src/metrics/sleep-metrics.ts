import type { LanguageModel } from "@octavo/engine";
import type { Registry } from "@octavo/tracing/prometheus";

/** vLLM's gauge of its sleep mode. */
export function registerSleepMetrics(registry: Registry, { sleepMode }: LanguageModel): void {
  const state = registry.gauge(
    "vllm:engine_sleep_state",
    "1 for the state that the model is in: awake, weights_offloaded (asleep at level 1), discard_all (at level 2); asleep at level 0, none is.",
    ["sleep_state"],
  );
  registry.onCollect(() => {
    const level = sleepMode?.level;
    state.set(Number(level === undefined), { sleep_state: "awake" });
    state.set(Number(level === 1), { sleep_state: "weights_offloaded" });
    state.set(Number(level === 2), { sleep_state: "discard_all" });
  });
}
