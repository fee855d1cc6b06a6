import type { AskedAnswer } from "./ask-streaming.js";

/** What each cause of `octavo.serving_record` is to a reader. */
const causes: Readonly<Record<string, string>> = {
  preparation: "preparing the prompt",
  grammar: "compiling the grammar",
  queue: "waiting in the queue",
  prefill: "reading the prompt",
  eviction: "reading again what the cache had lost",
  prefill_burst: "prompts of other requests",
  preemption: "being preempted",
  not_scheduled: "other requests' turns",
  batch_growth: "more requests at once",
  slow_compute: "a busy machine",
  host: "work beside the model",
};

/** Tokens a second, the first token, and the main reason of the longest wait where the server says so. */
export function speedLine(answer: AskedAnswer): string {
  const { outputTokens, firstTokenMs, totalMs, record, finishReason, promptTokens } = answer;
  const parts: string[] = [];
  if (outputTokens !== undefined && firstTokenMs !== undefined && outputTokens > 1)
    parts.push(`${((outputTokens - 1) / ((totalMs - firstTokenMs) / 1000)).toFixed(1)} tokens/s`);
  if (firstTokenMs !== undefined) parts.push(`first token ${firstTokenMs.toFixed(0)} ms`);
  if (promptTokens !== undefined) parts.push(`${promptTokens} + ${outputTokens ?? "?"} tokens`);
  if (finishReason === "length") parts.push("cut at the length limit");
  const slowest = record?.slow_gaps.toSorted((one, other) => other.ms - one.ms)[0];
  const first = record?.first_token;
  if (slowest !== undefined && slowest.ms > (first?.ms ?? 0))
    parts.push(`slowest token ${slowest.ms.toFixed(0)} ms: ${causes[slowest.cause] ?? slowest.cause}`);
  else if (first !== undefined) parts.push(`most of the first token: ${causes[first.cause] ?? first.cause}`);
  return parts.join(", ");
}
