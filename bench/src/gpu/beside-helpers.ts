import { monitorEventLoopDelay } from "node:perf_hooks";
import type { LLM } from "@octavo/engine";

const resolutionMs = 1;

/** How late timers came in a stretch: HTTP waits as long. */
export interface LoopDelay {
  readonly p99Ms: number;
  readonly mostMs: number;
}

export async function withLoopDelay<T>(run: () => Promise<T>): Promise<T & { readonly loop: LoopDelay }> {
  const delay = monitorEventLoopDelay({ resolution: resolutionMs });
  delay.enable();
  const found = await run();
  delay.disable();
  const late = (nanoseconds: number): number => Math.max(0, nanoseconds / 1e6 - resolutionMs);
  return { ...found, loop: { p99Ms: late(delay.percentile(99)), mostMs: late(delay.max) } };
}

/** Runs while texts are tokenised and grammars compiled, one of each at a time, without end. */
export async function besideHelpers<T>(
  llm: LLM,
  run: () => Promise<T>,
): Promise<T & { readonly texts: number; readonly grammars: number }> {
  const text = "Sentences of several words, none of them cached. ".repeat(2000);
  const counts = { texts: 0, grammars: 0 };
  const over = new AbortController();
  const { signal } = over;
  const tokenising = async (): Promise<void> => {
    for (; !signal.aborted; counts.texts++) await llm.tokenizer.encodeAsync(`${counts.texts} ${text}`);
  };
  const compiling = async (): Promise<void> => {
    for (; !signal.aborted; counts.grammars++)
      await llm.engine.compileGrammar({ kind: "regex", pattern: `a{${counts.grammars + 1}}[a-z]{1,40}` });
  };
  const helpers = [tokenising(), compiling()];
  try {
    return { ...(await run()), ...counts };
  } finally {
    over.abort();
    await Promise.all(helpers);
  }
}
