import { figureTable, terminalWidth } from "@octavo/report/text-table";
import type { Crossing } from "../cost.js";
import type { FormatPlan, MachinePlan, Plan } from "../plan.js";

/** A plan as text: the model, one table per machine, what was assumed. Tables wrap to `width`, that of the terminal where there is one. */
export function renderPlan(plan: Plan, width?: number): string {
  const { shape, kvBytesPerToken: kv } = plan;
  const experts = shape.experts;
  const attention = shape.isLatent
    ? "latent attention"
    : `${shape.numKvHeads} of ${shape.numHeads} heads with keys and values, of ${shape.headDim}`;
  const lines = [
    `${plan.model} (${shape.family})`,
    "",
    `parameters  ${count(plan.parameters)}` +
      (experts === undefined
        ? ""
        : `, ${count(plan.activeParameters)} active (${experts.perToken} of ${experts.count} experts)`),
    ...(shape.towerElements > 0
      ? [`vision      ${count(shape.towerElements)} parameters more, kept in 16 bits; GGUF files have none`]
      : []),
    `layers      ${shape.numLayers}${plan.windowedLayers > 0 ? `, ${plan.windowedLayers} with a sliding window` : ""}; ${attention}`,
    `KV cache    ${bytes(kv.bf16)} a token in bf16, ${bytes(kv.fp8)} in fp8, ${bytes(kv.int8)} in int8`,
    `            ${bytes(plan.kvBytesPerSequence.bf16)} / ${bytes(plan.kvBytesPerSequence.fp8)} / ${bytes(plan.kvBytesPerSequence.int8)} for a sequence of ${plan.options.context} tokens`,
    ...plan.machines.flatMap((machine) => ["", ...renderMachine(machine, width)]),
    "",
    "Assumed",
    ...plan.assumptions.flatMap((line) =>
      wrap(line, Math.min(110, (width ?? terminalWidth()) - 2)).map((part, i) =>
        i === 0 ? `- ${part}` : `  ${part}`,
      ),
    ),
  ];
  return `${lines.join("\n")}\n`;
}

function renderMachine(machine: MachinePlan, width: number | undefined): string[] {
  const { hardware, devices, dollarsPerHour, formats } = machine;
  const operations = Object.entries(hardware.flops).map(([type, flops]) => `${rate(flops / 1e12)} ${type}`);
  const hasCost = formats.some(({ speed }) => speed?.cost !== undefined);
  const header = [
    "weights",
    "size",
    "bits",
    "sequences bf16 / fp8 / int8 KV",
    "one stream",
    "N streams",
    "N",
    "prefill",
    ...(hasCost ? ["$/M in", "$/M out"] : []),
  ];
  const rows = formats.map((format) => renderFormat(format, machine, hasCost));
  const crossings = formats.flatMap((format) => {
    const crossing = format.speed?.crossing;
    return crossing === undefined ? [] : [`${format.format.padEnd(18)}${renderCrossing(crossing)}`];
  });
  return [
    `${devices > 1 ? `${devices} x ` : ""}${hardware.name}: ${rate(hardware.bandwidth / 1e9)} GB/s, ${operations.join(", ")} TFLOP/s` +
      (dollarsPerHour === undefined ? "" : `, $${dollarsPerHour} an hour`),
    `(${hardware.source}); speeds in tokens/s`,
    "",
    ...figureTable(header, rows, width).trimEnd().split("\n"),
    ...(crossings.length === 0 ? [] : ["", "Against the API", ...crossings]),
  ];
}

function renderFormat(format: FormatPlan, machine: MachinePlan, hasCost: boolean): string[] {
  const { speed, sequences } = format;
  const start = [format.format, bytes(format.weightBytes), format.bitsPerWeight.toFixed(2)];
  if (speed === undefined) {
    const needs = `needs ${format.devicesNeeded} devices`;
    return [
      ...start,
      machine.id === "cpu" ? "does not fit" : needs,
      "-",
      "-",
      "-",
      "-",
      ...(hasCost ? ["-", "-"] : []),
    ];
  }
  return [
    ...start,
    `${sequences.bf16} / ${sequences.fp8} / ${sequences.int8}`,
    rate(speed.decodeOne.tokensPerSecond),
    rate(speed.decodeAll.tokensPerSecond),
    String(speed.concurrency),
    rate(speed.prefill.tokensPerSecond),
    ...(speed.cost === undefined
      ? []
      : [money(speed.cost.dollarsPerMillionInput), money(speed.cost.dollarsPerMillionOutput)]),
  ];
}

function renderCrossing({ requestsPerMonth, tokensPerMonth, utilization }: Crossing): string {
  if (requestsPerMonth === undefined || tokensPerMonth === undefined || utilization === undefined) {
    return "the API costs nothing and is cheaper at any volume";
  }
  const share = `${(100 * utilization).toFixed(utilization < 0.1 ? 1 : 0)} %`;
  return utilization <= 1
    ? `cheaper from ${count(requestsPerMonth)} requests (${count(tokensPerMonth)} tokens) a month, ${share} of what the machine can do`
    : `never cheaper: even fully busy it costs ${utilization.toFixed(1)} times the API's price`;
}

function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    if (line !== "" && line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else line = line === "" ? word : `${line} ${word}`;
  }
  return [...lines, line];
}

function count(value: number): string {
  for (const [size, unit] of [
    [1e12, "T"],
    [1e9, "B"],
    [1e6, "M"],
    [1e3, "k"],
  ] as const) {
    if (value >= size) return `${(value / size).toPrecision(4)} ${unit}`;
  }
  return value.toFixed(0);
}

function bytes(value: number): string {
  for (const [size, unit] of [
    [2 ** 30, "GiB"],
    [2 ** 20, "MiB"],
    [2 ** 10, "KiB"],
  ] as const) {
    if (value >= size) return `${(value / size).toFixed(2).replace(/\.?0+$/, "")} ${unit}`;
  }
  return `${value} B`;
}

function rate(value: number): string {
  return value >= 100 ? value.toFixed(0) : value.toPrecision(3);
}

function money(value: number): string {
  return value >= 100 ? value.toFixed(0) : value.toPrecision(3);
}
