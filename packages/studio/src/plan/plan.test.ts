import assert from "node:assert/strict";
import test from "node:test";
import { OctavoError } from "@octavo/protocol";
import { costOf, crossingOf } from "./cost.js";
import type { Hardware } from "./hardware/hardware.js";
import { hardwareTable, makePlan, measureCpu, type PlanOptions, renderPlan } from "./index.js";
import { decodeRoofline, expertsHit, prefillRoofline, readBytesOf } from "./roofline.js";
import { weightFormats } from "./formats/weight-formats.js";
import { readConfigShape } from "./shape/read-shape.js";
import { gemma2Config, llama31Config, mixtralConfig } from "./testing/configs.js";

const h100 = hardwareTable["h100"]!;
const options: PlanOptions = {
  hardware: [{ id: "h100", hardware: h100 }],
  devices: 1,
  context: 4096,
  outputTokens: 512,
  concurrency: undefined,
  kvFormat: "bf16",
  memoryUtilization: 0.9,
  efficiency: 1,
  dollarsPerHour: undefined,
  apiPrice: undefined,
};
const described = (json: unknown) => ({
  source: { kind: "config" as const, path: "config.json", json },
  tensors: undefined,
});
const near = (actual: number, expected: number) =>
  assert.ok(Math.abs(actual / expected - 1) < 1e-9, `${actual} instead of ${expected}`);

test("sequences that fit: what the weights leave, over one sequence's cache", () => {
  const plan = makePlan("llama", described(llama31Config), options);
  const [bf16, fp8] = plan.machines[0]!.formats;
  // 72 GB - 16.06 GB, over 4096 tokens of 128 KiB.
  assert.equal(bf16?.sequences.bf16, Math.floor((72e9 - 16_060_522_496) / (4096 * 131_072)));
  assert.equal(bf16?.sequences.bf16, 104);
  assert.equal(bf16?.sequences.fp8, 208);
  assert.ok((fp8?.sequences.bf16 ?? 0) > 104);
  assert.equal(bf16?.devicesNeeded, 1);
});

test("decode: bytes over bandwidth for one stream, operations once the batch is large", () => {
  const shape = readConfigShape("config.json", llama31Config);
  const format = weightFormats[0]!;
  const workload = { shape, read: readBytesOf(shape, format), compute: "bf16", kvFormat: "bf16" } as const;
  const machine = { hardware: h100, devices: 1, efficiency: 1 };
  // The embedding is looked up: all weights but its 128256 x 4096.
  const weights = 2 * (8_030_261_248 - 128_256 * 4096);
  const one = decodeRoofline(workload, machine, 1, 1);
  near(one.seconds, (weights + 131_072) / 3.35e12);
  assert.equal(one.limit, "memory");
  const many = decodeRoofline(workload, machine, 1000, 16);
  const matrices = 8_030_261_248 - 128_256 * 4096 - 65 * 4096;
  near(many.seconds, (1000 * (2 * matrices + 32 * 4 * 32 * 128 * 16)) / 989.4e12);
  assert.equal(many.limit, "compute");
  near(decodeRoofline(workload, { ...machine, devices: 2, efficiency: 0.5 }, 1, 1).seconds, one.seconds);
});

test("the rule of thumb: 140 GB of weights on an H100 give 24 tokens/s, 35 GB give 95", () => {
  for (const [gigabytes, tokens] of [
    [140, 24],
    [35, 95],
  ] as const) {
    const shape = { ...readConfigShape("config.json", llama31Config), attention: [], matrices: [] };
    const workload = {
      shape,
      read: { always: gigabytes * 1e9, routed: 0 },
      compute: "bf16",
      kvFormat: "bf16",
    } as const;
    const { tokensPerSecond } = decodeRoofline(workload, { hardware: h100, devices: 1, efficiency: 1 }, 1, 0);
    assert.ok(Math.abs(tokensPerSecond - tokens) < 1, String(tokensPerSecond));
  }
});

