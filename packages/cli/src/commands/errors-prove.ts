import {
  type CallFinding,
  type ConfigPatch,
  entryNamed,
  proofLines,
  recordedWorkload,
  type RecordedWorkload,
  recordProof,
} from "@octavo/optimize";
import { OctavoError } from "@octavo/protocol/errors";
import { option, valueType } from "@octavo/protocol/options";
import { defineCommand } from "../command.js";
import { findingRows, readState, stateRows, writeState } from "../errors/feed-files.js";
import { checkPatch, fileRows, fixOf, patchedFileOf, readPatchable } from "../errors/patched-files.js";
import { proveOnEngine } from "../errors/prove-on-engine.js";
import { proveOnFleet } from "../errors/prove-on-fleet.js";
import { proveOnGateway } from "../errors/prove-on-gateway.js";
import { readCalls, readGatewayLog } from "../errors/read-findings.js";
import { announceChanges, webhookRows } from "../errors/feed-webhook.js";
import { patchedGatewayText, rolloutOf } from "../errors/rollout-file.js";
import { interruptible } from "../interruptible.js";
import { writeTextOf } from "../output/files.js";
import { readCosts } from "./simulate.js";

/** `octavo errors prove ID`: the recorded requests without and with a patch, and whether it is a fix. */
export default defineCommand({
  arguments: { "<id>": "of a cluster, or how it begins" },
  options: {
    ...stateRows,
    ...fileRows,
    ...findingRows,
    set: option.of(
      valueType.pairs(valueType.text()),
      "--set <setting=value...>",
      "the patch: settings of octavo serve, or pointers into gateway.yaml or the deployment of --cluster, such as /num_replicas=4",
      { defaultText: "the proposed fix" },
    ),
    costs: option.text(
      "--costs <file>",
      "with --cluster: what steps take, as octavo simulate --measure writes it",
    ),
    pairs: option.integer("--pairs <n>", "pairs of replays, one without and one with the patch", {
      min: 3,
      default: 6,
    }),
    looks: option.integer(
      "--looks <n>",
      "times that the verdict is looked at, with --pairs more pairs each time while it is inconclusive",
      { min: 1, max: 10, default: 3 },
    ),
    requests: option.integer("--requests <n>", "most recorded requests that are replayed", {
      min: 1,
      default: 200,
    }),
    speedup: option.number(
      "--speedup <factor>",
      "how many times as fast as recorded; of gateway.yaml, its times too",
      {
        min: 0.01,
        default: 1,
      },
    ),
    evaluators: option.texts("--evaluator <name...>", "score answers too, and hold scores", {
      defaultText: "the cluster's own, if it is about one",
    }),
    leastImprovement: option.number("--least-improvement <share>", "that makes a patch a fix", {
      min: 0,
      max: 1,
      default: 0.1,
    }),
    seed: option.integer("--seed <n>", "of text in place of prompts that were not kept", {
      min: 0,
      default: 0,
    }),
    rollout: option.text(
      "--rollout <file>",
      "where an accepted patch is written as a rollout of the gateway; of gateway.yaml, the patched file",
    ),
    model: option.text("--model <name>", "with --rollout: the model as the gateway's clients name it", {
      default: "octavo-mini",
    }),
    primary: option.text("--primary <target>", "with --rollout: the gateway's target as it is", {
      default: "primary",
    }),
    canary: option.text("--canary <target>", "with --rollout: the one that is served with the patch", {
      default: "canary",
    }),
    ...webhookRows,
    json: option.toggle("--json", "print the proof as JSON"),
  },
  async run(options, id = "") {
    const { state: path, set, json, costs } = options;
    const state = await readState(path);
    const entry = entryNamed(state, id);
    const files = await readPatchable(options);
    const fix = set === undefined ? fixOf(entry, files) : patchOf(set);
    if (fix === undefined)
      throw new OctavoError("invalid_option", `no setting answers ${entry.cause}: give a patch with --set`, {
        param: "set",
      });
    const of = patchedFileOf(files, fix.set);
    checkPatch(files, { of, set: fix.set });
    const isWanted = ({ kind, cause, target }: CallFinding): boolean =>
      kind === entry.kind && cause === entry.cause && (of !== "gateway" || target === entry.target);
    const recorded = async (): Promise<RecordedWorkload> =>
      recordedWorkload(await readCalls(options, isWanted), options.requests);
    const proving = {
      ...options,
      entry,
      patch: fix.set,
      files,
      onPair: (done: number) =>
        process.stderr.write(`pair ${done} of ${options.pairs * options.looks} at most\n`),
    };
    if (of === "deployment" && costs === undefined)
      throw new OctavoError("invalid_option", "a fleet is simulated: give what its steps take with --costs", {
        param: "costs",
      });
    const proof = await interruptible(async (signal) => {
      if (of === "gateway")
        return proveOnGateway({ ...proving, lines: await readGatewayLog(options), isWanted, signal });
      const workload = await recorded();
      return of === "deployment"
        ? proveOnFleet({ ...proving, workload, costs: await readCosts(costs ?? "") })
        : proveOnEngine({ ...proving, workload, signal });
    });
    const before = await readState(path);
    const after = recordProof(before, entry.id, proof);
    await writeState(path, after);
    if (options.rollout !== undefined && proof.verdict === "accepted")
      await writeTextOf(
        "rollout",
        options.rollout,
        of === "gateway"
          ? patchedGatewayText(files, proof, options.rollout)
          : rolloutOf(proof, { ...options, id: entry.id }),
      );
    process.stdout.write(
      json ? `${JSON.stringify(proof, undefined, 2)}\n` : `${proofLines(proof).join("\n")}\n`,
    );
    await announceChanges(options, before, after);
  },
});

/** Values as a file of flags has them: `null` leaves the setting out. */
function patchOf(given: Readonly<Record<string, string>>): Pick<ConfigPatch, "set"> {
  const set = Object.entries(given).map(([name, text]) => {
    const isSwitch = text === "true" || text === "false";
    // options of octavo serve are texts, such as 16GiB; other files have numbers
    const isNumber = name.startsWith("/") && text.trim() !== "" && Number.isFinite(Number(text));
    const value = isSwitch ? text === "true" : isNumber ? Number(text) : text;
    return [name, text === "null" ? null : value] as const;
  });
  return { set: Object.fromEntries(set) };
}
