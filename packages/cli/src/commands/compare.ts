import { loadingOptions } from "@octavo/engine/options";
import { option } from "@octavo/protocol/options";
import { compareModels, type CompareProgress, renderHtml, renderTable } from "@octavo/studio/compare";
import { defineCommand } from "../command.js";
import { interruptible } from "../interruptible.js";
import { checkOutputs, writeTextOf } from "../output/files.js";
import { createLoadingLine } from "../output/loading-line.js";
import { isCapable } from "@octavo/artifacts/hub/progress-bar";

/** `octavo compare BASELINE VARIANT`: what an artifact changes, token by token. Exit code 2 says drift. */
export default defineCommand({
  arguments: {
    "<baseline>": "folder, .gguf file or Hugging Face id",
    "<variant>": "the same model in another form",
  },
  options: {
    data: option.text(
      "--data <file>",
      "JSON lines of {messages, tools?}, {messages, completion}, {prompt, completion} or {text}",
      { isRequired: true },
    ),
    limit: option.integer("--limit <n>", "take the first n lines", { min: 1, defaultText: "all" }),
    kvCacheDtype: { ...loadingOptions.kvCacheDtype, group: "Options" },
    variantKvCacheDtype: option.of(
      loadingOptions.kvCacheDtype.type,
      "--variant-kv-cache-dtype <type>",
      "the variant's",
      { defaultText: "as --kv-cache-dtype says" },
    ),
    asDeclared: option.toggle(
      "--as-declared",
      "round the variant's FP8 activations as its checkpoint declares",
    ),
    numThreads: { ...loadingOptions.numThreads, group: "Options" },
    resamples: option.integer("--resamples <n>", "resamples of the bootstrap", {
      min: 200,
      max: 100_000,
      default: 2000,
    }),
    seed: option.integer("--seed <n>", "seed of the resamples", { min: 0, default: 1 }),
    html: option.text("--html <file>", "write a self-contained HTML page with plots"),
    json: option.toggle("--json", "print the comparison as JSON instead of a table"),
  },
  async run({ data, html, json, ...options }, baseline: string, variant: string) {
    checkOutputs({ html });
    const loading = createLoadingLine(process.stderr);
    const comparison = await interruptible((signal) =>
      compareModels({
        ...options,
        baseline,
        variant,
        dataPath: data,
        signal,
        onLoadProgress: loading.update,
        onWarning: loading.warn,
        onProgress: showProgress,
      }),
    ).finally(() => loading.end());
    process.stdout.write(json ? `${JSON.stringify(comparison, null, 2)}\n` : renderTable(comparison));
    if (html !== undefined) await writeTextOf("html", html, renderHtml(comparison));
    if (comparison.verdict.verdict === "drift") process.exitCode = 2;
  },
});

/** One line, redrawn on a terminal; elsewhere nothing. */
function showProgress({ doneTokens, totalTokens }: CompareProgress): void {
  if (!isCapable(process.stderr)) return;
  process.stderr.write(
    `\r\u001b[2Kcomparing ${doneTokens} of ${totalTokens} tokens${doneTokens === totalTokens ? "\n" : ""}`,
  );
}
