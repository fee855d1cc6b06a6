// What a step costs beside the native call, by number of streams and of waiting requests.
import { LLM } from "@octavo/engine";
import { defaultModelFolder, modelFile } from "./cpu/models/model-file.js";
import { stepCostRatio } from "./cpu/workers/waiting-requests.js";
import { decode, stepCosts, type StepOverhead } from "./steps/step-costs.js";
import { type BenchCase, report } from "./support/results.js";
import { checkAnswers, closedLoop, embeddedModel, loadFromOutside, serve } from "./support/served-model.js";

const promptOf = (length: number): Int32Array => Int32Array.from({ length }, (_, index) => 300 + index);

function casesOf(name: string, costs: StepOverhead, target?: BenchCase["target"]): BenchCase[] {
  const { stepMs, betweenCallsMs, threadMs, heapBytesPerToken, numSteps } = costs;
  return [
    {
      name: `${name}: between two native calls`,
      unit: "% of a step",
      octavo: (100 * betweenCallsMs) / stepMs,
      ...(target !== undefined && { target }),
      details: { stepMs, betweenCallsMs, numSteps },
    },
    {
      name: `${name}: JavaScript, overlapped or not`,
      unit: "% of a step",
      octavo: (100 * threadMs) / stepMs,
      ...(target !== undefined && { target }),
      details: { threadMs, heapBytesPerToken },
    },
  ];
}

async function ofStreams(title: string, llm: LLM, streams: number, tokens: number): Promise<BenchCase[]> {
  const { engine } = llm;
  await decode(engine, promptOf(24), streams, 16);
  const costs = await stepCosts(engine, streams, () => decode(engine, promptOf(24), streams, tokens));
  return casesOf(`${title}, ${streams} ${streams === 1 ? "stream" : "streams"}`, costs);
}

async function overHttp(title: string, llm: LLM, outputTokens: number): Promise<BenchCase[]> {
  const streams = 32;
  return serve(llm, async (baseUrl) => {
    const load = { numRequests: streams, inputTokens: 24, outputTokens, warmupRequests: 0 };
    const run = () => loadFromOutside(closedLoop(baseUrl, streams, load));
    await run();
    const costs = await stepCosts(llm.engine, streams, async () => void (await run()));
    return casesOf(`${title}, ${streams} streams over HTTP`, costs, { atMost: 5 });
  });
}

async function ofWaiting(schedulingPolicy: "fcfs" | "priority"): Promise<BenchCase[]> {
  const streams = 32;
  await using llm = await LLM.load(embeddedModel, {
    schedulingPolicy,
    maxNumSeqs: streams,
    maxQueuedRequests: 10_000,
  });
  const cases: BenchCase[] = [];
  for (const waiting of [100, 1000, 10_000]) {
    cases.push({
      name: `step with ${waiting} waiting requests (${schedulingPolicy})`,
      unit: "of one with none",
      octavo: await stepCostRatio(llm, { kind: "waiting", streams, waiting, steps: 100 }, promptOf),
      target: { atMost: 1.05 },
    });
  }
  return cases;
}

const cases: BenchCase[] = [];
{
  await using llm = await LLM.load(embeddedModel);
  await checkAnswers(llm);
  for (const streams of [1, 8, 32, 256]) cases.push(...(await ofStreams("octavo-mini", llm, streams, 200)));
  cases.push(...(await overHttp("octavo-mini", llm, 200)));
}
{
  const { path } = modelFile(defaultModelFolder(), "qwen2.5-0.5b", "q4_0");
  await using llm = await LLM.load(path, { maxModelLen: 1024 });
  await llm.packed;
  for (const streams of [1, 32]) cases.push(...(await ofStreams("Qwen2.5-0.5B Q4_0", llm, streams, 40)));
  cases.push(...(await overHttp("Qwen2.5-0.5B Q4_0", llm, 40)));
}
for (const policy of ["fcfs", "priority"] as const) cases.push(...(await ofWaiting(policy)));
report("steps", cases);
