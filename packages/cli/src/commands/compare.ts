import { writeFile } from "node:fs/promises";
import { compareModels, type CompareProgress, renderHtml, renderTable } from "@octavo/studio/compare";
import { OctavoError } from "@octavo/protocol";
import { Command, Option } from "commander";
import { interruptible } from "../interruptible.js";
import { createLoadingLine } from "../output/loading-line.js";
import { parseCount } from "../options/parse.js";

const kvCacheTypes = ["auto", "f32", "f16", "bf16", "int8"] as const;
type KvCacheType = (typeof kvCacheTypes)[number];

interface CompareFlags {
  readonly data: string;
  readonly limit?: number;
  readonly kvCacheDtype?: KvCacheType;
  readonly variantKvCacheDtype?: KvCacheType;
  readonly threads?: number;
  readonly resamples: number;
  readonly seed: number;
  readonly json?: boolean;
  readonly html?: string;
}

/** `octavo compare BASELINE VARIANT`: what an artifact changes, token by token. Exit code 2 says drift. */
export function compareCommand(): Command {
  return new Command("compare")
    .description("run two artifacts of one model over the same tokens and say what the second one changes")
    .argument("<baseline>", "folder, .gguf file or Hugging Face id")
    .argument("<variant>", "the same model in another form")
    .requiredOption(
      "--data <file>",
      "JSON lines of {messages, tools?}, {messages, completion}, {prompt, completion} or {text}",
    )
    .option("--limit <n>", "take the first n lines", parseCount(1))
    .addOption(new Option("--kv-cache-dtype <type>", "type of cached keys and values").choices(kvCacheTypes))
    .addOption(
      new Option("--variant-kv-cache-dtype <type>", "the variant's, where it is another").choices(
        kvCacheTypes,
      ),
    )
    .option("--threads <n>", "compute threads (default: the machine's cores)", parseCount(1, 1024))
    .option("--resamples <n>", "resamples of the bootstrap", parseCount(200, 100_000), 2000)
    .option("--seed <n>", "seed of the resamples", parseCount(0), 1)
    .option("--html <file>", "write a page with plots, readable without a network")
    .option("--json", "print the comparison as JSON instead of a table")
    .action((baseline: string, variant: string, flags: CompareFlags) => compare(baseline, variant, flags));
}

async function compare(baseline: string, variant: string, flags: CompareFlags): Promise<void> {
  const loading = createLoadingLine(process.stderr);
  const comparison = await interruptible((signal) =>
    compareModels({
      baseline,
      variant,
      dataPath: flags.data,
      limit: flags.limit,
      kvCacheDtype: flags.kvCacheDtype,
      variantKvCacheDtype: flags.variantKvCacheDtype,
      numThreads: flags.threads,
      resamples: flags.resamples,
      seed: flags.seed,
      signal,
      onLoadProgress: loading.update,
      onWarning: loading.warn,
      onProgress: showProgress,
    }),
  ).finally(() => loading.end());
  process.stdout.write(flags.json ? `${JSON.stringify(comparison, null, 2)}\n` : renderTable(comparison));
  if (flags.html !== undefined) await writePage(flags.html, renderHtml(comparison));
  if (comparison.verdict.verdict === "drift") process.exitCode = 2;
}

/** What was compared for minutes is printed by then. */
async function writePage(path: string, page: string): Promise<void> {
  try {
    await writeFile(path, page);
  } catch (cause) {
    const { code = "unknown" } = cause as NodeJS.ErrnoException;
    throw new OctavoError("invalid_option", `--html: ${path} cannot be written (${code})`, {
      param: "html",
      cause,
    });
  }
}

/** One line, redrawn on a terminal; elsewhere nobody watches. */
function showProgress({ doneTokens, totalTokens }: CompareProgress): void {
  if (!process.stderr.isTTY) return;
  process.stderr.write(
    `\r\u001b[2Kcomparing ${doneTokens} of ${totalTokens} tokens${doneTokens === totalTokens ? "\n" : ""}`,
  );
}
