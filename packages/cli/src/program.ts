import { readFileSync } from "node:fs";
import { Command } from "commander";

/** What makes each command; its packages are read only when it is asked for. */
const commands: Readonly<Record<string, () => Promise<Command>>> = {
  serve: async () => (await import("./commands/serve.js")).serveCommand(),
  plan: async () => (await import("./commands/plan.js")).planCommand(),
  quantize: async () => (await import("./commands/quantize.js")).quantizeCommand(),
  compare: async () => (await import("./commands/compare.js")).compareCommand(),
  eval: async () => (await import("./commands/eval.js")).evalCommand(),
  traces: async () => (await import("./commands/traces.js")).tracesCommand(),
  costs: async () => (await import("./commands/costs.js")).costsCommand(),
  bench: async () => {
    const { benchServeCommand } = await import("./commands/bench-serve.js");
    return new Command("bench").description("measure").addCommand(benchServeCommand());
  },
};

/** The command line as far as `args`, without Node and the script, need it: the command that they begin with, or all. */
export async function createProgram(args: readonly string[]): Promise<Command> {
  const program = new Command("octavo")
    .description("LLM serving for TypeScript that proves what it serves")
    .version(version(), "-V, --version")
    .showHelpAfterError("(--help lists the flags)");
  const [name = ""] = args;
  const asked = Object.hasOwn(commands, name) ? [commands[name]!] : Object.values(commands);
  for (const make of asked) program.addCommand(await make());
  return program;
}

function version(): string {
  const manifest: unknown = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));
  return typeof manifest === "object" && manifest !== null && "version" in manifest
    ? String(manifest.version)
    : "unknown";
}