test("prefill: two operations per weight and token, and a triangle of attention", () => {
  const shape = readConfigShape("config.json", gemma2Config);
  const format = weightFormats[0]!;
  const workload = { shape, read: readBytesOf(shape, format), compute: "bf16", kvFormat: "bf16" } as const;
  const tokens = 6000;
  const layers = 9_241_705_984 - 256_000 * 3584 - (42 * 4 + 1) * 3584;
  const full = (tokens * (tokens + 1)) / 2;
  const windowed = (4096 * 4097) / 2 + (tokens - 4096) * 4096;
  const flops = 2 * layers * tokens + 2 * 256_000 * 3584 + 4 * 16 * 256 * 21 * (full + windowed);
  const roofline = prefillRoofline(workload, { hardware: h100, devices: 1, efficiency: 1 }, tokens);
  near(roofline.seconds, flops / 989.4e12);
});

test("experts: a batch reads those that its tokens are sent to", () => {
  const shape = readConfigShape("config.json", mixtralConfig);
  near(expertsHit(shape, 1), 2 / 8);
  near(expertsHit(shape, 4), 1 - 0.75 ** 4);
  const format = weightFormats[0]!;
  const read = readBytesOf(shape, format);
  near(read.routed, 2 * 32 * 8 * 3 * 4096 * 14_336);
  near(read.always + read.routed, 2 * (46_702_792_704 - 32_000 * 4096));
});

test("cost per million tokens and where it meets an API's price", () => {
  const input = {
    dollarsPerHour: 3.6,
    promptTokens: 1000,
    outputTokens: 100,
    prefillTokensPerSecond: 10_000,
    decodeTokensPerSecond: 1000,
  };
  const cost = costOf(input);
  near(cost.secondsPerRequest, 0.2);
  near(cost.dollarsPerMillionInput, 0.1);
  near(cost.dollarsPerMillionOutput, 1);
  near(cost.dollarsPerRequest, 0.0002);
  const crossing = crossingOf(input, cost, { dollarsPerMillionInput: 0.2, dollarsPerMillionOutput: 2 });
  near(crossing.apiDollarsPerRequest, 0.0004);
  near(crossing.requestsPerMonth ?? 0, (3.6 * 730.5) / 0.0004);
  near(crossing.utilization ?? 0, 0.5);
  const free = crossingOf(input, cost, { dollarsPerMillionInput: 0, dollarsPerMillionOutput: 0 });
  assert.equal(free.requestsPerMonth, undefined);
});

test("what does not fit says how many devices it needs; requests that cannot be are refused", () => {
  const plan = makePlan("mixtral", described(mixtralConfig), options);
  const [bf16] = plan.machines[0]!.formats;
  assert.equal(bf16?.speed, undefined);
  assert.equal(bf16?.devicesNeeded, 2);
  const two = makePlan("mixtral", described(mixtralConfig), { ...options, devices: 2 });
  assert.ok((two.machines[0]!.formats[0]?.speed?.concurrency ?? 0) > 0);
  for (const [change, message] of [
    [{ context: 40_000 }, /at most 32768/],
    [{ outputTokens: 4096 }, /leave room for a prompt/],
  ] as const) {
    assert.throws(
      () => makePlan("mixtral", described(mixtralConfig), { ...options, ...change }),
      (error) =>
        error instanceof OctavoError && error.code === "invalid_option" && message.test(error.message),
    );
  }
});

test("a request that nobody described is as long as the model takes", () => {
  const unsaid = { ...options, context: undefined, outputTokens: undefined };
  const long = makePlan("mixtral", described(mixtralConfig), unsaid);
  assert.deepEqual([long.options.context, long.options.outputTokens], [4096, 512]);
  const short = makePlan("small", described({ ...llama31Config, max_position_embeddings: 600 }), unsaid);
  assert.deepEqual([short.options.context, short.options.outputTokens], [600, 300]);
});

