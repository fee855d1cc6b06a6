import { describeModel } from "@octavo/engine";
import {
  type TokenPrice,
  type Hardware,
  hardwareTable,
  type KvFormat,
  kvFormats,
  makePlan,
  measureCpu,
  renderPlan,
} from "@octavo/studio/plan";
import { OctavoError } from "@octavo/protocol";
import { Command, InvalidArgumentError, Option } from "commander";
import { parseBytes, parseCount, parseNumber } from "../options/parse.js";

interface PlanFlags {
  readonly hardware: readonly string[];
  readonly devices: number;
  readonly memory?: number;
  readonly bandwidth?: number;
  readonly threads?: number;
  readonly context?: number;
  readonly outputTokens?: number;
  readonly concurrency?: number;
  readonly kvCacheDtype: KvFormat;
  readonly gpuMemoryUtilization: number;
  readonly efficiency: number;
  readonly rate?: number;
  readonly apiPrice?: TokenPrice;
  readonly json?: boolean;
}

/** `octavo plan MODEL`: what a model costs to serve, from its config.json or GGUF header alone. */
export function planCommand(): Command {
  return new Command("plan")
    .description("what a model takes: bytes by format, sequences that fit, roofline speeds, cost")
    .argument("<model>", "folder, config.json, .gguf file or Hugging Face id; weights are not downloaded")
    .option("--hardware <names>", `one or more of ${names().join(", ")}`, parseHardware, ["h100"])
    .option("--devices <n>", "devices that share the model", parseCount(1, 1024), 1)
    .option("--memory <size>", "memory of a device instead of the table's, e.g. 16GiB", parseBytes)
    .option("--bandwidth <GB/s>", "bandwidth of a device instead of the table's", parseNumber(0.001))
    .option(
      "--threads <n>",
      "cpu: threads to measure with (default: the machine's cores)",
      parseCount(1, 1024),
    )
    .option(
      "--context <tokens>",
      "tokens of a request, prompt and output (default: 4096, or as many as the model takes)",
      parseCount(2),
    )
    .option(
      "--output-tokens <tokens>",
      "how many of them are generated (default: 512, or half of them)",
      parseCount(1),
    )
    .option(
      "--concurrency <n>",
      "sequences that decode at once (default: as many as fit, at most 256)",
      parseCount(1),
    )
    .addOption(
      new Option("--kv-cache-dtype <type>", "type of the KV cache for speeds and cost")
        .choices(kvFormats)
        .default("bf16"),
    )
    .option(
      "--gpu-memory-utilization <share>",
      "share of the memory for weights and KV cache",
      parseNumber(0.01, 1),
      0.9,
    )
    .option("--efficiency <share>", "share of the ceilings that is reached", parseNumber(0.001, 1), 1)
    .option("--rate <dollars>", "what all devices together cost per hour", parseNumber(0))
    .option(
      "--api-price <in/out>",
      "an API's dollars per million input and output tokens, e.g. 0.15/0.60; needs --rate",
      parseTokenPrice,
    )
    .option("--json", "print the plan as JSON instead of tables")
    .action((model: string, flags: PlanFlags) => plan(model, flags));
}

async function plan(model: string, flags: PlanFlags): Promise<void> {
  if (flags.apiPrice !== undefined && flags.rate === undefined) {
    throw new OctavoError("invalid_option", "--api-price needs --rate, what the machine costs per hour", {
      param: "rate",
    });
  }
  const description = await describeModel(model);
  const hardware: { id: string; hardware: Hardware }[] = [];
  for (const id of flags.hardware) hardware.push({ id, hardware: await hardwareOf(id, flags) });
  const result = makePlan(model, description, {
    hardware,
    devices: flags.devices,
    context: flags.context,
    outputTokens: flags.outputTokens,
    concurrency: flags.concurrency,
    kvFormat: flags.kvCacheDtype,
    memoryUtilization: flags.gpuMemoryUtilization,
    efficiency: flags.efficiency,
    dollarsPerHour: flags.rate,
    apiPrice: flags.apiPrice,
  });
  process.stdout.write(flags.json ? `${JSON.stringify(result, null, 2)}\n` : renderPlan(result));
}

async function hardwareOf(id: string, { memory, bandwidth, threads }: PlanFlags): Promise<Hardware> {
  const known = Object.hasOwn(hardwareTable, id) ? hardwareTable[id] : undefined;
  const hardware = known ?? (await measureCpu(threads));
  return {
    ...hardware,
    ...(memory !== undefined && { memoryBytes: memory }),
    ...(bandwidth !== undefined && { bandwidth: bandwidth * 1e9 }),
  };
}

function names(): string[] {
  return [...Object.keys(hardwareTable), "cpu"];
}

function parseHardware(text: string): readonly string[] {
  const wanted = text.split(",").map((name) => name.trim().toLowerCase());
  const stranger = wanted.find((name) => !names().includes(name));
  if (stranger !== undefined) {
    throw new InvalidArgumentError(`"${stranger}" is not known; there are ${names().join(", ")}.`);
  }
  return [...new Set(wanted)];
}

function parseTokenPrice(text: string): TokenPrice {
  const [input = "", output = input, ...rest] = text.split("/");
  if (rest.length > 0) throw new InvalidArgumentError('expected one price or two, such as "0.15/0.60".');
  const price = parseNumber(0);
  return { dollarsPerMillionInput: price(input), dollarsPerMillionOutput: price(output) };
}
