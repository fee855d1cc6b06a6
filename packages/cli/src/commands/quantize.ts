import { createProgressBar } from "@octavo/engine";
import { loadingOptions } from "@octavo/engine/options";
import { OctavoError } from "@octavo/protocol/errors";
import { option, type OptionType, valueType } from "@octavo/protocol/options";
import { quantizeMethods, quantize } from "@octavo/studio/quantize";
import { defineCommand } from "../command.js";
import { interruptible } from "../interruptible.js";
import { checkFolder } from "../options/check-folder.js";
import { createQuantizeLine } from "../output/quantize-line.js";

const columns = valueType.integer({ min: -1 });
const groupSize: OptionType<number> = {
  ...columns,
  parse(text) {
    const value = columns.parse(text, undefined);
    if (value === -1 || (value > 0 && value % 32 === 0)) return value;
    throw new OctavoError("invalid_option", `expected -1 or a multiple of 32, not "${text}"`);
  },
};

/** `octavo quantize MODEL`: makes a small artifact of a large one. */
export default defineCommand({
  arguments: { "<model>": "folder or Hugging Face id of an unquantised model" },
  options: {
    method: option.text("--method <method>", `one of ${quantizeMethods.join(", ")}`, { isRequired: true }),
    out: option.text("--out <folder>", "folder that appears once all is written", { isRequired: true }),
    calibration: option.text(
      "--calibration <file>",
      "texts like those the model will see: .txt, or .jsonl with text, prompt or messages",
    ),
    numSamples: option.integer("--calibration-samples <n>", "sequences taken from these texts", {
      min: 1,
      max: 65_536,
      defaultText: "128",
    }),
    sampleTokens: option.integer("--calibration-tokens <n>", "tokens of a sequence", {
      min: 32,
      max: 65_536,
      defaultText: "512",
    }),
    groupSize: option.of(groupSize, "--group-size <n>", "columns that share a scale; -1 for whole rows", {
      defaultText: "128; nf4: 64",
    }),
    bits: option.integer("--bits <n>", "gptq: bits of a weight: 2, 3, 4 or 8", {
      min: 1,
      max: 16,
      defaultText: "4",
    }),
    ignore: option.texts("--ignore <module...>", "modules left as they are", { defaultText: "lm_head" }),
    actOrder: option.toggle("--act-order", "gptq: quantise the inputs that matter most first"),
    doubleQuant: option.toggle("--double-quant", "nf4: quantise the blocks' maxima too"),
    roundToNearest: option.toggle("--round-to-nearest", "awq, gptq: plain rounding, without calibration"),
    revision: { ...loadingOptions.revision, group: "Options" },
    downloadDir: { ...loadingOptions.downloadDir, group: "Options" },
    numThreads: { ...loadingOptions.numThreads, group: "Options" },
  },
  async run(options, model: string) {
    checkFolder("out", options.out);
    const line = createQuantizeLine(process.stderr);
    const card = await interruptible(
      (signal) =>
        quantize(model, options, {
          onProgress: line.update,
          onDownload: createProgressBar(process.stderr),
          onWarning: line.warn,
          signal,
        }),
      () => line.warn("stopping when this part is done, so that none of it is lost; again to stop at once"),
    ).finally(() => line.end());
    const ratio = (card.source.weightBytes / card.weightBytes).toFixed(2);
    process.stdout.write(
      `${options.out}: ${card.method}, ${ratio} times smaller than ${card.source.name}; its README.md says what it cost.\n`,
    );
  },
});
