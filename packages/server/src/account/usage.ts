import type { Usage } from "@octavo/engine";
import { usageInfo, type UsageInfo } from "@octavo/protocol";

/** The total of several engine requests. */
export function totalUsage(usages: readonly Usage[]): Usage {
  const sum = (field: keyof Usage): number => usages.reduce((total, usage) => total + usage[field], 0);
  return {
    promptTokens: sum("promptTokens"),
    completionTokens: sum("completionTokens"),
    cachedTokens: sum("cachedTokens"),
  };
}

/** In the form of OpenAI's API. */
export function wireUsage(usage: Usage, reasoningTokens?: number): UsageInfo {
  return usageInfo(usage.promptTokens, usage.completionTokens, usage.cachedTokens, reasoningTokens);
}
