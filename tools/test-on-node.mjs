// `node tools/test-on-node.mjs 24`: runs the compiled tests on another Node, which the npm package `node` brings. Further arguments go
// to tools/test.mjs; `--install` only installs.
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fail, must, run, say } from "./lib/steps.mjs";

const [version, ...rest] = process.argv.slice(2);
if (!/^\d+(\.\d+\.\d+)?$/.test(version ?? ""))
  fail("usage: node tools/test-on-node.mjs VERSION [--all | --runtime] [WORD ...]");
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
if (rest.includes("--install")) process.exit(0);
say(`tests on Node ${version}`);
process.exit(await run(binary, ["tools/test.mjs", ...rest]));
