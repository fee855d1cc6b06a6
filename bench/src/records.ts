// What the engine's records of steps and requests cost: the same streams of octavo-mini on two engines in one process, by turns, one
// of which keeps no records. `--rounds N` for shorter runs.
import { parseArgs } from "node:util";
import { type Engine, LLM } from "@octavo/engine";
import { OctavoError } from "@octavo/protocol";
import { decode } from "./steps/step-costs.js";
import { median } from "./support/median.js";
import { type BenchCase, report } from "./support/results.js";
import { checkAnswers, embeddedModel } from "./support/served-model.js";

const { values: flags } = parseArgs({ options: { rounds: { type: "string", default: "100" } } });
const rounds = Number(flags.rounds);
const outputTokens = 200;
const promptTokens = Int32Array.from({ length: 64 }, (_, index) => 300 + index);

/** Has an engine's log take note of nothing, as if it were not there. */
function silence({ evidence }: Engine): void {
  const nothing = (): void => {};
  const silent = { add: nothing, end: nothing, beginStep: nothing, measureStep: nothing, endStep: nothing };
  for (const name of Object.keys(silent)) {
    if (name in evidence) continue;
    throw new OctavoError("internal_error", `the engine's log has no ${name} to leave out`);
  }
  Object.assign(evidence, silent);
}

async function tokensPerSecond(llm: LLM, streams: number): Promise<number> {
  const startMs = performance.now();
  await decode(llm.engine, promptTokens, streams, outputTokens);
  return (1000 * streams * outputTokens) / (performance.now() - startMs);
}

async function compare([withRecords, without]: readonly [LLM, LLM], streams: number): Promise<BenchCase> {
  const samples = { kept: [] as number[], silent: [] as number[] };
  const measure = {
    kept: async () => void samples.kept.push(await tokensPerSecond(withRecords, streams)),
    silent: async () => void samples.silent.push(await tokensPerSecond(without, streams)),
  };
  for (let warmup = 0; warmup < 3; warmup += 1) {
    await tokensPerSecond(withRecords, streams);
    await tokensPerSecond(without, streams);
  }
  for (let round = 0; round < rounds; round += 1) {
    const turns = [measure.kept, measure.silent] as const;
    for (const turn of round % 2 === 0 ? turns : turns.toReversed()) await turn();
  }
  return {
    name: `${streams} streams: throughput of what it is without records`,
    unit: "ratio",
    octavo: median(samples.kept.map((value, round) => value / (samples.silent[round] ?? Number.NaN))),
    target: { atLeast: 0.99 },
    details: { outputTokens, tokensPerSecond: median(samples.kept), samples },
  };
}

const options = { enablePrefixCaching: false, maxModelLen: 1024 };
await using kept = await LLM.load(embeddedModel, options);
await using silent = await LLM.load(embeddedModel, options);
await checkAnswers(kept);
await checkAnswers(silent);
silence(silent.engine);
const cases: BenchCase[] = [];
for (const streams of [1, 8, 32]) cases.push(await compare([kept, silent], streams));
report("records", cases);
