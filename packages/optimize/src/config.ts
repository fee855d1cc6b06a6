import { resolve } from "node:path";
import {
  datasetFormats,
  type EvalCase,
  type Evaluator,
  evaluatorTable,
  openAiJudge,
  OpenAiTarget,
  openDataset,
  selfJudgingWarning,
  type Target,
} from "@octavo/evals";
import { definedFields, OctavoError } from "@octavo/protocol";
import { YamlSource } from "@octavo/protocol/yaml";
import { z } from "zod";
import { TunedFiles } from "./artifact/files.js";
import { optimizerNamed } from "./optimizers/table.js";
import type { OptimizeOptions } from "./search/optimize.js";
import { type CaseParts, splitCases } from "./search/split.js";

const url = z.string().regex(/^https?:\/\//, "expected a URL such as http://127.0.0.1:8000/v1");
const environmentName = z
  .string()
  .regex(/^[A-Za-z_]\w*$/, "expected the name of an environment variable, never the key itself");
const tokenPrices = z.strictObject({ input: z.number().min(0), output: z.number().min(0) });

const modelSchema = z
  .strictObject({
    /** Loaded in this process: a folder, a GGUF file or a model of the hub. */
    load: z.string().min(1).optional(),
    base_url: url.optional(),
    model: z.string().optional(),
    api_key_env: environmentName.optional(),
    headers: z.record(z.string(), z.string()).optional(),
    extra_body: z.record(z.string(), z.unknown()).optional(),
    temperature: z.number().min(0).max(2).optional(),
    max_tokens: z.int().min(1).optional(),
    usd_per_million_tokens: tokenPrices.optional(),
  })
  .refine(({ load, base_url: baseUrl }) => (load === undefined) !== (baseUrl === undefined), {
    message: "say either base_url or load",
  });

/** A model of a configuration: where it is, and how it is asked. */
export type TunedModelConfig = z.output<typeof modelSchema>;

const dataset = z.union([
  z.string(),
  z.strictObject({
    path: z.string(),
    format: z.enum(datasetFormats).optional(),
    limit: z.int().min(1).optional(),
  }),
]);

const optimizeSchema = z.strictObject({
  version: z.literal(1),
  name: z.string().min(1).max(120).default("optimisation"),
  seed: z.int().min(0).default(1),
  confidence: z.number().min(0.5).lt(1).default(0.95),
  /** Requests in flight. */
  concurrency: z.int().min(1).max(1024).default(32),
  /** The artifact that will serve. */
  target: modelSchema,
  teacher: modelSchema.optional(),
  files: z.strictObject({
    prompt: z.string().optional(),
    tools: z.string().optional(),
    schema: z.string().optional(),
    examples: z.string().optional(),
  }),
  /** Three files, or one that is divided at random. */
  cases: z.union([
    z.strictObject({ train: dataset, validation: dataset, held_out: dataset }),
    z.strictObject({
      all: dataset,
      train_share: z.number().gt(0).lt(1).default(0.35),
      validation_share: z.number().gt(0).lt(1).default(0.25),
    }),
  ]),
  evaluators: z.array(z.unknown()).min(1),
  judge: z
    .strictObject({ base_url: url, model: z.string(), api_key_env: environmentName.optional() })
    .optional(),
  optimizer: z.union([
    z.string(),
    z.strictObject({ name: z.string(), options: z.record(z.string(), z.unknown()).default({}) }),
  ]),
  budget: z.strictObject({
    calls: z.int().min(1).optional(),
    tokens: z.int().min(1).optional(),
    dollars: z.number().gt(0).optional(),
    gpu_seconds: z.number().gt(0).optional(),
  }),
});

/** A file of `octavo optimize`, read, with its defaults filled in. */
export type OptimizeConfig = z.output<typeof optimizeSchema>;

/** A checked optimize.yaml. */
export interface OptimizeFile {
  readonly config: OptimizeConfig;
  readonly source: YamlSource;
}

/** @throws OctavoError `invalid_option` with the place of what is wrong, unknown options by name */
export function parseOptimizeConfig(fileName: string | undefined, text: string): OptimizeFile {
  const source = new YamlSource(fileName, text);
  const parsed = optimizeSchema.safeParse(source.value);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw source.problem(issue?.path ?? [], issue?.message ?? "not a configuration");
  }
  const config = parsed.data;
  const { optimizer, files, budget, teacher, target } = config;
  const named = typeof optimizer === "string" ? { name: optimizer, options: {} } : optimizer;
  const check = <T>(path: readonly PropertyKey[], work: () => T): T => {
    try {
      return work();
    } catch (thrown) {
      const error = OctavoError.from(thrown);
      throw source.problem(path, error.message, error);
    }
  };
  const row = check(["optimizer"], () => optimizerNamed(named.name));
  check(["optimizer"], () => row.prepare(named.options));
  if (files.examples === undefined && row.findsExamples(named.options))
    throw source.problem(["files"], `${row.name} finds examples: name the file for them (examples)`);
  if (teacher === undefined && row.needsTeacher)
    throw source.problem(["teacher"], `${row.name} asks a teacher: name a model that writes`);
  if (Object.values(budget).every((limit) => limit === undefined))
    throw source.problem(["budget"], "say at least one of calls, tokens, dollars, gpu_seconds");
  const unpriced = [target, teacher].some(
    (one) => one !== undefined && one.usd_per_million_tokens === undefined,
  );
  if (budget.dollars !== undefined && unpriced)
    throw source.problem(
      ["budget", "dollars"],
      "dollars take prices: say usd_per_million_tokens of target and teacher",
    );
  return { config, source };
}

