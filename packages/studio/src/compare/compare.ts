import { readFile, stat } from "node:fs/promises";
import {
  type Checkpoint,
  LLM,
  type LoadOptions,
  type LoadProgress,
  openCheckpoint,
  resolveModel,
  type Tokenizer,
} from "@octavo/engine";
import { declaredActivations, describeActivations } from "@octavo/artifacts/program/declared-activations";
import { compileChatTemplate, createTokenizer } from "@octavo/engine/parts";
import { type Backend, createCpuBackend, type KvDtype } from "@octavo/kernels";
import { OctavoError, systemProblem } from "@octavo/protocol";
import { parseCases } from "./data/cases.js";
import { type ForcedSequence, forcedSequence, unscored } from "./data/forced-sequence.js";
import { renderCase, type Templates } from "./data/render.js";
import { checkSameTokenizer, checkSameTokens } from "./data/same-tokenizer.js";
import { divergence } from "./forcing/divergence.js";
import { LogitPairs } from "./forcing/logit-pairs.js";
import { describeWorst, WorstTokens, type WorstToken } from "./report/worst-tokens.js";
import { type Summary, summarise } from "./report/summary.js";
import { ScoredTokenTable } from "./report/token-table.js";
import { judge, type ComparisonVerdict } from "./report/verdict.js";
import { ClusterBootstrap } from "@octavo/statistics";

export interface CompareOptions {
  /** Models as `octavo serve` takes them. */
  readonly baseline: string;
  readonly variant: string;
  /** JSON lines, see `parseCases`. */
  readonly dataPath: string;
  /** At most so many lines; default all. */
  readonly limit?: number | undefined;
  readonly kvCacheDtype?: KvDtype | "auto" | undefined;
  /** The variant's, where it is not the baseline's. */
  readonly variantKvCacheDtype?: KvDtype | "auto" | undefined;
  /** Rounds the variant's activations as its checkpoint declares. */
  readonly asDeclared?: boolean | undefined;
  readonly numThreads?: number | undefined;
  /** Resamples of the bootstrap; default 2000. */
  readonly resamples?: number | undefined;
  readonly seed?: number | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly onLoadProgress?: ((progress: LoadProgress) => void) | undefined;
  readonly onWarning?: ((message: string) => void) | undefined;
  readonly onProgress?: ((state: CompareProgress) => void) | undefined;
}

export interface CompareProgress {
  readonly doneTokens: number;
  readonly totalTokens: number;
}

export interface ComparedModel {
  readonly model: string;
  readonly architecture: string;
  /** As the kernels hold them. */
  readonly weightBytes: number;
  readonly kvCacheDtype: string;
  /** Set where the checkpoint declares rounded activations: what, and whether that was followed. */
  readonly activations?: { readonly declared: string; readonly isFollowed: boolean };
}

export interface ModelComparison {
  readonly baseline: ComparedModel;
  readonly variant: ComparedModel;
  readonly data: {
    readonly path: string;
    readonly conversations: number;
    readonly answers: number;
    /** Scored ones. */
    readonly tokens: number;
    /** All that were computed, context included. */
    readonly computedTokens: number;
  };
  /** What was computed how. */
  readonly method: {
    readonly direction: string;
    readonly resamples: number;
    readonly seed: number;
    readonly kernels: string;
  };
  readonly verdict: ComparisonVerdict;
  readonly summary: Summary;
  /** Tokens of the largest divergence, worst first. */
  readonly worst: readonly WorstToken[];
}

const maxDataBytes = 1024 ** 3;
/** Logits of one step of one model. */
const stepLogitBytes = 64 * 1024 * 1024;

/**
 * Runs both models over the same tokens and compares their predictions of each scored one. Both run in one process on one
 * backend, through the engine that serves; what is not the same number in both is the artifact's doing.
 * @throws OctavoError `invalid_option` for data (naming the line) and for tokenizers that differ, and what loading throws
 */
