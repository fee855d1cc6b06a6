// Every kernel alone, as JSON lines, over the tables of cases that the native tests walk: matrices, attention, the other ops.
// Arguments go to matrix_bench: [threads] [weight type or "all"] [rows of activations ...].
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { spawnSync } from "node:child_process";
import { defaultThreadCount } from "@octavo/kernels";

const [threads = String(defaultThreadCount()), ...rest] = process.argv.slice(2);
for (const [program, args] of [
  ["matrix_bench", [threads, ...rest]],
  ["attention_bench", [threads]],
  ["ops_bench", [threads]],
] as const) {
  const path = fileURLToPath(new URL(`../../packages/kernels/build/bench/${program}`, import.meta.url));
  if (!existsSync(path)) {
    process.stderr.write(`octavo: ${path} is missing; \`npm run bench -- kernels\` builds it\n`);
    process.exitCode = 1;
    break;
  }
  const { status } = spawnSync(path, args, { stdio: "inherit" });
  if (status !== 0) process.exitCode = 1;
}