export interface OptimizeSurroundings {
  /** Where paths begin. */
  readonly folder: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly signal: AbortSignal;
  /** Makes a target of a model that is loaded in this process; its giver disposes of it. */
  readonly load: (name: string, model: string, parameters: TunedModelConfig) => Promise<Target>;
}

/** A search that is ready to run. */
export interface PlannedOptimization {
  readonly options: OptimizeOptions;
  readonly files: TunedFiles;
  readonly warnings: readonly string[];
}

/**
 * A configuration with its files read and its models named.
 * @throws OctavoError `invalid_option`, `dataset_invalid`, `target_unreachable`
 */
export async function planOptimization(
  { config, source }: OptimizeFile,
  { folder, environment, signal, load }: OptimizeSurroundings,
): Promise<PlannedOptimization> {
  const files = await TunedFiles.read(config.files, folder);
  const cases = await readCases(config, folder);
  const keyOf = (name: string | undefined, path: readonly PropertyKey[]): string | undefined => {
    if (name === undefined) return undefined;
    const key = environment[name];
    if (key === undefined || key === "")
      throw source.problem([...path, "api_key_env"], `the environment has no ${name}`);
    return key;
  };
  const judge =
    config.judge &&
    openAiJudge({
      baseUrl: config.judge.base_url,
      model: config.judge.model,
      ...definedFields({ apiKey: keyOf(config.judge.api_key_env, ["judge"]) }),
    });
  const evaluators: readonly Evaluator[] = evaluatorTable.create(
    config.evaluators,
    judge === undefined ? {} : { judge },
  );
  const targetOf = async (
    name: "target" | "teacher",
    written: TunedModelConfig,
  ): Promise<{ target: Target; model: string | undefined }> => {
    if (written.load !== undefined)
      return { target: await load(name, written.load, written), model: written.load };
    const {
      base_url: baseUrl = "",
      model,
      headers,
      extra_body: extraBody,
      temperature,
      max_tokens: maxTokens,
    } = written;
    const target = new OpenAiTarget({
      name,
      baseUrl,
      parameters: { temperature: temperature ?? 0, ...definedFields({ maxTokens, extraBody }) },
      ...definedFields({ model, headers, apiKey: keyOf(written.api_key_env, [name]) }),
    });
    return { target, model: await target.modelName(signal) };
  };
  const target = await targetOf("target", config.target);
  const teacher = config.teacher && (await targetOf("teacher", config.teacher));
  const { calls, tokens, dollars, gpu_seconds: gpuSeconds } = config.budget;
  return {
    files,
    warnings: [
      ...(teacher !== undefined && teacher.model === target.model
        ? ["the teacher is the model that is tuned: it cannot teach what it does not know"]
        : []),
      ...evaluators.flatMap(({ judge: name }) => selfJudgingWarning(name, [target.model]) ?? []),
    ],
    options: {
      target: target.target,
      teacher: teacher && {
        model: teacher.target,
        ...definedFields({
          temperature: config.teacher?.temperature,
          maxTokens: config.teacher?.max_tokens,
          usdPerMillionTokens: config.teacher?.usd_per_million_tokens,
        }),
      },
      evaluators,
      cases,
      seed: files.seed,
      parts: files.parts,
      optimizer: typeof config.optimizer === "string" ? { name: config.optimizer } : config.optimizer,
      budget: definedFields({ calls, tokens, dollars, gpuSeconds }),
      randomSeed: config.seed,
      concurrency: config.concurrency,
      confidence: config.confidence,
      fingerprint: JSON.stringify([
        asked(config.target),
        target.model,
        config.teacher && asked(config.teacher),
        teacher?.model,
      ]),
      usdPerMillionTokens: config.target.usd_per_million_tokens,
      signal,
    },
  };
}

/** What answers depend on beside the question; headers may hold secrets. */
function asked(written: TunedModelConfig): unknown {
  const {
    load,
    base_url: baseUrl,
    model,
    extra_body: extraBody,
    temperature,
    max_tokens: maxTokens,
  } = written;
  return [load, baseUrl, model, extraBody, temperature, maxTokens];
}

async function readCases({ cases, seed }: OptimizeConfig, folder: string): Promise<CaseParts> {
  const read = async (written: z.output<typeof dataset>): Promise<readonly EvalCase[]> => {
    const { path, ...options } = typeof written === "string" ? { path: written } : written;
    const found: EvalCase[] = [];
    for await (const one of (await openDataset(resolve(folder, path), definedFields(options))).cases())
      found.push(one);
    return found;
  };
  if (!("all" in cases))
    return {
      train: await read(cases.train),
      validation: await read(cases.validation),
      heldOut: await read(cases.held_out),
    };
  const { all, train_share: train, validation_share: validation } = cases;
  if (train + validation >= 0.95)
    throw new OctavoError(
      "invalid_option",
      "cases: less than 5 % are left to judge by: lower train_share or validation_share",
      {
        param: "cases",
      },
    );
  return splitCases(await read(all), { train, validation }, seed);
}