export async function compareModels(options: CompareOptions): Promise<ModelComparison> {
  const { seed = 1, resamples = 2000 } = options;
  const cases = parseCases(await readData(options.dataPath), options.dataPath, options.limit);
  const baseline = await openModel(options.baseline, options);
  const variant = await openModel(options.variant, options);
  checkSameTokenizer(baseline, variant);
  const templates = templatesOf(baseline.checkpoint);
  const endTokens = new Set(baseline.checkpoint.config.eosTokenIds);
  const sequences: (ForcedSequence & { readonly cluster: number })[] = [];
  for (const [cluster, item] of cases.entries()) {
    for (const scored of renderCase(item, templates, options.dataPath)) {
      const { addSpecialTokens } = scored;
      const tokens = await baseline.tokenizer.encodeAsync(scored.text, { addSpecialTokens });
      const others = await variant.tokenizer.encodeAsync(scored.text, { addSpecialTokens });
      checkSameTokens(tokens, others, baseline, variant, `${options.dataPath}:${scored.line}`);
      checkLength(tokens.length, [baseline, variant], `${options.dataPath}:${scored.line}`);
      const sequence = forcedSequence(scored, tokens, baseline.tokenizer, endTokens);
      if (sequence.numAnswers > 0) sequences.push({ ...sequence, cluster });
    }
  }
  if (sequences.length === 0) {
    throw new OctavoError(
      "invalid_option",
      `${options.dataPath} holds no token to score: nothing predicts a text's first one.`,
      {
        param: "data",
      },
    );
  }
  baseline.tokenizer[Symbol.dispose]?.();
  variant.tokenizer[Symbol.dispose]?.();
  const run = await runBoth(sequences, { baseline, variant }, options);
  const bootstrap = new ClusterBootstrap(cases.length, resamples, seed);
  const answers = { count: run.isPlain.length, isPlain: run.isPlain, numClusters: cases.length };
  return {
    baseline: run.baseline,
    variant: run.variant,
    data: {
      path: options.dataPath,
      conversations: cases.length,
      answers: run.isPlain.length,
      tokens: run.table.length,
      computedTokens: sequences.reduce((sum, { tokens }) => sum + tokens.length, 0),
    },
    method: { direction: "KL(baseline || variant), nats", resamples, seed, kernels: run.kernels },
    verdict: judge(run.table, answers, bootstrap),
    summary: summarise(run.table, cases.length, bootstrap),
    worst: run.worst,
  };
}

async function readData(path: string): Promise<Buffer> {
  try {
    const { size } = await stat(path);
    if (size <= maxDataBytes) return await readFile(path);
  } catch (cause) {
    throw new OctavoError("invalid_option", `data: ${path} cannot be read: ${systemProblem(cause)}`, {
      param: "data",
      cause,
    });
  }
  throw new OctavoError("invalid_option", `${path} is larger than ${maxDataBytes} bytes; split it`, {
    param: "data",
  });
}

interface OpenedModel {
  readonly name: string;
  readonly checkpoint: Checkpoint;
  readonly tokenizer: Tokenizer;
}

/** Configuration and tokenizer; the weights wait until the data is known to be good. */
async function openModel(name: string, options: CompareOptions): Promise<OpenedModel> {
  const { onLoadProgress, onWarning, signal } = options;
  const resolved = await resolveModel(name, {
    ...(onLoadProgress !== undefined && {
      onProgress: (download) =>
        onLoadProgress({
          phase: "downloading",
          doneBytes: download.receivedBytes,
          totalBytes: download.totalBytes,
          download,
        }),
    }),
    ...(onWarning !== undefined && { onWarning }),
    ...(signal !== undefined && { signal }),
  });
  const checkpoint = await openCheckpoint(resolved.path, { name });
  return { name, checkpoint, tokenizer: createTokenizer(checkpoint.tokenizer) };
}

function templatesOf({ name, tokenizer }: Checkpoint): Templates {
  const { config } = tokenizer;
  const { bosToken, eosToken, unkToken, padToken } = config;
  const compile = (source: string | undefined): Templates["default"] =>
    source === undefined
      ? undefined
      : compileChatTemplate(source, { bosToken, eosToken, unkToken, padToken });
  return {
    default: compile(config.chatTemplate),
    toolUse: compile(config.namedChatTemplates.get("tool_use")),
    model: name,
  };
}

function checkLength(length: number, models: readonly OpenedModel[], where: string): void {
  for (const { name, checkpoint } of models) {
    const most = checkpoint.config.maxPositionEmbeddings;
    if (length >= most) {
      throw new OctavoError(
        "invalid_option",
        `${where} has ${length} tokens; ${name} takes at most ${most - 1}. Shorten it or leave it out.`,
        { param: "data" },
      );
    }
  }
}

interface BothRun {
  readonly baseline: ComparedModel;
  readonly variant: ComparedModel;
  readonly table: ScoredTokenTable;
  /** Whether each answer is plain. */
  readonly isPlain: readonly boolean[];
  readonly worst: readonly WorstToken[];
  readonly kernels: string;
}

