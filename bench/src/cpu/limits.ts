import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { OctavoError } from "@octavo/protocol/errors";
import { runMeasured } from "./run/measured-process.js";

/** What the machine could do at most at one moment, all threads together. 0 where it has no such instruction. */
export interface Limits {
  readonly readGBps: number;
  /** 1e9 operations per second, a multiply-add counted as two. */
  readonly int8Gops: number;
  /** Rate of the faster instruction, since products of bf16 weights may be computed in f32. */
  readonly bf16Gflops: number;
}

/** Which limit bounds a figure, and how much of it one unit of the figure takes (bytes or operations). */
export interface Bound {
  readonly limit: keyof Limits;
  readonly perUnit: number;
}

const program = fileURLToPath(
  new URL("../../../packages/kernels/build/bench/machine_bench", import.meta.url),
);

/** Runs the native measuring program in a process of its own, with the environment of the measured one. */
export async function measureLimits(threads: number, env: Readonly<Record<string, string>>): Promise<Limits> {
  if (!existsSync(program)) {
    throw new OctavoError("native_unavailable", `${program} is missing; \`npm run bench -- cpu\` builds it`);
  }
  const { lines } = await runMeasured({ command: program, args: [String(threads)], env });
  const line: Readonly<Record<string, unknown>> = JSON.parse(lines[0] ?? "{}");
  const number = (key: string): number => {
    const value = line[key];
    if (typeof value === "number") return value;
    throw new OctavoError("internal_error", `machine_bench printed no ${key}: ${lines[0]}`);
  };
  const bf16Gflops = Math.max(number("bf16_gflops"), number("f32_gflops"));
  return { readGBps: number("read_gbps"), int8Gops: number("int8_gops"), bf16Gflops };
}

/** Share of the limit that a figure reaches; undefined where the machine has no such limit. */
export function shareOf(value: number, { limit, perUnit }: Bound, limits: Limits): number | undefined {
  const most = limits[limit] * 1e9;
  return most > 0 ? (value * perUnit) / most : undefined;
}
