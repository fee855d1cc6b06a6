import type { Advice } from "../check.js";
import type { Observation } from "../observation.js";

/** What keeps tenants apart, the likeliest first: by whether the small tenant waits in the queue, or in its steps. */
export function fairnessAdvice(shared: readonly Observation[]): readonly Advice[] {
  const queue: Advice[] = [
    {
      knob: "--scheduling-policy fair --tenants FILE",
      change:
        "serve the tenant that was served least first (Octavo); on vLLM give small tenants a lower `priority` with --scheduling-policy priority",
      because: "first-come queues let one tenant's burst stand before everybody",
    },
    {
      knob: "--max-queued-requests-per-tenant",
      change: "bound what one tenant may have waiting; on vLLM do it in the gateway",
      because: "past what the server can do, only refusing the large tenant keeps the small one's latency",
    },
  ];
  const steps: Advice[] = [
    {
      knob: "--max-num-batched-tokens",
      change:
        "lower it, and --long-prefill-token-threshold, --max-long-partial-prefills (vLLM: --max-num-partial-prefills)",
      because: "long prompts of others make every step that the small tenant generates in longer",
    },
  ];
  const isQueueing = queueShare(shared) >= 0.5;
  return [
    ...(isQueueing ? [...queue, ...steps] : [...steps, ...queue]),
    {
      knob: "min_replicas",
      change: "give the small tenant a deployment of its own (Ray Serve: one with a min_replicas floor)",
      because: "what is not shared needs no fairness",
    },
  ];
}

/** Share of the time to first token that was spent in the queue; 1 if it is not known. */
function queueShare(shared: readonly Observation[]): number {
  let queueMs = 0;
  let waitedMs = 0;
  for (const seen of shared) {
    if (seen.queueMs === undefined || seen.firstTokenMs === undefined) continue;
    queueMs += seen.queueMs;
    waitedMs += seen.firstTokenMs;
  }
  return waitedMs === 0 ? 1 : queueMs / waitedMs;
}
