// What constrained output costs: masks over a vocabulary of 200,000 tokens, compiling, and the throughput of 32 streams with
// and without a constraint. Every text is checked to be taken by its grammar before masks are timed.
import assert from "node:assert/strict";
import { type Engine, type Grammar, type GrammarSpec, LLM, resolveSamplingParams } from "@octavo/engine";
import { GrammarCompiler } from "@octavo/engine/parts";
import { type GrammarVocabulary } from "@octavo/text/structured/automaton/vocabulary";
import { syntheticVocabulary } from "@octavo/text/structured/testing/synthetic-vocabulary";
import { defaultModelFolder, modelFile } from "./cpu/models/model-file.js";
import { longestMatch } from "./grammar/longest-match.js";
import { type MaskCase, maskCases } from "./grammar/mask-cases.js";
import { median } from "./support/median.js";
import { type BenchCase, report } from "./support/results.js";
import { embeddedModel } from "./support/served-model.js";

const vocabSize = 200_000;
const textsPerCase = 24;
const streams = 32;
const outputTokens = 96;
const rounds = 7;

/** Models whose throughput is compared, and how often the requests run in a round, so that a round takes a second or more. */
const overheadModels = [
  { name: "octavo-mini", model: embeddedModel, repeats: 12 },
  {
    name: "Qwen2.5-0.5B Q4_0",
    model: modelFile(defaultModelFolder(), "qwen2.5-0.5b", "q4_0").path,
    repeats: 1,
  },
] as const;

function quantile(sorted: Float64Array, share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0;
}

interface MaskTimes {
  readonly masks: number[];
  readonly accepts: number[];
}

function timeMasks(grammar: Grammar, texts: readonly (readonly number[])[], times: MaskTimes): void {
  const mask = new Uint32Array(grammar.maskWords);
  for (const tokens of texts) {
    const matcher = grammar.start();
    for (const token of tokens) {
      const start = performance.now();
      matcher.fillMask(mask);
      const masked = performance.now();
      const isTaken = matcher.accept(token);
      times.accepts.push((performance.now() - masked) * 1000);
      times.masks.push((masked - start) * 1000);
      assert.ok(
        isTaken && ((mask[token >> 5]! >>> (token & 31)) & 1) === 1,
        "a token of the text is not allowed",
      );
    }
    assert.ok(matcher.isComplete);
  }
}

function compilerOf(vocabulary: GrammarVocabulary): GrammarCompiler {
  const { bytes, starts, size } = vocabulary;
  const source = {
    vocabSize: size,
    specialTokenIds: new Set([size - 1]),
    idToToken: (id: number) => (id === size - 1 ? "<|end|>" : String(id)),
    tokenBytes: (id: number) => bytes.subarray(starts[id]! + (id === size - 1 ? 1 : 0), starts[id + 1]),
  };
  return new GrammarCompiler(source, { vocabSize: size });
}

async function compileMs(compiler: GrammarCompiler, spec: GrammarSpec): Promise<readonly [number, Grammar]> {
  const start = performance.now();
  const grammar = await compiler.compile(spec);
  return [performance.now() - start, grammar];
}

async function maskFigures(
  compiler: GrammarCompiler,
  vocabulary: GrammarVocabulary,
  item: MaskCase,
): Promise<BenchCase[]> {
  const spec: GrammarSpec = { kind: "json_schema", schema: item.schema };
  const texts = Array.from({ length: textsPerCase }, (_, index) =>
    longestMatch(vocabulary, item.text(index)),
  );
  const [firstMs, grammar] = await compileMs(compiler, spec);
  const [cachedMs] = await compileMs(compiler, spec);
  const times: MaskTimes = { masks: [], accepts: [] };
  timeMasks(grammar, texts, times);
  const masks = Float64Array.from(times.masks).sort();
  const accepts = Float64Array.from(times.accepts).sort();
  const details = {
    tokens: masks.length,
    maskP99us: quantile(masks, 0.99),
    maskMaxUs: quantile(masks, 1),
    maskMeanUs: masks.reduce((sum, value) => sum + value, 0) / masks.length,
    acceptP50us: quantile(accepts, 0.5),
    acceptP99us: quantile(accepts, 0.99),
  };
  return [
    {
      name: `${item.name}: mask p50, from the first request on`,
      unit: "us",
      octavo: quantile(masks, 0.5),
      target: { atMost: 12 },
      details,
    },
    { name: `${item.name}: mask p99`, unit: "us", octavo: quantile(masks, 0.99) },
    { name: `${item.name}: compile`, unit: "ms", octavo: firstMs },
    { name: `${item.name}: compile, cached`, unit: "ms", octavo: cachedMs },
  ];
}

