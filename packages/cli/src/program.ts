import { readFileSync } from "node:fs";
import { nearestName, OctavoError } from "@octavo/protocol/errors";
import { applySpec, type CommandAction, type CommandSpec, OctavoCommand } from "./command.js";

interface CommandLeaf {
  readonly summary: string;
  readonly load: () => Promise<{ readonly default: CommandSpec }>;
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

function leaf(summary: string, load: CommandLeaf["load"]): CommandLeaf {
  return { summary, load };
}

/** All commands with what `--help` lists; their modules are read when they are invoked. */
export const commandTree: CommandGroup = {
  summary: "LLM serving for TypeScript that proves what it serves",
  commands: {
    serve: leaf("serve a model over an OpenAI-compatible API", () => import("./commands/serve.js")),
    stage: leaf(
      "compute a part of a model's layers for a server on another host",
      () => import("./commands/stage.js"),
    ),
    chat: leaf("talk to a model, or to a server, in the terminal", () => import("./commands/chat.js")),
    run: leaf("ask a model once and print its answer", () => import("./commands/run.js")),
    pull: leaf("download a model into the cache", async () => ({
      default: (await import("./commands/models.js")).pullCommand,
    })),
    list: leaf("models in the cache: size, weights, whether they fit this machine", async () => ({
      default: (await import("./commands/models.js")).listCommand,
    })),
    show: leaf("what a model is, and whether it fits this machine", async () => ({
      default: (await import("./commands/models.js")).showCommand,
    })),
    rm: leaf("remove a model from the cache", async () => ({
      default: (await import("./commands/models.js")).rmCommand,
    })),
    devices: leaf("what this machine computes with", async () => ({
      default: (await import("./commands/machine.js")).devicesCommand,
    })),
    doctor: leaf("what this machine can do, what is missing, and how to mend it", async () => ({
      default: (await import("./commands/machine.js")).doctorCommand,
    })),
    gateway: leaf(
      "route, protect and account for calls in front of any number of servers",
      () => import("./commands/gateway.js"),
    ),
    cluster: leaf(
      "run deployments of many replicas behind one gateway: health, autoscaling, rolling updates",
      () => import("./commands/cluster.js"),
    ),
    simulate: leaf(
      "a deployment under a load in virtual time: cost, objective and knee",
      () => import("./commands/simulate.js"),
    ),
    plan: leaf(
      "what serving a model takes: bytes by format, sequences that fit, roofline speeds, cost",
      () => import("./commands/plan.js"),
    ),
    quantize: leaf("write a quantised copy of a model", () => import("./commands/quantize.js")),
    compare: leaf(
      "run two artifacts of one model over the same tokens and report what the second one changes",
      () => import("./commands/compare.js"),
    ),
    optimize: leaf(
      "better prompts, examples and descriptions for the model that serves, judged on held-out cases",
      () => import("./commands/optimize.js"),
    ),
    eval: {
      summary: "evaluate what ships: answers, serving, and whether to release",
      loadShared: async () => (await import("./eval/eval-action.js")).evalCommands,
      commands: {
        run: leaf(
          "send a server the cases of datasets and score its answers",
          () => import("./commands/eval-run.js"),
        ),
        check: leaf("run one serving check, on servers or on recorded spans", async () => ({
          default: (await import("./commands/eval-check.js")).evalCheckCommand,
        })),
        checks: leaf("run all serving checks that the given servers allow", async () => ({
          default: (await import("./commands/eval-check.js")).evalChecksCommand,
        })),
        gate: leaf("judge a release by what eval.yaml expects", () => import("./commands/eval-gate.js")),
        calibrate: leaf(
          "measure a judge against people's labels",
          () => import("./commands/eval-calibrate.js"),
        ),
        author: leaf(
          "write an evaluator from a sentence, and hold it against labels",
          () => import("./commands/eval-author.js"),
        ),
        improve: leaf(
          "retune an evaluator by labels, kept only where held-out labels show it to be better; watch its judge for drift",
          () => import("./commands/eval-improve.js"),
        ),
        distil: leaf(
          "imitate a judge by a small classifier that saves most of its calls, with a certified agreement",
          () => import("./commands/eval-distil.js"),
        ),
        certify: leaf(
          "compare the logits of each token, bit by bit: alone, cached, in batches, preempted, recomputed",
          () => import("./commands/eval-certify.js"),
        ),
        list: leaf(
          "list evaluators, checks, dataset formats or exit codes",
          () => import("./commands/eval-list.js"),
        ),
        view: leaf(
          "show a report that an earlier run wrote with --json",
          () => import("./commands/eval-view.js"),
        ),
        import: leaf(
          "turn promptfoo's configuration into eval.yaml and cases, or a dataset into cases",
          () => import("./commands/eval-import.js"),
        ),
        generate: {
          summary: "generate new cases",
          commands: {
            ruler: leaf(
              "RULER's tasks at any length, in the tokens of the model under test",
              () => import("./commands/eval-generate.js"),
            ),
          },
        },
        score: leaf("score the answers that spans recorded", () => import("./commands/eval-score.js")),
        worker: leaf("score answers from a queue until stopped", () => import("./commands/eval-worker.js")),
      },
    },
    traces: {
      summary: "query the spans that octavo serve --trace-store kept",
      commands: {
        list: leaf("spans, newest first", async () => ({
          default: (await import("./commands/traces.js")).tracesListCommand,
        })),
        show: leaf("everything known of a trace or a request", async () => ({
          default: (await import("./commands/traces.js")).tracesShowCommand,
        })),
        stats: leaf("counts, tokens and percentiles, by time and by group", async () => ({
          default: (await import("./commands/traces.js")).tracesStatsCommand,
        })),
        export: leaf("write spans as one Parquet file", async () => ({
          default: (await import("./commands/traces.js")).tracesExportCommand,
        })),
      },
    },
    errors: {
      summary: "findings of recorded calls as clusters, each with the change to try first",
      commands: {
        list: leaf("bring the feed up to date and show it", async () => ({
          default: (await import("./commands/errors.js")).errorsListCommand,
        })),
        mark: leaf("say what became of a cluster: acknowledged, fixed or new", async () => ({
          default: (await import("./commands/errors.js")).errorsMarkCommand,
        })),
        prove: leaf(
          "replay the recorded requests without and with a fix, and say whether it is one",
          () => import("./commands/errors-prove.js"),
        ),
        issue: leaf("the text of an issue about a cluster, with its evidence", async () => ({
          default: (await import("./commands/errors.js")).errorsIssueCommand,
        })),
      },
    },
    costs: leaf(
      "what requests cost, from a metering log or a trace store",
      () => import("./commands/costs.js"),
    ),
    bench: {
      summary: "run load tests",
      commands: {
        serve: leaf(
          "load any OpenAI-compatible server and report the latencies its clients saw",
          () => import("./commands/bench-serve.js"),
        ),
      },
    },
  },
};

/** Other tools' commands that are typed by habit, and what is meant here. */
export const foreignCommands: Readonly<Record<string, string>> = {
  ps: "GET /v1/models lists what a server serves, GET /metrics what it is doing",
  ls: "use octavo list",
  launch: "serve a model with octavo serve, and name its URL in the application",
  stop: "a server ends with Ctrl-C or SIGTERM, after the requests that it has",
  create:
    "there are no Modelfiles: a system prompt is --system of octavo chat, a template --chat-template of octavo serve",
  push: "nothing is uploaded; use huggingface_hub's `hf upload`",
  cp: "models are files: copy them with cp",
  signin: "set HF_TOKEN, or run `hf auth login`",
  signout: "unset HF_TOKEN, or run `hf auth logout`",
  complete: 'use octavo run MODEL "prompt", or POST /v1/completions',
  "run-batch": "use octavo eval run for cases in a file, which scores them too",
  "bench latency": "use octavo bench serve --max-concurrency 1, against a server",
  "bench throughput": "use octavo bench serve, against a server",
  "bench startup": "octavo serve says when it listens; see bench/ of the repository",
  "bench sweep": "run octavo bench serve once for each setting, with --json",
  "collect-env": "use octavo doctor",
  download: "use octavo pull",
  convert: "use octavo quantize MODEL --method gguf:F16 --out DIR",
};

/** The command line. All commands are listed; only the one that `args` (without Node and script) invoke has its flags. */
export async function createProgram(args: readonly string[]): Promise<OctavoCommand> {
  const program = new OctavoCommand("octavo")
    .description(commandTree.summary)
    .version(version(), "-V, --version");
  const words = args.filter((arg) => arg !== "help");
  for (const typed of [words.slice(0, 1).join(" "), words.slice(0, 2).join(" ")]) {
    const meant = foreignCommands[typed];
    if (meant !== undefined)
      throw new OctavoError("invalid_option", `there is no octavo ${typed}: ${meant}`, { param: "command" });
  }
  await addCommands(program, commandTree, words);
  return program;
}

async function addCommands(
  parent: OctavoCommand,
  { commands }: CommandGroup,
  [invoked, ...rest]: readonly string[],
  shared?: Awaited<ReturnType<NonNullable<CommandGroup["loadShared"]>>>,
): Promise<void> {
  if (invoked !== undefined && !invoked.startsWith("-") && !(invoked in commands)) {
    const near = nearestName(invoked, Object.keys(commands));
    throw new OctavoError(
      "invalid_option",
      `unknown command '${invoked}'; ${near === undefined ? `${parent.fullName()} --help lists the commands` : `did you mean ${near}?`}`,
      { param: "command" },
    );
  }
  for (const [name, node] of Object.entries(commands)) {
    const command = parent.createCommand(name).description(node.summary).copyInheritedSettings(parent);
    parent.addCommand(command);
    const isInvoked = name === invoked;
    if ("commands" in node)
      await addCommands(command, node, isInvoked ? rest : [], isInvoked ? await node.loadShared?.() : shared);
    else if (isInvoked) {
      shared?.prepare(command);
      applySpec(command, (await node.load()).default, shared?.wrap);
    }
  }
}

function version(): string {
  const manifest: unknown = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));
  return typeof manifest === "object" && manifest !== null && "version" in manifest
    ? String(manifest.version)
    : "unknown";
}
