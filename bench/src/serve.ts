// The embedded model over HTTP: what one client sees alone, and what 32 see together. Answers are checked before timing:
// greedy text must be the same alone and among 31 others.
import { type BenchCase, report } from "./support/results.js";
import {
  checkAnswers,
  closedLoop,
  embeddedModel,
  loadFromOutside,
  withServer,
} from "./support/served-model.js";

async function measure(baseUrl: string, concurrency: number): Promise<BenchCase[]> {
  const { summary } = await loadFromOutside(closedLoop(baseUrl, concurrency));
  const name = concurrency === 1 ? "1 client" : `${concurrency} clients`;
  return [
    { name: `${name}: output tokens/s`, unit: "tokens/s", octavo: summary.outputTokensPerSecond },
    { name: `${name}: time to first token p50`, unit: "ms", octavo: summary.ttftMs?.p50.value ?? Number.NaN },
    {
      name: `${name}: inter-token gap p50`,
      unit: "ms",
      octavo: summary.interTokenMs?.p50.value ?? Number.NaN,
    },
    {
      name: `${name}: inter-token gap p99`,
      unit: "ms",
      octavo: summary.interTokenMs?.p99.value ?? Number.NaN,
    },
  ];
}

await withServer(embeddedModel, {}, async (baseUrl, llm) => {
  await checkAnswers(llm);
  await loadFromOutside(closedLoop(baseUrl, 8));
  const cases: BenchCase[] = [];
  for (const concurrency of [1, 8, 32]) cases.push(...(await measure(baseUrl, concurrency)));
  report("serve", cases);
});
