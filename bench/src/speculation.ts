// Decode speed with speculation against the same without: extraction, where drafts come true, and free sampling, where they miss; an
// EAGLE-3 head with 1, 4 and 16 streams, on the embedded model and on one whose steps take what reading the weights takes. Answers
// with and without must be the same tokens, or nothing is reported. `--only TEXT` takes the cases whose name contains it.
import { join } from "node:path";
import { parseArgs } from "node:util";
import { LLM, type LoadOptions, type SpeculativeConfig } from "@octavo/engine";
import { defaultModelFolder, modelFile } from "./cpu/models/model-file.js";
import { comparePasses, type DraftedWorkload } from "./speculation/compare.js";
import { cycleHead, cycleModel } from "./speculation/cycle-model.js";
import { counting, embeddedWorkloads, fields, freeSampling } from "./speculation/workloads.js";
import { readCases } from "./support/merged-results.js";
import { type BenchCase, report, resultsFolder } from "./support/results.js";
import { embeddedModel } from "./support/served-model.js";

const { values } = parseArgs({ options: { only: { type: "string", default: "" } } });

interface Method {
  readonly name: string;
  readonly config: SpeculativeConfig;
}

const ngram: Method = {
  name: "ngram",
  config: { method: "ngram", numSpeculativeTokens: 8, promptLookupMin: 1, promptLookupMax: 4 },
};
const suffix: Method = { name: "suffix", config: { method: "suffix" } };
const eagle3: Method = {
  name: "eagle3",
  config: { method: "eagle3", model: join(embeddedModel, "eagle3"), numSpeculativeTokens: 4 },
};
const numStreams = [1, 4, 16];

const results: BenchCase[] = [];
const earlier =
  values.only === "" ? [] : (readCases(`${resultsFolder}speculation.json`, "speculation") as BenchCase[]);

async function measure(
  model: string,
  options: LoadOptions,
  { name, config }: Method,
  workloads: readonly DraftedWorkload[],
  streams: readonly number[],
): Promise<void> {
  const wanted = workloads.flatMap((workload) =>
    streams
      .filter((count) => `${workload.name}, ${name}, ${count} streams`.includes(values.only))
      .map((count) => ({ workload, count })),
  );
  if (wanted.length === 0) return;
  await using plain = await LLM.load(model, options);
  await using drafting = await LLM.load(model, { ...options, speculativeConfig: config });
  await Promise.all([plain.packed, drafting.packed]);
  for (const { workload, count } of wanted) {
    results.push(await comparePasses(plain, drafting, name, workload, count));
    // After each, since all of them take long.
    const others = earlier.filter((one) => results.every((result) => result.name !== one.name));
    report("speculation", [...others, ...results]);
  }
}

const embedded = { maxModelLen: 4096 };
for (const method of [ngram, suffix])
  await measure(embeddedModel, embedded, method, embeddedWorkloads(1.8), [1]);
await measure(embeddedModel, embedded, eagle3, embeddedWorkloads(undefined), [1]);
for (const method of [ngram, eagle3])
  await measure(embeddedModel, embedded, method, [fields()], numStreams.slice(1));

// A step of the embedded model takes so little that what is done between two steps weighs more than it ever does elsewhere.
const folder = defaultModelFolder();
const random = modelFile(folder, "qwen2.5-0.5b", "q4_0").path;
for (const method of [ngram, suffix])
  await measure(
    random,
    { maxModelLen: 1024 },
    method,
    [freeSampling("free sampling, Qwen2.5-0.5B Q4_0 with random weights", 4, 100)],
    [1],
  );
for (const acceptance of [0.6, 0.8]) {
  const model = cycleHead(folder, acceptance);
  await measure(
    cycleModel(folder),
    { maxModelLen: 512 },
    { name: "eagle3", config: { method: "eagle3", model, numSpeculativeTokens: 5 } },
    [counting(`Qwen2.5-0.5B Q8_0, a head that is right ${acceptance * 100} % of the time`)],
    numStreams,
  );
}
