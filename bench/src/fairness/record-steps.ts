import { basename } from "node:path";
import type { LLM, StepRecord } from "@octavo/engine";
import type { RecordedSteps } from "@octavo/engine/testing";
import { decodeRequest } from "../steps/step-costs.js";
import { readToEnd, saltedPrompt } from "../support/prompts.js";
import { median } from "../support/median.js";
import { thisMachine } from "../support/results.js";

const promptTokens = [0, 32, 64, 128, 256, 512];
const decodes = [0, 1, 2, 4, 8, 16, 32];
const contextTokens = 64;

/**
 * Measures what steps cost by the prompt tokens and the generating sequences in them, each a median. Processor time of the
 * process counts, so that a machine that does other things too says the same; load the model with one thread.
 */
export async function recordSteps(llm: LLM, repeats: number): Promise<RecordedSteps> {
  const ms: number[][] = promptTokens.map(() => decodes.map(() => 0));
  for (const [column, streams] of decodes.entries()) {
    for (const [row, length] of promptTokens.entries()) {
      if (streams > 0 || length > 0) ms[row]![column] = await stepMs(llm, length, streams, repeats);
    }
  }
  // No step is empty: what the first column's line begins with stands there.
  ms[0]![0] = Math.max(0, 2 * ms[1]![0]! - ms[2]![0]!);
  return {
    name: basename(llm.name),
    processor: thisMachine().cpu,
    promptTokens,
    decodes,
    ms: ms.map((row) => row.map((each) => Number(each.toPrecision(4)))),
  };
}

async function stepMs(llm: LLM, length: number, streams: number, repeats: number): Promise<number> {
  const { engine } = llm;
  const seen: number[] = [];
  let enough = (): void => {};
  // Asking again and again whether there are enough would cost processor time of its own.
  const isEnough = new Promise<void>((resolve) => {
    enough = resolve;
  });
  let lastCpu = process.cpuUsage();
  const onStep = ({ prefillTokens, decodeTokens }: StepRecord): void => {
    const { user, system } = process.cpuUsage(lastCpu);
    lastCpu = process.cpuUsage();
    if (prefillTokens === length && decodeTokens === streams) seen.push((user + system) / 1000);
    if (seen.length >= repeats) enough();
  };
  using _ = engine.observe({ onStep });
  let salt = 0;
  const prompt = (size: number): Int32Array => saltedPrompt(size, (salt += 1));
  const inject = (): Promise<void> => readToEnd(engine.generate(decodeRequest(prompt(length), 1)));
  if (streams === 0) {
    for (let run = 0; run < repeats; run += 1) await inject();
    return median(seen);
  }
  const abort = new AbortController();
  const running = Array.from({ length: streams }, () =>
    readToEnd(engine.generate(decodeRequest(prompt(contextTokens), 1000), abort.signal)).catch(() => {}),
  );
  if (length > 0) while (seen.length < repeats) await inject();
  await isEnough;
  abort.abort();
  await Promise.all(running);
  return median(seen);
}