test("an artifact is computed in the type that its activations are quantised to", () => {
  const tensors = [{ name: "model.embed_tokens.weight", shape: [128_256, 4096], byteLength: 1000 }];
  const group = (activations: unknown) => ({
    quant_method: "compressed-tensors",
    config_groups: { group_0: { weights: { type: "float", num_bits: 8 }, input_activations: activations } },
  });
  for (const [quantization, expected] of [
    [undefined, "bf16"],
    [{ quant_method: "fp8" }, "fp8"],
    [group({ type: "float", num_bits: 8 }), "fp8"],
    [group({ type: "int", num_bits: 8 }), "int8"],
    [group(null), "bf16"],
    [{ quant_method: "compressed-tensors", config_groups: 3 }, "bf16"],
    [{ quant_method: "awq" }, "bf16"],
  ] as const) {
    const description = described({ ...llama31Config, quantization_config: quantization });
    const plan = makePlan("llama", { ...description, tensors }, options);
    assert.equal(plan.machines[0]?.formats[0]?.computesIn, expected, JSON.stringify(quantization));
  }
});

test("the artifact's own bytes stand first where its files are at hand", () => {
  const tensors = [
    { name: "model.embed_tokens.weight", shape: [128_256, 4096], byteLength: 1000 },
    { name: "lm_head.weight", shape: [128_256, 4096], byteLength: 1000 },
    { name: "model.layers.0.mlp.experts.0.down_proj.weight", shape: [1, 1], byteLength: 70 },
    { name: "model.layers.0.mlp.shared_expert.down_proj.weight", shape: [1, 1], byteLength: 5 },
  ];
  const plan = makePlan("llama", { ...described(llama31Config), tensors }, options);
  const [stored] = plan.machines[0]!.formats;
  assert.equal(stored?.format, "as stored");
  assert.equal(stored?.weightBytes, 2075);
});

test("the table shows every format, every machine, and what was assumed", () => {
  const plan = makePlan("org/llama", described(llama31Config), {
    ...options,
    hardware: ["h100", "rtx4090"].map((id) => ({ id, hardware: hardwareTable[id]! })),
    dollarsPerHour: 2.5,
    apiPrice: { dollarsPerMillionInput: 0.05, dollarsPerMillionOutput: 0.08 },
  });
  const text = renderPlan(plan);
  for (const { name } of weightFormats) assert.ok(text.includes(name), name);
  for (const part of [
    "8.030 B",
    "128 KiB a token in bf16",
    "NVIDIA H100 SXM",
    "RTX 4090",
    "104 / 208 / 202",
    "$2.5 an hour",
    "cheaper from 8.295 M requests",
    "never cheaper",
    "Assumed",
    "roofline",
  ]) {
    assert.ok(text.includes(part), part);
  }
  assert.ok(text.split("\n").every((line) => line.length <= 130));
  const narrow = renderPlan(plan, 80).split("\n");
  const begin = narrow.findIndex((line) => line.startsWith("weights"));
  const table = narrow.slice(begin, narrow.indexOf("", begin));
  assert.ok(table.length > weightFormats.length, "a line a format at least");
  assert.ok(
    table.every((line) => line.length <= 80),
    table.join("\n"),
  );
});

test("every row of the hardware table is plausible and names its source", () => {
  for (const [id, { memoryBytes, bandwidth, flops, source }] of Object.entries(hardwareTable)) {
    const all: Partial<Hardware["flops"]> = flops;
    assert.ok(memoryBytes >= 16e9 && memoryBytes <= 512e9, id);
    assert.ok(bandwidth >= 1e11 && bandwidth <= 1e13, id);
    assert.ok((all.bf16 ?? 0) >= 1e13 && (flops.fp8 ?? flops.bf16) >= flops.bf16, id);
    assert.ok(source.length > 10, id);
  }
});

test("this machine is measured with the kernels", async () => {
  const cpu = await measureCpu(1);
  assert.ok(cpu.bandwidth > 1e7 && cpu.bandwidth < 1e13, String(cpu.bandwidth));
  assert.ok(cpu.flops.bf16 > 1e7 && cpu.flops.bf16 < 1e15, String(cpu.flops.bf16));
  assert.ok(cpu.memoryBytes > 0);
});
