// Two threads as one rank and as two, and two stages: the same tokens first, then times of steps, in turn, and what ranks and stages exchange.
import { LLM, type StepRecord } from "@octavo/engine";
import { OctavoError } from "@octavo/protocol/errors";
import { defaultModelFolder, modelFile } from "./cpu/models/model-file.js";
import { decodeRequest } from "./steps/step-costs.js";
import { median } from "./support/median.js";
import { type BenchCase, report } from "./support/results.js";

const layouts = {
  "one rank of 2 threads": { tensorParallelSize: 1, pipelineParallelSize: 1 },
  "2 ranks of 1 thread": { tensorParallelSize: 2, pipelineParallelSize: 1 },
  "2 stages of 2 threads": { tensorParallelSize: 1, pipelineParallelSize: 2 },
} as const;
type Layout = keyof typeof layouts;
const names = Object.keys(layouts) as Layout[];

const rounds = 5;
const decodeTokens = 24;
const prefillTokens = 512;

interface Run {
  readonly tokens: string;
  readonly steps: readonly StepRecord[];
}

async function run({ engine }: LLM, streams: number, promptLength: number, maxTokens: number): Promise<Run> {
  const steps: StepRecord[] = [];
  const watch = engine.observe({ onStep: (step) => void steps.push(step) });
  const tokens = await Promise.all(
    Array.from({ length: streams }, async (_, stream) => {
      const prompt = Int32Array.from(
        { length: promptLength },
        (__, index) => 300 + ((index * 7 + stream) % 1000),
      );
      const all: number[] = [];
      for await (const event of engine.generate(decodeRequest(prompt, maxTokens))) {
        if (event.kind === "delta") for (const delta of event.deltas) all.push(...delta.tokens);
        if (event.kind === "done") break;
      }
      return all.join(",");
    }),
  );
  watch[Symbol.dispose]();
  return { tokens: tokens.join(";"), steps };
}

/** Steps of one kind, by layout. */
class Samples {
  readonly #steps = new Map<Layout, StepRecord[]>();

  add(layout: Layout, steps: readonly StepRecord[]): void {
    this.#steps.set(layout, [...(this.#steps.get(layout) ?? []), ...steps]);
  }

  cases(title: string): BenchCase[] {
    const stepMs = (layout: Layout): number =>
      median((this.#steps.get(layout) ?? []).map(({ computeMs }) => computeMs));
    const alone = stepMs(names[0] ?? "one rank of 2 threads");
    return names.slice(1).map((layout) => {
      const exchanges = (this.#steps.get(layout) ?? []).map((step) => step.exchanges ?? []);
      const members = Math.max(0, ...exchanges.map(({ length }) => length));
      return {
        name: `${title}: ${layout}`,
        unit: "of a step's time as one rank of 2 threads",
        octavo: stepMs(layout) / alone,
        details: {
          stepMs: stepMs(layout),
          aloneMs: alone,
          exchangedPerStep: Array.from({ length: members }, (_, member) => ({
            bytes: median(exchanges.map((step) => step[member]?.bytes ?? 0)),
            microseconds: 1000 * median(exchanges.map((step) => step[member]?.milliseconds ?? 0)),
          })),
        },
      };
    });
  }
}

const { path } = modelFile(defaultModelFolder(), "qwen2.5-0.5b", "q4_0");
const models = new Map<Layout, LLM>();
const load = async (layout: Layout): Promise<void> => {
  const options = { ...layouts[layout], numThreads: 2, maxModelLen: 1024, enablePrefixCaching: false };
  const llm = await LLM.load(path, options);
  models.set(layout, llm);
  await llm.packed;
};
for (const layout of names) await load(layout);

const kinds = [
  { title: "decode, 1 stream", streams: 1, promptLength: 24, maxTokens: decodeTokens, isDecode: true },
  { title: "decode, 8 streams", streams: 8, promptLength: 24, maxTokens: decodeTokens, isDecode: true },
  {
    title: `prefill of ${prefillTokens}`,
    streams: 1,
    promptLength: prefillTokens,
    maxTokens: 1,
    isDecode: false,
  },
];
const cases: BenchCase[] = [];
for (const { title, streams, promptLength, maxTokens, isDecode } of kinds) {
  const samples = new Samples();
  let expected: string | undefined;
  for (let round = 0; round <= rounds; round++) {
    for (const [layout, llm] of models) {
      const { tokens, steps } = await run(llm, streams, promptLength, maxTokens);
      expected ??= tokens;
      if (tokens !== expected)
        throw new OctavoError("internal_error", `${title}: ${layout} gives other tokens.`);
      // The first round warms up.
      if (round > 0)
        samples.add(
          layout,
          steps.filter((step) =>
            isDecode ? step.prefillTokens === 0 && step.decodeTokens === streams : step.prefillTokens > 0,
          ),
        );
    }
  }
  cases.push(...samples.cases(title));
}
for (const llm of models.values()) await llm[Symbol.asyncDispose]();
report("parallel", cases);
for (const { name, details } of cases) process.stdout.write(`${name}: ${JSON.stringify(details)}\n`);
