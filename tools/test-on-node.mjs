// `node tools/test-on-node.mjs 24`: runs the compiled tests on another Node, which the npm package `node` brings; with `--runtime`
// only those that meet more of Node than its language.
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fail, must, run, say } from "./lib/steps.mjs";

/** What computes, and asks Node for no more than files: its tests say the same on every Node. */
const computing = [
  "bench/",
  "models/octavo-mini/",
  "packages/artifacts/dist/program/",
  "packages/artifacts/dist/quantization/",
  "packages/artifacts/dist/testing/",
  "packages/cli/dist/eval/planted-load",
  "packages/engine/dist/kv-cache/",
  "packages/engine/dist/model/",
  "packages/engine/dist/sampling/",
  "packages/engine/dist/scheduler/",
  "packages/engine/dist/speculation/",
  "packages/engine/dist/testing/",
  "packages/evals/dist/checks/",
  "packages/evals/dist/gate/",
  "packages/evals/dist/report/",
  "packages/server/dist/detectors/",
  "packages/server/dist/metrics/deploy",
  "packages/statistics/",
  "packages/studio/",
  "packages/text/dist/structured/automat",
  "packages/text/dist/structured/json-schema/",
];

const [version, ...rest] = process.argv.slice(2).filter((argument) => argument !== "--runtime");
if (!/^\d+(\.\d+\.\d+)?$/.test(version ?? ""))
  fail("usage: node tools/test-on-node.mjs VERSION [--runtime] [PATTERN ...]");
const folder = join(tmpdir(), `octavo-node-${version}`);
const binary = join(folder, "node_modules", "node", "bin", "node");
if (!existsSync(binary)) {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "package.json"), '{"private": true}');
  await must(
    "installing node",
    "npm",
    ["install", "--no-audit", "--no-fund", "--loglevel=error", `node@${version}`],
    { cwd: folder },
  );
  // The package links its binary in an install script; where scripts are off it lies in the platform's package.
  if (!existsSync(binary))
    await must("linking node", "npm", ["rebuild", "--foreground-scripts", "node"], { cwd: folder });
}
const without = process.argv.includes("--runtime")
  ? computing.flatMap((pattern) => ["--without", pattern])
  : [];
say(`tests on Node ${version}`);
process.exit(await run(binary, ["tools/test.mjs", ...rest, ...without]));
