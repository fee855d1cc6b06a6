import { describeModel } from "@octavo/engine";
import { loadingOptions } from "@octavo/engine/options";
import { OctavoError } from "@octavo/protocol/errors";
import { option, type OptionType } from "@octavo/protocol/options";
import {
  type ApiPrice,
  type Hardware,
  hardwareTable,
  kvFormats,
  makePlan,
  measureCpu,
  renderPlan,
} from "@octavo/studio/plan";
import { defineCommand } from "../command.js";

const hardwareNames: readonly string[] = [...Object.keys(hardwareTable), "cpu"];
const hardwareName = option.choice(hardwareNames);
const hardwareList: OptionType<readonly string[]> = {
  ...option.list(hardwareName),
  placeholder: "names",
  isList: false,
  parse: (text) => [
    ...new Set(text.split(",").map((name) => hardwareName.parse(name.trim().toLowerCase(), undefined))),
  ],
  show: (names) => names.join(","),
};

const price = option.number({ min: 0 });
const apiPrice: OptionType<ApiPrice> = {
  placeholder: "in/out",
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
export const plan = defineCommand({
  arguments: {
    "<model>": "folder, config.json, .gguf file or Hugging Face id; weights are not downloaded",
  },
  options: {
    hardware: {
      flag: "hardware",
      type: hardwareList,
      default: ["h100"],
      help: "one or more, separated by commas",
    },
    devices: {
      flag: "devices",
      type: option.integer({ min: 1, max: 1024 }),
      default: 1,
      help: "devices that share the model",
    },
    memory: {
      flag: "memory",
      type: option.bytes(),
      defaultText: "the table's",
      help: "memory of a device, e.g. 16GiB",
    },
    bandwidth: {
      flag: "bandwidth",
      type: option.number({ min: 0.001 }, "GB/s"),
      defaultText: "the table's",
      help: "memory bandwidth of a device",
    },
    threads: { ...loadingOptions.numThreads, group: "Options", help: "cpu: threads to measure with" },
    context: {
      flag: "context",
      type: option.integer({ min: 2 }, "tokens"),
      defaultText: "4096, or the model's context where that is shorter",
      help: "tokens of a request, prompt and output",
    },
    outputTokens: {
      flag: "output-tokens",
      type: option.integer({ min: 1 }, "tokens"),
      defaultText: "512, or half of them",
      help: "how many of these are generated",
    },
    concurrency: {
      flag: "concurrency",
      type: option.integer({ min: 1 }),
      defaultText: "as many as fit, at most 256",
      help: "sequences that decode at once",
    },
    kvFormat: {
      flag: "kv-cache-dtype",
      type: option.choice(kvFormats, "type"),
      default: "bf16" as const,
      help: "type of the KV cache for speeds and cost",
    },
    memoryUtilization: {
      flag: "gpu-memory-utilization",
      type: option.number({ min: 0.01, max: 1 }, "share"),
      default: 0.9,
      help: "share of the memory for weights and KV cache",
    },
    efficiency: {
      flag: "efficiency",
      type: option.number({ min: 0.001, max: 1 }, "share"),
      default: 1,
      help: "share of the roofline that is reached",
    },
    dollarsPerHour: {
      flag: "rate",
      type: option.number({ min: 0 }, "dollars"),
      help: "what all devices together cost per hour",
    },
    apiPrice: {
      flag: "api-price",
      type: apiPrice,
      help: "an API's dollars per million input and output tokens, e.g. 0.15/0.60; needs --rate",
    },
    json: {
      flag: "json",
      type: option.toggle(),
      default: false,
      help: "print the plan as JSON instead of tables",
    },
  },
  async run({ hardware: ids, memory, bandwidth, threads, json, ...options }, model: string) {
    if (options.apiPrice !== undefined && options.dollarsPerHour === undefined)
      throw new OctavoError("invalid_option", "--api-price needs --rate, what the machine costs per hour", {
        param: "rate",
      });
    const description = await describeModel(model);
    const hardware: { id: string; hardware: Hardware }[] = [];
    for (const id of ids)
      hardware.push({
        id,
        hardware: {
          ...((Object.hasOwn(hardwareTable, id) ? hardwareTable[id] : undefined) ??
            (await measureCpu(threads))),
          ...(memory !== undefined && { memoryBytes: memory }),
          ...(bandwidth !== undefined && { bandwidth: bandwidth * 1e9 }),
        },
      });
    const result = makePlan(model, description, { ...options, hardware });
    process.stdout.write(json ? `${JSON.stringify(result, null, 2)}\n` : renderPlan(result));
  },
});
