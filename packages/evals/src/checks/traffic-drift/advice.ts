import type { Advice, Hypothesis } from "../check.js";

export function driftAdvice(hypotheses: readonly Hypothesis[]): readonly Advice[] {
  const failed = hypotheses.filter(({ verdict }) => verdict === "fail");
  const has = (part: string) => failed.some(({ name }) => name.includes(part));
  const advice: Advice[] = [];
  if (has("arrival") || has("dispersion") || has("patterns the evaluation never ran"))
    advice.push({
      knob: "recording",
      change:
        "replay production's arrivals: octavo eval check traffic-drift with the recorded spans (octavo traces export), or octavo bench serve --arrival trace",
      because: "a pattern that production has and the evaluation has not is one that nothing is known of",
    });
  if (has("tokens"))
    advice.push({
      knob: "datasets",
      change: "draw cases whose prompts and max_tokens are as long as production's",
      because: "batching, cache pressure and quality all depend on lengths",
    });
  if (has("tenants"))
    advice.push({
      knob: "tenant",
      change: "send cases under tenants in production's shares (x-tenant-id)",
      because: "fair scheduling and per-tenant bounds act on who asks",
    });
  if (has("lost"))
    advice.push({
      knob: "evaluation traffic",
      change: "score under the patterns that production has most of, or shadow a slice of its requests",
      because: "the score of the evaluation is not the one that users get",
    });
  return advice;
}
