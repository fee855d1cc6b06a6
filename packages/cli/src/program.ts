import { readFileSync } from "node:fs";
import { Command } from "commander";
import { benchServeCommand } from "./commands/bench-serve.js";
import { compareCommand } from "./commands/compare.js";
import { costsCommand } from "./commands/costs.js";
import { evalCommand } from "./commands/eval.js";
import { planCommand } from "./commands/plan.js";
import { quantizeCommand } from "./commands/quantize.js";
import { serveCommand } from "./commands/serve.js";
import { tracesCommand } from "./commands/traces.js";

/** The whole command line. */
export function createProgram(): Command {
  const bench = new Command("bench").description("measure").addCommand(benchServeCommand());
  return new Command("octavo")
    .description("LLM serving for TypeScript that proves what it serves")
    .version(version(), "-V, --version")
    .showHelpAfterError("(--help lists the flags)")
    .addCommand(serveCommand())
    .addCommand(planCommand())
    .addCommand(quantizeCommand())
    .addCommand(compareCommand())
    .addCommand(evalCommand())
    .addCommand(tracesCommand())
    .addCommand(costsCommand())
    .addCommand(bench);
}

function version(): string {
  const manifest: unknown = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));
  return typeof manifest === "object" && manifest !== null && "version" in manifest
    ? String(manifest.version)
    : "unknown";
}