async function runBoth(
  sequences: readonly (ForcedSequence & { readonly cluster: number })[],
  models: { readonly baseline: OpenedModel; readonly variant: OpenedModel },
  options: CompareOptions,
): Promise<BothRun> {
  const longest = sequences.reduce((most, { tokens }) => Math.max(most, tokens.length), 1);
  const vocabSize = models.baseline.checkpoint.config.vocabSize;
  const chunk = Math.min(512, Math.max(16, Math.floor(stepLogitBytes / (4 * vocabSize))));
  using backend = createCpuBackend(
    options.numThreads === undefined ? {} : { numThreads: options.numThreads },
  );
  const pairs = new LogitPairs();
  const common = {
    backend,
    maxModelLen: longest + 1,
    maxNumSeqs: 1,
    maxNumBatchedTokens: chunk,
    enablePrefixCaching: false,
    onProgress: options.onLoadProgress,
    onWarning: options.onWarning,
    signal: options.signal,
  } satisfies LoadOptions;
  const { kvCacheDtype = "auto", variantKvCacheDtype = kvCacheDtype } = options;
  await using baseline = await LLM.load(models.baseline.name, {
    ...common,
    kvCacheDtype,
    hooks: pairs.baseline,
  });
  await using variant = await LLM.load(models.variant.name, {
    ...common,
    kvCacheDtype: variantKvCacheDtype,
    activations: options.asDeclared === true ? "declared" : "exact",
    hooks: pairs.variant,
  });
  const table = new ScoredTokenTable();
  const worst = new WorstTokens();
  const isPlain: boolean[] = [];
  const totalTokens = sequences.reduce((sum, { tokens }) => sum + tokens.length, 0);
  let doneTokens = 0;
  for (const sequence of sequences) {
    const firstAnswer = isPlain.length;
    for (let answer = 0; answer < sequence.numAnswers; answer++) isPlain.push(sequence.isPlain);
    pairs.expect(
      (position) => (sequence.roles[position + 1] ?? unscored) !== unscored,
      (position, first, second) => {
        const token = position + 1;
        const target = sequence.tokens[token]!;
        const compared = divergence(first, second, target);
        const place = {
          cluster: sequence.cluster,
          answer: firstAnswer + sequence.answers[token]!,
          role: sequence.roles[token]!,
          position: sequence.positions[token]!,
        };
        table.add(place, target, compared);
        worst.offer({ sequence, token, compared });
      },
    );
    await forceBoth(sequence, baseline, variant, pairs, options.signal);
    doneTokens += sequence.tokens.length;
    options.onProgress?.({ doneTokens, totalTokens });
  }
  const compared = (model: LLM, dtype: string, { name, checkpoint }: OpenedModel): ComparedModel => ({
    model: name,
    ...activationsOf(checkpoint, checkpoint === models.variant.checkpoint && options.asDeclared === true),
    architecture: model.config.architecture,
    weightBytes: model.weightBytes,
    kvCacheDtype:
      dtype === "auto" ? (model.config.dtype === "quantized" ? "f16" : model.config.dtype) : dtype,
  });
  return {
    baseline: compared(baseline, kvCacheDtype, models.baseline),
    variant: compared(variant, variantKvCacheDtype, models.variant),
    table,
    isPlain,
    worst: describeWorst(worst.sorted, baseline.tokenizer),
    kernels: kernelsOf(backend),
  };
}

function activationsOf({ tensors }: Checkpoint, isFollowed: boolean): Pick<ComparedModel, "activations"> {
  const declared = declaredActivations(tensors);
  if (declared === undefined) return {};
  return { activations: { declared: describeActivations(declared), isFollowed } };
}

/** Both engines read the sequence as a prompt that is scored from its first answer on; what they would say next is not used. */
async function forceBoth(
  sequence: ForcedSequence,
  baseline: LLM,
  variant: LLM,
  pairs: LogitPairs,
  outer: AbortSignal | undefined,
): Promise<void> {
  const failure = new AbortController();
  const promptLogprobsFrom = sequence.roles.findIndex((role) => role !== unscored);
  const signal = outer === undefined ? failure.signal : AbortSignal.any([outer, failure.signal]);
  const runs = [baseline, variant].map(async (model) => {
    try {
      await model.generate(sequence.tokens, {
        maxTokens: 1,
        temperature: 0,
        promptLogprobs: 0,
        promptLogprobsFrom,
        signal,
      });
    } catch (error) {
      failure.abort();
      pairs.release();
      throw error;
    }
  });
  const settled = await Promise.allSettled(runs);
  // The first to fail is the cause; the other was cancelled.
  const errors = settled.flatMap((run) => (run.status === "rejected" ? [OctavoError.from(run.reason)] : []));
  const cause = errors.find(({ code }) => code !== "request_cancelled") ?? errors[0];
  if (cause !== undefined) throw cause;
  if (pairs.numUnpaired > 0) {
    throw new OctavoError("internal_error", `${pairs.numUnpaired} positions were scored by one model alone`);
  }
}

function kernelsOf({ info }: Backend): string {
  return `${[info.instructionSet, ...info.features].join(" + ")}, ${info.numThreads} threads`;
}
