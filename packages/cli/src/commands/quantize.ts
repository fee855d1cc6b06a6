import { createProgressBar } from "@octavo/engine";
import { quantizeMethods, quantize, type QuantizeOptions } from "@octavo/studio/quantize";
import { Command, InvalidArgumentError } from "commander";
import { interruptible } from "../interruptible.js";
import { collect, parseCount } from "../options/parse.js";
import { createQuantizeLine } from "../output/quantize-line.js";

interface QuantizeFlags extends Omit<QuantizeOptions, "numSamples" | "sampleTokens" | "numThreads"> {
  readonly calibrationSamples?: number;
  readonly calibrationTokens?: number;
  readonly threads?: number;
}

/** `octavo quantize MODEL`: makes a small artifact of a large one. */
export function quantizeCommand(): Command {
  return new Command("quantize")
    .description("write a quantised copy of a model")
    .argument("<model>", "folder or Hugging Face id of an unquantised model")
    .requiredOption("--method <method>", `one of ${quantizeMethods.join(", ")}`)
    .requiredOption("--out <folder>", "folder that appears once all is written")
    .option(
      "--calibration <file>",
      "texts like those the model will see: .txt, or .jsonl with text, prompt or messages",
    )
    .option("--calibration-samples <n>", "sequences to take of them (default: 128)", parseCount(1, 65_536))
    .option("--calibration-tokens <n>", "tokens of a sequence (default: 512)", parseCount(32, 65_536))
    .option(
      "--group-size <n>",
      "columns that share a scale; -1 for whole rows (default: 128; nf4: 64)",
      parseGroupSize,
    )
    .option("--bits <n>", "bits of a weight, for gptq: 2, 3, 4 or 8 (default: 4)", parseCount(1, 16))
    .option("--ignore <module...>", "modules left as they are (default: lm_head)", collect)
    .option("--act-order", "gptq: quantise the inputs that matter most first")
    .option("--double-quant", "nf4: quantise the blocks' maxima too")
    .option("--round-to-nearest", "awq, gptq: plain rounding, without calibration")
    .option("--revision <name>", "branch, tag or commit of a Hugging Face id")
    .option("--download-dir <folder>", "cache of downloaded models (default: Hugging Face's own)")
    .option("--threads <n>", "compute threads (default: the machine's cores)", parseCount(1, 1024))
    .action(run);
}

async function run(model: string, flags: QuantizeFlags): Promise<void> {
  const { calibrationSamples, calibrationTokens, threads, ...options } = flags;
  const line = createQuantizeLine(process.stderr);
  const card = await interruptible(
    (signal) =>
      quantize(
        model,
        { ...options, numSamples: calibrationSamples, sampleTokens: calibrationTokens, numThreads: threads },
        {
          onProgress: line.update,
          onDownload: createProgressBar(process.stderr),
          onWarning: line.warn,
          signal,
        },
      ),
    () =>
      line.warn("stopping when this part is done, so that nothing of it is lost; once more to stop at once"),
  ).finally(() => line.end());
  const ratio = (card.source.weightBytes / card.weightBytes).toFixed(2);
  process.stdout.write(
    `${options.out}: ${card.method}, ${ratio} times smaller than ${card.source.name}; its README.md says what it cost.\n`,
  );
}

function parseGroupSize(text: string): number {
  if (text.trim() === "-1") return -1;
  const value = parseCount(1)(text);
  if (value % 32 !== 0) throw new InvalidArgumentError(`expected -1 or a multiple of 32, not "${text}".`);
  return value;
}
