// What a step costs beside the native call, by number of streams and of waiting requests.
import { type GenerationEvent, type LanguageModel, LLM, type SchedulingPolicyName } from "@octavo/engine";
import { median } from "./support/median.js";
import { type BenchCase, report } from "./support/results.js";
import { checkAnswers, closedLoop, embeddedModel, loadFromOutside, serve } from "./support/served-model.js";
import { halfBillionModel } from "./steps/half-billion-model.js";
import { decode, decodeRequest, stepCosts, type StepCosts } from "./steps/step-costs.js";

const waitingCounts = [0, 100, 1000, 10_000];
const promptTokens = Int32Array.from({ length: 24 }, (_, index) => 300 + index);

function streamCases(name: string, costs: StepCosts, target?: BenchCase["target"]): BenchCase[] {
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

async function ofStreams(
  title: string,
  model: LanguageModel,
  streams: number,
  tokens: number,
): Promise<BenchCase[]> {
  const { engine } = model;
  await decode(engine, promptTokens, streams, 16);
  const costs = await stepCosts(engine, streams, () => decode(engine, promptTokens, streams, tokens));
  return streamCases(`${title}, ${streams} streams`, costs);
}

async function overHttp(title: string, model: LanguageModel, outputTokens: number): Promise<BenchCase[]> {
  const streams = 32;
  return serve(model, async (baseUrl) => {
    const load = (requests: number) =>
      loadFromOutside(
        closedLoop(baseUrl, streams, {
          numRequests: requests,
          inputTokens: 24,
          outputTokens,
          warmupRequests: 0,
        }),
      );
    await load(streams);
    const costs = await stepCosts(model.engine, streams, async () => void (await load(2 * streams)));
    return streamCases(`${title}, ${streams} streams over HTTP`, costs, { atMost: 5 });
  });
}

async function drain(events: AsyncIterable<GenerationEvent>): Promise<void> {
  for await (const event of events) if (event.kind === "done") return;
}

/** Step cost with requests waiting, over that with none: the median of rounds that measure all. */
async function ofWaiting(schedulingPolicy: SchedulingPolicyName): Promise<BenchCase[]> {
  const streams = 32;
  await using llm = await LLM.load(embeddedModel, {
    schedulingPolicy,
    maxNumSeqs: streams,
    maxQueuedRequests: 20_000,
  });
  const { engine } = llm;
  const priorityOf = (index: number): number =>
    schedulingPolicy === "priority" ? 1 + ((index * 7919) % 10) : 0;
  const stepMs = async (waiting: number): Promise<number> => {
    const stop = new AbortController();
    const costs = await stepCosts(engine, streams, async () => {
      const running = decode(engine, promptTokens, streams, 256);
      const later = Array.from({ length: waiting }, (_, index) =>
        engine.generate(decodeRequest(promptTokens, 1, priorityOf(index)), stop.signal),
      );
      await running;
      stop.abort();
      for (const events of later) await drain(events);
    });
    return costs.stepMs;
  };
  await stepMs(0);
  const rounds: Map<number, number>[] = [];
  for (let round = 0; round < 3; round += 1) {
    const order = round % 2 === 0 ? waitingCounts : waitingCounts.toReversed();
    const costs = new Map<number, number>();
    for (const waiting of order) costs.set(waiting, await stepMs(waiting));
    rounds.push(costs);
  }
  return waitingCounts.slice(1).map((waiting): BenchCase => {
    const ratios = rounds.map((costs) => (costs.get(waiting) ?? 0) / (costs.get(0) ?? 0));
    return {
      name: `${schedulingPolicy}, ${waiting} waiting: a step`,
      unit: "of one with none",
      octavo: median(ratios),
      target: { atMost: 1.05 },
      details: { ratios },
    };
  });
}

const cases: BenchCase[] = [];
{
  await using llm = await LLM.load(embeddedModel, { maxNumSeqs: 256 });
  await checkAnswers(llm);
  for (const streams of [1, 8, 32, 256]) cases.push(...(await ofStreams("octavo-mini", llm, streams, 200)));
  cases.push(...(await overHttp("octavo-mini", llm, 200)));
  await using large = await halfBillionModel(llm);
  for (const streams of [1, 8, 32]) cases.push(...(await ofStreams("0.5B Q4_0", large, streams, 24)));
  cases.push(...(await overHttp("0.5B Q4_0", large, 24)));
}
for (const policy of ["fcfs", "priority"] as const) cases.push(...(await ofWaiting(policy)));
report("steps", cases);
