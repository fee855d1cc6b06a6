// What the engine's records of steps and requests cost: the same streams of octavo-mini on one engine, by turns with records and
// without. `--rounds N` for shorter runs.
import { parseArgs } from "node:util";
import { type Engine, LLM } from "@octavo/engine";
import { OctavoError } from "@octavo/protocol";
import { decode } from "./steps/step-costs.js";
import { median } from "./support/median.js";
import { type BenchCase, report } from "./support/results.js";
import { checkAnswers, embeddedModel } from "./support/served-model.js";

const { values: flags } = parseArgs({ options: { rounds: { type: "string", default: "100" } } });
const rounds = Number(flags.rounds);
const warmups = 3;
const outputTokens = 200;
const promptTokens = Int32Array.from({ length: 64 }, (_, index) => 300 + index);

type Keep = () => void;

/**
 * Has an engine's log take note of everything, or of nothing as if it were not there; only between requests. One engine is both, since
 * two of them have their weights and threads in places of their own, which makes more of a difference than what is asked for here.
 * When a request got its tokens is kept on both sides: metrics want it.
 */
function switches({ evidence }: Engine): { readonly kept: Keep; readonly silent: Keep } {
  const names = ["add", "end", "beginStep", "measureStep", "endStep"];
  const methods = (of: (name: string) => unknown): object =>
    Object.fromEntries(names.map((name) => [name, of(name)]));
  const real = methods((name) => {
    const method: unknown = Reflect.get(evidence, name);
    if (typeof method !== "function")
      throw new OctavoError("internal_error", `the engine's log has no ${name} to leave out`);
    return method;
  });
  const silent = methods(() => () => {});
  // properties of the object in either case, so that both are called alike
  return { kept: () => Object.assign(evidence, real), silent: () => Object.assign(evidence, silent) };
}

async function tokensPerSecond(llm: LLM, streams: number): Promise<number> {
  const startMs = performance.now();
  await decode(llm.engine, promptTokens, streams, outputTokens);
  return (1000 * streams * outputTokens) / (performance.now() - startMs);
}

/** Each side, and the first a second time: what the ratio of a thing to itself is says how far to believe the other. */
const sides = ["kept", "silent", "keptAgain"] as const;
/** Every order comes up as often. */
const orders = [
  [0, 1, 2],
  [2, 1, 0],
  [1, 2, 0],
  [0, 2, 1],
  [2, 0, 1],
  [1, 0, 2],
] as const;

async function compare(llm: LLM, streams: number, numRounds: number): Promise<BenchCase> {
  const { kept, silent } = switches(llm.engine);
  const begin = { kept, silent, keptAgain: kept };
  const samples = { kept: [] as number[], silent: [] as number[], keptAgain: [] as number[] };
  for (let round = -warmups; round < numRounds; round += 1) {
    for (const index of orders[(round + warmups) % orders.length]!) {
      const side = sides[index];
      begin[side]();
      const speed = await tokensPerSecond(llm, streams);
      if (round >= 0) samples[side].push(speed);
    }
  }
  kept();
  const ratio = (to: readonly number[]): number =>
    median(samples.kept.map((value, round) => value / (to[round] ?? Number.NaN)));
  return {
    name: `${streams} streams: throughput of what it is without records`,
    unit: "ratio",
    octavo: ratio(samples.silent),
    target: { atLeast: 0.99 },
    details: {
      outputTokens,
      tokensPerSecond: median(samples.kept),
      ofItself: ratio(samples.keptAgain),
      samples,
    },
  };
}

await using llm = await LLM.load(embeddedModel, { enablePrefixCaching: false, maxModelLen: 1024 });
await checkAnswers(llm);
const cases: BenchCase[] = [];
// A round of few streams is short: more of them say as much.
for (const streams of [1, 8, 32])
  cases.push(await compare(llm, streams, Math.ceil(rounds * Math.max(1, 4 / streams))));
report("records", cases);