interface Rate {
  readonly tokensPerSecond: number;
  /** Processor time of all threads, which other processes do not change. */
  readonly cpuMs: number;
}

/** `streams` requests that all run to their full length, `repeats` times over. */
async function throughput(
  llm: LLM,
  engine: Engine,
  spec: GrammarSpec | undefined,
  repeats: number,
): Promise<Rate> {
  const promptTokens = llm.tokenizer.encode("List what you see: ");
  const grammar = spec === undefined ? undefined : await engine.compileGrammar(spec);
  const params = resolveSamplingParams(
    { temperature: 1, maxTokens: outputTokens, ignoreEos: true },
    {
      defaults: {},
      vocabSize: llm.config.vocabSize,
      maxModelLen: engine.maxModelLen,
      numPromptTokens: promptTokens.length,
    },
  );
  const cpu = process.cpuUsage();
  const start = performance.now();
  for (let repeat = 0; repeat < repeats; repeat += 1) {
    const counts = await Promise.all(
      Array.from({ length: streams }, async (_, index) => {
        let count = 0;
        const events = engine.generate({
          kind: "generate",
          requestId: `${repeat}-${index}`,
          promptTokens,
          params: { ...params, seed: BigInt(repeat * streams + index) },
          ...(grammar !== undefined && { grammar }),
        });
        for await (const event of events) if (event.kind === "done") count = event.usage.completionTokens;
        return count;
      }),
    );
    for (const count of counts) assert.equal(count, outputTokens);
  }
  const tokensPerSecond = (repeats * streams * outputTokens * 1000) / (performance.now() - start);
  const { user, system } = process.cpuUsage(cpu);
  return { tokensPerSecond, cpuMs: (user + system) / 1000 };
}

async function overhead({
  name: modelName,
  model,
  repeats,
}: (typeof overheadModels)[number]): Promise<BenchCase[]> {
  const constraints: readonly (readonly [string, GrammarSpec])[] = [
    [
      "a list of records",
      { kind: "json_schema", schema: { type: "array", minItems: 1000, items: maskCases[0]!.schema } },
    ],
    [
      "a list of bounded strings",
      {
        kind: "json_schema",
        schema: { type: "array", minItems: 1000, items: { type: "string", maxLength: 40 } },
      },
    ],
  ];
  await using llm = await LLM.load(model, { maxNumSeqs: streams, maxModelLen: 512 });
  const cases: BenchCase[] = [];
  for (const [name, spec] of constraints) {
    const ratios: number[] = [];
    const rates: number[] = [];
    const cpuRatios: number[] = [];
    await throughput(llm, llm.engine, undefined, 1);
    await throughput(llm, llm.engine, spec, 1);
    for (let round = 0; round < rounds; round += 1) {
      const order = round % 2 === 0 ? [undefined, spec] : [spec, undefined];
      const rate = new Map<GrammarSpec | undefined, Rate>();
      for (const kind of order) rate.set(kind, await throughput(llm, llm.engine, kind, repeats));
      const [free, bound] = [rate.get(undefined)!, rate.get(spec)!];
      ratios.push(bound.tokensPerSecond / free.tokensPerSecond);
      cpuRatios.push(bound.cpuMs / free.cpuMs);
      rates.push(free.tokensPerSecond);
    }
    cases.push({
      name: `${modelName}, ${streams} streams: ${name}, throughput beside free text`,
      unit: "of it",
      octavo: median(ratios),
      target: { atLeast: 0.95 },
      details: {
        ratios,
        freeTokensPerSecond: median(rates),
        processorTimeRatio: median(cpuRatios),
        cpuRatios,
      },
    });
  }
  return cases;
}

const vocabulary = syntheticVocabulary(vocabSize);
using compiler = compilerOf(vocabulary);
const [openMs] = await compileMs(compiler, { kind: "choice", choices: ["a"] });
const cases: BenchCase[] = [{ name: "vocabulary and first grammar", unit: "ms", octavo: openMs }];
for (const item of maskCases) cases.push(...(await maskFigures(compiler, vocabulary, item)));
for (const model of overheadModels) cases.push(...(await overhead(model)));
report("grammar", cases);
