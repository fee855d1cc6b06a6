import { createProgressBar } from "@octavo/engine";
import { loadingOptions } from "@octavo/engine/options";
import { OctavoError } from "@octavo/protocol/errors";
import { option, type OptionType } from "@octavo/protocol/options";
import { methodNames, quantize as quantizeModel } from "@octavo/studio/quantize";
import { defineCommand } from "../command.js";
import { interruptible } from "../interruptible.js";
import { createQuantizeLine } from "../output/quantize-line.js";

const columns = option.integer({ min: -1 });
const groupSize: OptionType<number> = {
  ...columns,
  parse(text) {
    const value = columns.parse(text, undefined);
    if (value === -1 || (value > 0 && value % 32 === 0)) return value;
    throw new OctavoError("invalid_option", `expected -1 or a multiple of 32, not "${text}"`);
  },
};

/** `octavo quantize MODEL`: makes a small artifact of a large one. */
export const quantize = defineCommand({
  arguments: { "<model>": "folder or Hugging Face id of an unquantised model" },
  options: {
    method: {
      flag: "method",
      type: option.text("method"),
      isRequired: true,
      help: `one of ${methodNames.join(", ")}`,
    },
    out: {
      flag: "out",
      type: option.text("folder"),
      isRequired: true,
      help: "folder that appears once all is written",
    },
    calibration: {
      flag: "calibration",
      type: option.text("file"),
      help: "texts like those the model will see: .txt, or .jsonl with text, prompt or messages",
    },
    numSamples: {
      flag: "calibration-samples",
      type: option.integer({ min: 1, max: 65_536 }),
      default: 128,
      help: "sequences taken from these texts",
    },
    sampleTokens: {
      flag: "calibration-tokens",
      type: option.integer({ min: 32, max: 65_536 }),
      default: 512,
      help: "tokens of a sequence",
    },
    groupSize: {
      flag: "group-size",
      type: groupSize,
      defaultText: "128; nf4: 64",
      help: "columns that share a scale; -1 for whole rows",
    },
    bits: {
      flag: "bits",
      type: option.integer({ min: 1, max: 16 }),
      defaultText: "4",
      help: "gptq: bits of a weight: 2, 3, 4 or 8",
    },
    ignore: {
      flag: "ignore",
      type: option.list(option.text("module")),
      defaultText: "lm_head",
      help: "modules left as they are",
    },
    actOrder: {
      flag: "act-order",
      type: option.toggle(),
      help: "gptq: quantise the inputs that matter most first",
    },
    doubleQuant: {
      flag: "double-quant",
      type: option.toggle(),
      help: "nf4: quantise the blocks' maxima too",
    },
    roundToNearest: {
      flag: "round-to-nearest",
      type: option.toggle(),
      help: "awq, gptq: plain rounding, without calibration",
    },
    revision: { ...loadingOptions.revision, group: "Options" },
    downloadDir: { ...loadingOptions.downloadDir, group: "Options" },
    numThreads: { ...loadingOptions.numThreads, group: "Options" },
  },
  async run(options, model: string) {
    const line = createQuantizeLine(process.stderr);
    const card = await interruptible(
      (signal) =>
        quantizeModel(model, options, {
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
