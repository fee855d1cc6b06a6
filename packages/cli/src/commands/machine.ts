import { createCpuBackend } from "@octavo/kernels";
import { type AdapterReport, listAdapters } from "@octavo/kernels-webgpu";
import { option } from "@octavo/protocol/options";
import { formatBinaryBytes } from "@octavo/protocol/options";
import { measureCpu } from "@octavo/studio/plan";
import { defineCommand } from "../command.js";
import { describeCpu, machineChecks } from "../machine/machine-checks.js";
import { styleFor } from "../output/style.js";

/** `octavo devices`: what computes. */
export const devicesCommand = defineCommand({
  options: {
    json: option.toggle("--json", "print JSON"),
    measure: option.toggle("--measure", "measure bandwidth and operations too, for about a second"),
  },
  async run({ json, measure }) {
    using backend = createCpuBackend();
    const { instructionSet, features, numThreads } = backend.info;
    const measured = measure ? await measureCpu() : undefined;
    const device = {
      id: "cpu",
      ...describeCpu(),
      kernels: [instructionSet, ...features].join(" + "),
      threads: numThreads,
      ...(measured !== undefined && {
        gigabytesPerSecond: Math.round(measured.bandwidth / 1e9),
        gigaflops: Math.round(measured.flops.bf16 / 1e9),
      }),
    };
    const adapters = await listAdapters();
    if (json) {
      const listed = adapters.map((adapter) => ({ id: "webgpu", ...adapter }));
      process.stdout.write(`${JSON.stringify([device, ...listed], null, 2)}\n`);
      return;
    }
    const figures =
      measured === undefined ? "" : `, reads ${device.gigabytesPerSecond} GB/s, ${device.gigaflops} GFLOP/s`;
    process.stdout.write(
      `cpu  ${device.name}: ${device.kernels} kernels on ${numThreads} threads, ${formatBinaryBytes(device.freeMemoryBytes)} of ${formatBinaryBytes(device.memoryBytes)} free${figures}\n`,
    );
    for (const adapter of adapters) process.stdout.write(`webgpu  ${adapterLine(adapter)}\n`);
  },
});

function adapterLine(adapter: AdapterReport): string {
  if (adapter.name === undefined) return `none: ${adapter.unusedBecause}`;
  const { name, features, mostBindingBytes, unusedBecause } = adapter;
  const why = unusedBecause === undefined ? "" : `; auto leaves it out: ${unusedBecause}`;
  const can = features.length === 0 ? "no optional features" : features.join(" + ");
  return `${name}: ${can}, ${formatBinaryBytes(mostBindingBytes)} a tensor part${why}`;
}

/** `octavo doctor`: one line a check, one fix a line; fails where something keeps Octavo from running. */
export const doctorCommand = defineCommand({
  options: {
    json: option.toggle("--json", "print JSON"),
    online: option.toggle("--online", "ask the model hub too whether it answers"),
  },
  async run({ json, online }) {
    const checks = await machineChecks({ online });
    if (json) process.stdout.write(`${JSON.stringify(checks, null, 2)}\n`);
    else {
      const width = Math.max(...checks.map(({ name }) => name.length));
      const style = styleFor(process.stdout);
      const marks = { ok: style.good("ok"), warning: style.warning("!!"), failure: style.bad("XX") };
      for (const { name, state, found, fix } of checks)
        process.stdout.write(
          `${marks[state]}  ${name.padEnd(width)}  ${found}${fix === undefined ? "" : `; ${fix}`}\n`,
        );
    }
    if (checks.some(({ state }) => state === "failure")) process.exitCode = 1;
  },
});
