import { isEmbeddedModel } from "@octavo/artifacts/hub/local-model";
import { listCachedModels, removeCachedModel, type CachedModel } from "@octavo/artifacts/hub/cached-models";
import { formatDecimalBytes } from "@octavo/artifacts/hub/progress-bar";
import { resolveModel } from "@octavo/artifacts/hub/resolve-model";
import { OctavoError } from "@octavo/protocol/errors";
import { formatBinaryBytes, option } from "@octavo/protocol/options";
import { defineCommand } from "../command.js";
import { interruptible } from "../interruptible.js";
import { createLoadingLine } from "../output/loading-line.js";
import { printable, textTable } from "@octavo/report/text-table";
import { fitOf, fitText, type ModelFit } from "../models/model-fit.js";

const json = option.toggle("--json", "print JSON instead of a table");

/** `octavo pull MODEL`: downloads without loading. */
export const pullCommand = defineCommand({
  arguments: {
    "<model>": "Hugging Face id: org/name, org/name@revision, org/name:Q4_K_M or org/name/file.gguf",
  },
  options: {},
  async run(_, model: string) {
    refuseEmbedded(model);
    const line = createLoadingLine(process.stderr);
    const found = await interruptible((signal) =>
      resolveModel(model, {
        onProgress: (download) =>
          line.update({
            phase: "downloading",
            doneBytes: download.receivedBytes,
            totalBytes: download.totalBytes,
            download,
          }),
        onWarning: line.warn,
        signal,
      }),
    ).finally(() => line.end());
    process.stdout.write(`${found.path}\n`);
  },
});

/** `octavo list`: the models of the cache. */
export const listCommand = defineCommand({
  options: { json },
  async run(options) {
    const models = await Promise.all(
      listCachedModels().map(async (model) => ({ ...model, fit: await fitOf(pathOf(model)) })),
    );
    if (options.json) {
      process.stdout.write(`${JSON.stringify(models, null, 2)}\n`);
      return;
    }
    if (models.length === 0) process.stderr.write("no models yet; octavo pull ORG/NAME downloads one\n");
    else
      process.stdout.write(
        textTable(models, [
          { head: "MODEL", of: ({ repository }) => repository },
          { head: "SIZE", of: ({ bytes }) => formatDecimalBytes(bytes) },
          { head: "WEIGHTS", of: (model) => weightsOf(model, model.fit.weights) },
          { head: "HERE", of: ({ fit }) => fitText(fit) },
          { head: "SINCE", of: ({ modifiedMs }) => new Date(modifiedMs).toISOString().slice(0, 10) },
        ]),
      );
  },
});

/** `octavo show MODEL`: one model, in the cache or anywhere else. */
export const showCommand = defineCommand({
  arguments: {
    "<model>": "folder, .gguf file or Hugging Face id; of one not in the cache, its config alone is read",
  },
  options: { json },
  async run(options, model: string) {
    const fit = await fitOf(model);
    if (fit.problem !== undefined) throw fit.problem;
    const cached = listCachedModels().find(({ repository }) => repository === model);
    const facts: Record<string, unknown> = {
      model,
      family: fit.family,
      parameters: fit.parameters,
      weights: fit.weights,
      weightBytes: fit.weightBytes,
      context: fit.context,
      kvBytesPerToken: fit.kvBytesPerToken,
      here: fitText(fit),
      ...(cached !== undefined && {
        folder: cached.snapshot,
        bytesOnDisk: cached.bytes,
        ggufFiles: cached.ggufFiles.length > 0 ? cached.ggufFiles : undefined,
      }),
    };
    if (options.json) process.stdout.write(`${JSON.stringify(facts, null, 2)}\n`);
    else process.stdout.write(shownFacts(model, fit, cached));
  },
});

/** `octavo rm MODEL ...`: removes models from the cache. */
export const rmCommand = defineCommand({
  arguments: { "<model>": "Hugging Face id of a model in the cache" },
  options: {},
  async run(_, model: string) {
    refuseEmbedded(model);
    const { repository, bytes } = removeCachedModel(model);
    process.stderr.write(`${repository}: ${formatDecimalBytes(bytes)} freed\n`);
    await Promise.resolve();
  },
});

function refuseEmbedded(model: string): void {
  if (isEmbeddedModel(model))
    throw new OctavoError("invalid_option", `${model} comes with the package, and is not in the cache`, {
      param: "model",
    });
}

/** A line per fact, with units. */
function shownFacts(model: string, fit: ModelFit, cached: CachedModel | undefined): string {
  const { family, parameters, weights, weightBytes, context, kvBytesPerToken } = fit;
  const lines: readonly (readonly [string, string | undefined])[] = [
    ["model", model],
    ["family", family],
    ["parameters", parameters === undefined ? undefined : formatCount(parameters)],
    ["weights", weightBytes === undefined ? weights : `${weights}, ${formatBinaryBytes(weightBytes)}`],
    ["context", context === undefined ? undefined : `${context} tokens`],
    ["KV cache", kvBytesPerToken === undefined ? undefined : `${formatBinaryBytes(kvBytesPerToken)} a token`],
    ["here", fitText(fit)],
    ["folder", cached?.snapshot],
    ["on disk", cached === undefined ? undefined : formatDecimalBytes(cached.bytes)],
    [
      "GGUF files",
      cached === undefined || cached.ggufFiles.length === 0 ? undefined : cached.ggufFiles.join(", "),
    ],
  ];
  return lines
    .flatMap(([name, value]) => (value === undefined ? [] : [`${name.padEnd(12)}${printable(value)}\n`]))
    .join("");
}

function formatCount(count: number): string {
  const [scale, unit] = count >= 1e9 ? [1e9, "billion"] : [1e6, "million"];
  return `${(count / scale).toPrecision(3)} ${unit}`;
}

function pathOf({ snapshot, ggufFiles, hasSafetensors, repository }: CachedModel): string | OctavoError {
  if (snapshot === undefined) return new OctavoError("artifact_not_found", `${repository}: not whole yet`);
  const [gguf] = ggufFiles;
  return hasSafetensors || gguf === undefined ? snapshot : `${snapshot}/${gguf}`;
}

function weightsOf({ ggufFiles, incompleteBytes }: CachedModel, weights: string | undefined): string {
  const names = ggufFiles.length > 1 ? `${ggufFiles.length} GGUF files` : (weights ?? "-");
  return incompleteBytes > 0 ? `${names}, partly downloaded` : names;
}
