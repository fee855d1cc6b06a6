import { createHash } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { basename, join } from "node:path";
import { type DownloadProgress, openCheckpoint, resolveModel } from "@octavo/engine";
import { artifactUnsupported } from "@octavo/text/files/artifact-file";
import { type Backend, createCpuBackend, defaultThreadCount } from "@octavo/kernels";
import { OctavoError } from "@octavo/protocol";
import { CalibratedConversion } from "./calibration/calibrated-conversion.js";
import { CalibrationFlow } from "./calibration/calibration-flow.js";
import { ImportanceMatrix } from "./calibration/importance-matrix.js";
import { type CalibrationTexts, readCalibration } from "./calibration/texts.js";
import { moduleFormat } from "./formats/module-format.js";
import {
  invalidOption,
  type MethodSettings,
  needsCalibration,
  type QuantizeOptions,
  readMethod,
} from "./options.js";
import { GgufConverter } from "./output/gguf-converter.js";
import { plainConversion, SafetensorsConverter } from "./output/safetensors-converter.js";
import type { UnitConverter } from "./output/unit-converter.js";
import { WorkFolder } from "./output/work-folder.js";
import { cardJson, cardText, describeModules, type QuantizationCard } from "./report/card.js";
import { ProgressClock, type QuantizeProgress } from "./report/progress.js";
import { ignores } from "./source/ignored-modules.js";
import { moduleOf, openSource, type SourceModel, type SourceUnit } from "./source/source-model.js";

export interface QuantizeHooks {
  readonly onProgress?: (progress: QuantizeProgress) => void;
  readonly onDownload?: (progress: DownloadProgress) => void;
  readonly onWarning?: (message: string) => void;
  readonly signal?: AbortSignal;
}

/**
 * Makes a quantised artifact of a model: a folder, a Hugging Face id, unquantised. One unit (a layer) at a time is in memory. A run
 * that ended early goes on after its last whole unit when it is started again with the same options.
 * @returns the artifact's card
 * @throws OctavoError `invalid_option`, `artifact_*`, `disk_full`, `hub_*`, `request_cancelled`
 */
export async function quantize(
  model: string,
  options: QuantizeOptions,
  hooks: QuantizeHooks = {},
): Promise<QuantizationCard> {
  const settings = readMethod(options);
  if (needsCalibration(settings) && options.calibration === undefined) {
    throw invalidOption(
      "calibration",
      `is needed by ${settings.kind}: name a file of texts like those the model will see, .txt or .jsonl, of some 60000 tokens ` +
        `(or round to the nearest value without one, with --round-to-nearest)`,
    );
  }
  if (options.calibration === undefined) {
    for (const name of ["numSamples", "sampleTokens"] as const) {
      if (options[name] === undefined) continue;
      throw invalidOption(
        name === "numSamples" ? "calibration_samples" : "calibration_tokens",
        "means nothing without calibration",
      );
    }
  }
  const source = await openModel(model, options, hooks);
  const chosen = chooseModules(source, settings, options.ignore ?? ["lm_head"]);
  const texts =
    options.calibration === undefined
      ? undefined
      : await readCalibration(options.calibration, source.checkpoint, {
          numSamples: options.numSamples ?? 128,
          sampleTokens: options.sampleTokens ?? 512,
        });
  using backend = openBackend(texts, options.numThreads);
  using converter = chooseConverter(source, settings, chosen, texts, backend, options.numThreads);
  const fingerprint = fingerprintOf(source, settings, chosen, texts, converter.layout);
  using work = await WorkFolder.open(options.out, fingerprint);
  await convertUnits(source, converter, work, hooks);
  const card = describe(source, settings, options, texts, work);
  await converter.finish(work);
  await work.file("octavo-quantization.json", cardJson(card));
  await work.file("README.md", cardText(card));
  await work.publish();
  return card;
}

async function openModel(
  model: string,
  options: QuantizeOptions,
  hooks: QuantizeHooks,
): Promise<SourceModel> {
  const { onDownload, onWarning, signal } = hooks;
  const named = options.revision === undefined ? model : `${model}@${options.revision}`;
  const resolved = await resolveModel(named, {
    ...(onDownload !== undefined && { onProgress: onDownload }),
    ...(onWarning !== undefined && { onWarning }),
    ...(signal !== undefined && { signal }),
    ...(options.downloadDir !== undefined && { env: { ...process.env, HF_HUB_CACHE: options.downloadDir } }),
  });
  return openSource(await openCheckpoint(resolved.path, { name: model }));
}

