import { readFileSync } from "node:fs";
import { applySpec, type CommandAction, type CommandSpec, OctavoCommand } from "./command.js";

interface CommandLeaf {
  readonly summary: string;
  readonly load: () => Promise<CommandSpec>;
}

interface CommandGroup {
  readonly summary: string;
  readonly commands: Readonly<Record<string, CommandLeaf | CommandGroup>>;
  /** What the group's commands share. */
  readonly loadShared?: () => Promise<{
    readonly prepare: (command: OctavoCommand) => void;
    readonly wrap: (action: CommandAction) => CommandAction;
  }>;
}

/** All commands with what `--help` lists; their modules are read when they are invoked. */
export const commandTree: CommandGroup = {
  summary: "LLM serving for TypeScript that proves what it serves",
  commands: {
    serve: {
      summary: "serve a model over an OpenAI-compatible API",
      load: async () => (await import("./commands/serve.js")).serveCommand,
    },
    plan: {
      summary: "what serving a model takes: bytes by format, sequences that fit, roofline speeds, cost",
      load: async () => (await import("./commands/plan.js")).planCommand,
    },
    quantize: {
      summary: "write a quantised copy of a model",
      load: async () => (await import("./commands/quantize.js")).quantizeCommand,
    },
    compare: {
      summary: "run two artifacts of one model over the same tokens and report what the second one changes",
      load: async () => (await import("./commands/compare.js")).compareCommand,
    },
    eval: {
      summary: "evaluate what ships: answers, serving, and whether to release",
      loadShared: async () => (await import("./eval/eval-action.js")).evalCommands,
      commands: {
        run: {
          summary: "send a server the cases of datasets and score its answers",
          load: async () => (await import("./commands/eval-run.js")).evalRunCommand,
        },
        check: {
          summary: "run one serving check, on servers or on recorded spans",
          load: async () => (await import("./commands/eval-check.js")).evalCheckCommand,
        },
        checks: {
          summary: "run all serving checks that the given servers allow",
          load: async () => (await import("./commands/eval-check.js")).evalChecksCommand,
        },
        gate: {
          summary: "judge a release by what eval.yaml expects",
          load: async () => (await import("./commands/eval-gate.js")).evalGateCommand,
        },
        calibrate: {
          summary: "measure a judge against people's labels",
          load: async () => (await import("./commands/eval-calibrate.js")).evalCalibrateCommand,
        },
        certify: {
          summary:
            "compare the logits of each token, bit by bit: alone, cached, in batches, preempted, recomputed",
          load: async () => (await import("./commands/eval-certify.js")).evalCertifyCommand,
        },
        list: {
          summary: "list evaluators, checks, dataset formats or exit codes",
          load: async () => (await import("./commands/eval-list.js")).evalListCommand,
        },
        view: {
          summary: "show a report that an earlier run wrote with --json",
          load: async () => (await import("./commands/eval-view.js")).evalViewCommand,
        },
        import: {
          summary: "turn promptfoo's configuration into eval.yaml and cases, or a dataset into cases",
          load: async () => (await import("./commands/eval-import.js")).evalImportCommand,
        },
        generate: {
          summary: "generate new cases",
          commands: {
            ruler: {
              summary: "RULER's tasks at any length, in the tokens of the model under test",
              load: async () => (await import("./commands/eval-generate.js")).evalGenerateRulerCommand,
            },
          },
        },
        worker: {
          summary: "score answers from a queue until stopped",
          load: async () => (await import("./commands/eval-worker.js")).evalWorkerCommand,
        },
      },
    },
    traces: {
      summary: "query the spans that octavo serve --trace-store kept",
      commands: {
        list: {
          summary: "spans, newest first",
          load: async () => (await import("./commands/traces.js")).tracesListCommand,
        },
        show: {
          summary: "everything known of a trace or a request",
          load: async () => (await import("./commands/traces.js")).tracesShowCommand,
        },
        stats: {
          summary: "counts, tokens and percentiles, by time and by group",
          load: async () => (await import("./commands/traces.js")).tracesStatsCommand,
        },
        export: {
          summary: "write spans as one Parquet file",
          load: async () => (await import("./commands/traces.js")).tracesExportCommand,
        },
      },
    },
    costs: {
      summary: "what requests cost, from a metering log or a trace store",
      load: async () => (await import("./commands/costs.js")).costsCommand,
    },
    bench: {
      summary: "measure",
      commands: {
        serve: {
          summary: "load any OpenAI-compatible server and report the latencies its clients saw",
          load: async () => (await import("./commands/bench-serve.js")).benchServeCommand,
        },
      },
    },
  },
};

/** The command line for `args`, without Node and the script: whole in names, with the flags of the command that they name. */
export async function createProgram(args: readonly string[]): Promise<OctavoCommand> {
  const program = new OctavoCommand("octavo")
    .description(commandTree.summary)
    .version(version(), "-V, --version")
    .showHelpAfterError("(--help lists the flags)");
  await addCommands(
    program,
    commandTree,
    args.filter((arg) => arg !== "help"),
  );
  return program;
}

async function addCommands(
  parent: OctavoCommand,
  { commands }: CommandGroup,
  [invoked, ...rest]: readonly string[],
  shared?: Awaited<ReturnType<NonNullable<CommandGroup["loadShared"]>>>,
): Promise<void> {
  for (const [name, node] of Object.entries(commands)) {
    const command = parent.createCommand(name).description(node.summary).copyInheritedSettings(parent);
    parent.addCommand(command);
    const isInvoked = name === invoked;
    if ("commands" in node)
      await addCommands(command, node, isInvoked ? rest : [], isInvoked ? await node.loadShared?.() : shared);
    else if (isInvoked) {
      shared?.prepare(command);
      applySpec(command, await node.load(), shared?.wrap);
    }
  }
}

function version(): string {
  const manifest: unknown = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));
  return typeof manifest === "object" && manifest !== null && "version" in manifest
    ? String(manifest.version)
    : "unknown";
}
