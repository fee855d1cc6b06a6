import { describeModel } from "@octavo/engine";
import { loadingOptions } from "@octavo/engine/options";
import { OctavoError } from "@octavo/protocol/errors";
import { option, type OptionType, valueType } from "@octavo/protocol/options";
import {
  type TokenPrice,
  type Hardware,
  hardwareTable,
  kvFormats,
  makePlan,
  measureCpu,
  renderPlan,
} from "@octavo/studio/plan";
import { defineCommand } from "../command.js";

const hardwareNames: readonly string[] = [...Object.keys(hardwareTable), "cpu"];
const hardwareName = valueType.choice(hardwareNames);
const hardwareList: OptionType<readonly string[]> = {
  ...valueType.list(hardwareName),
  isList: false,
  parse: (text) => [
    ...new Set(text.split(",").map((name) => hardwareName.parse(name.trim().toLowerCase(), undefined))),
  ],
  show: (names) => names.join(","),
};

const rate = valueType.number({ min: 0 });
const rates: OptionType<readonly number[]> = {
  ...valueType.list(rate),
  isList: false,
  parse: (text) => text.split(",").map((part) => rate.parse(part, undefined)),
  show: (values) => values.join(","),
};

const price = valueType.number({ min: 0 });
const apiPrice: OptionType<TokenPrice> = {
  expects: "dollars per million input and output tokens",
  accepts: (value) => typeof value === "object",
  parse(text) {
    const [input = "", output = input, ...rest] = text.split("/");
    if (rest.length > 0)
      throw new OctavoError("invalid_option", 'expected one price or two, such as "0.15/0.60"');
    return {
      dollarsPerMillionInput: price.parse(input, undefined),
      dollarsPerMillionOutput: price.parse(output, undefined),
    };
  },
  show: ({ dollarsPerMillionInput, dollarsPerMillionOutput }) =>
    `${dollarsPerMillionInput}/${dollarsPerMillionOutput}`,
};

/** `octavo plan MODEL`: what a model costs to serve, from its config.json or GGUF header alone. */
export default defineCommand({
  arguments: {
    "<model>": "folder, config.json, .gguf file or Hugging Face id; weights are not downloaded",
  },
  options: {
    hardware: option.of(hardwareList, "--hardware <names>", "one or more, separated by commas", {
      default: ["h100"],
    }),
    devices: option.integer("--devices <n>", "devices that share the model", {
      min: 1,
      max: 1024,
      default: 1,
    }),
    memory: option.bytes("--memory <size>", "memory of a device, e.g. 16GiB", { defaultText: "the table's" }),
    bandwidth: option.number("--bandwidth <GB/s>", "memory bandwidth of a device", {
      min: 0.001,
      defaultText: "the table's",
    }),
    threads: { ...loadingOptions.numThreads, group: "Options", help: "cpu: threads to measure with" },
    context: option.integer("--context <tokens>", "tokens of a request, prompt and output", {
      min: 2,
      defaultText: "4096, or the model's context where that is shorter",
    }),
    outputTokens: option.integer("--output-tokens <tokens>", "how many of these are generated", {
      min: 1,
      defaultText: "512, or half of them",
    }),
    concurrency: option.integer("--concurrency <n>", "sequences that decode at once", {
      min: 1,
      defaultText: "as many as fit, at most 256",
    }),
    kvFormat: option.choice(
      kvFormats,
      "--kv-cache-dtype <type>",
      "type of the KV cache for speeds and cost",
      { default: "bf16" as const },
    ),
    memoryUtilization: option.number(
      "--gpu-memory-utilization <share>",
      "share of the memory for weights and KV cache",
      { min: 0.01, max: 1, default: 0.9 },
    ),
    efficiency: option.number("--efficiency <share>", "share of the roofline that is reached", {
      min: 0.001,
      max: 1,
      default: 1,
    }),
    rates: option.of(
      rates,
      "--rate <dollars>",
      "what all devices together cost per hour; with several kinds of hardware one for each, separated by commas",
    ),
    apiPrice: option.of(
      apiPrice,
      "--api-price <in/out>",
      "an API's dollars per million input and output tokens, e.g. 0.15/0.60; needs --rate",
    ),
    json: option.toggle("--json", "print the plan as JSON instead of tables"),
  },
  async run({ hardware: ids, rates: dollars, memory, bandwidth, threads, json, ...options }, model: string) {
    if (options.apiPrice !== undefined && dollars === undefined)
      throw new OctavoError("invalid_option", "--api-price needs --rate, what the machine costs per hour", {
        param: "rate",
      });
    if (dollars !== undefined && dollars.length !== ids.length)
      throw new OctavoError(
        "invalid_option",
        `--rate: ${ids.length} kinds of hardware need as many rates, as in --rate ${ids.map((_, index) => index + 1).join(",")}; given are ${dollars.length}`,
        { param: "rate" },
      );
    const description = await describeModel(model);
    const hardware: { id: string; hardware: Hardware; dollarsPerHour: number | undefined }[] = [];
    for (const [index, id] of ids.entries())
      hardware.push({
        id,
        dollarsPerHour: dollars?.[index],
        hardware: {
          ...((Object.hasOwn(hardwareTable, id) ? hardwareTable[id] : undefined) ??
            (await measureCpu(threads))),
          ...(memory !== undefined && { memoryBytes: memory }),
          ...(bandwidth !== undefined && { bandwidth: bandwidth * 1e9 }),
        },
      });
    const result = makePlan(model, description, { ...options, dollarsPerHour: undefined, hardware });
    process.stdout.write(json ? `${JSON.stringify(result, null, 2)}\n` : renderPlan(result));
  },
});