/** Names of the tensors to be quantised; every one of them fits the format, or the first that does not is named. */
function chooseModules(
  source: SourceModel,
  settings: MethodSettings,
  patterns: readonly string[],
): ReadonlySet<string> {
  if (settings.kind === "gguf") return source.linears;
  const { path, config, tensors } = source.checkpoint;
  const isIgnored = ignores(patterns);
  const usesActivations = needsCalibration(settings);
  const format = moduleFormat(settings, floatOf(config.dtype));
  const chosen = new Set<string>();
  for (const name of source.linears) {
    if (isIgnored(moduleOf(name)) || (usesActivations && name === "lm_head.weight")) continue;
    const [rows = 0, cols = 0] = tensors.get(name)?.shape ?? [];
    const problem = format.problem(rows, cols);
    if (problem !== undefined) {
      throw artifactUnsupported(
        path,
        `tensor ${JSON.stringify(name)} ${problem}; choose another group size, or --ignore ${moduleOf(name)}`,
      );
    }
    chosen.add(name);
  }
  if (chosen.size === 0) throw invalidOption("ignore", "leaves nothing to quantise");
  return chosen;
}

function floatOf(dtype: SourceModel["checkpoint"]["config"]["dtype"]): "f32" | "f16" | "bf16" {
  return dtype === "quantized" ? "bf16" : dtype;
}

/** Only texts are computed with. */
function openBackend(texts: CalibrationTexts | undefined, numThreads: number | undefined): Backend | null {
  if (texts === undefined) return null;
  return createCpuBackend(numThreads === undefined ? {} : { numThreads });
}

function chooseConverter(
  source: SourceModel,
  settings: MethodSettings,
  chosen: ReadonlySet<string>,
  texts: CalibrationTexts | undefined,
  backend: Backend | null,
  numThreads = defaultThreadCount(),
): UnitConverter {
  const flow =
    texts === undefined || backend === null ? undefined : new CalibrationFlow(source, texts, backend);
  if (settings.kind === "gguf") {
    return new GgufConverter(source, settings.mix, numThreads, flow && new ImportanceMatrix(flow));
  }
  const format = moduleFormat(settings, floatOf(source.checkpoint.config.dtype));
  const conversion =
    flow === undefined ? plainConversion(format) : new CalibratedConversion(flow, settings, format);
  return new SafetensorsConverter(source, format, conversion, chosen);
}

/** Equal for runs that write the same bytes: the same model, settings, texts and what stands before the weights. */
function fingerprintOf(
  source: SourceModel,
  settings: MethodSettings,
  chosen: ReadonlySet<string>,
  texts: CalibrationTexts | undefined,
  layout: Uint8Array,
): string {
  const { path, tensors } = source.checkpoint;
  const files = [...new Set(Array.from(tensors.values(), (tensor) => tensor.path))].map((file) => {
    const { size, mtimeMs } = statSync(file);
    return [basename(file), size, mtimeMs];
  });
  const config = readFileSync(join(path, "config.json"), "utf8");
  const parts = [1, config, files, settings, [...chosen], texts?.facts ?? null];
  return createHash("sha256").update(JSON.stringify(parts)).update(layout).digest("hex");
}

async function convertUnits(
  source: SourceModel,
  converter: UnitConverter,
  work: WorkFolder,
  { onProgress, signal }: QuantizeHooks,
): Promise<void> {
  const { units } = source;
  const finished = await converter.resume(work.units, work);
  work.keep(finished);
  const sizes = units.map(workOf);
  const total = sizes.reduce((sum, size) => sum + size, 0);
  let done = sizes.slice(0, finished).reduce((sum, size) => sum + size, 0);
  const clock = new ProgressClock(total, done);
  const report = (index: number): void => {
    const unit = units[Math.min(index, units.length - 1)]?.name ?? "";
    onProgress?.({ unit, doneUnits: index, totalUnits: units.length, ...clock.read(done) });
  };
  report(finished);
  for (let index = finished; index < units.length; index++) {
    if (signal?.aborted === true) {
      throw new OctavoError(
        "request_cancelled",
        "Quantising was stopped; the same command goes on from here.",
      );
    }
    await work.add(await converter.convert(units[index]!, index, work));
    done += sizes[index]!;
    report(index + 1);
  }
}

/** Embeddings are copied, which takes a small share of the time per weight. */
function workOf(unit: SourceUnit): number {
  const numWeights = unit.tensors.reduce(
    (sum, { shape }) => sum + shape.reduce((product, size) => product * size, 1),
    0,
  );
  return unit.layer === undefined ? numWeights / 10 : numWeights;
}

function describe(
  source: SourceModel,
  settings: MethodSettings,
  options: QuantizeOptions,
  texts: CalibrationTexts | undefined,
  work: WorkFolder,
): QuantizationCard {
  const { name, config, tensors } = source.checkpoint;
  const sum = (sizes: readonly number[]): number => sizes.reduce((total, size) => total + size, 0);
  return {
    tool: "octavo quantize",
    method: options.method,
    settings,
    source: {
      name,
      architecture: config.architecture,
      dtype: config.dtype,
      weightBytes: sum(Array.from(tensors.values(), (tensor) => tensor.byteLength)),
    },
    weightBytes: sum(work.units.flatMap((unit) => unit.tensors.map((tensor) => tensor.byteLength))),
    calibration: texts?.facts ?? null,
    errorOf: texts === undefined || settings.kind === "gguf" ? "weights" : "outputs",
    modules: describeModules(work.units),
  };
}
