import { readSpanValues, wantedCalls } from "@octavo/evals";
import {
  entryNamed,
  findingsOfSpan,
  proofLines,
  type RecordedCall,
  recordedWorkload,
  recordProof,
  type ServePatch,
} from "@octavo/optimize";
import { OctavoError } from "@octavo/protocol/errors";
import { option, valueType } from "@octavo/protocol/options";
import { defaultStoreFolder } from "@octavo/tracing/store";
import { defineCommand } from "../command.js";
import { findingRows, fixOf, readState, settingsOf, stateRows, writeState } from "../errors/feed-files.js";
import { proveOnEngine } from "../errors/prove-on-engine.js";
import { announceChanges, webhookRows } from "../errors/feed-webhook.js";
import { rolloutOf } from "../errors/rollout-file.js";
import { interruptible } from "../interruptible.js";
import { writeTextOf } from "../output/files.js";

/** `octavo errors prove ID`: the recorded requests without and with a patch, and whether it is a fix. */
export default defineCommand({
  arguments: { "<id>": "of a cluster, or how it begins" },
  options: {
    ...stateRows,
    ...findingRows,
    set: option.of(
      valueType.pairs(valueType.text()),
      "--set <setting=value...>",
      "the patch, as settings of octavo serve; default: the fix that the feed proposes",
      { defaultText: "the proposed fix" },
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
    speedup: option.number("--speedup <factor>", "how many times as fast as recorded", {
      min: 0.01,
      default: 1,
    }),
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
      "where an accepted patch is written as a rollout of the gateway",
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
    const { state: path, config, set, json } = options;
    const state = await readState(path);
    const entry = entryNamed(state, id);
    const patch = set === undefined ? fixOf(entry, await settingsOf(config))?.set : patchOf(set);
    if (patch === undefined)
      throw new OctavoError("invalid_option", `no setting answers ${entry.cause}: give a patch with --set`, {
        param: "set",
      });
    const calls = await recordedCalls(
      options,
      ({ kind, cause }) => kind === entry.kind && cause === entry.cause,
    );
    const proof = await interruptible((signal) =>
      proveOnEngine({
        ...options,
        entry,
        patch,
        workload: recordedWorkload(calls, options.requests),
        signal,
        onPair: (done) => process.stderr.write(`pair ${done} of ${options.pairs * options.looks} at most\n`),
      }),
    );
    const before = await readState(path);
    const after = recordProof(before, entry.id, proof);
    await writeState(path, after);
    if (options.rollout !== undefined && proof.verdict === "accepted")
      await writeTextOf("rollout", options.rollout, rolloutOf(proof, { ...options, id: entry.id }));
    process.stdout.write(
      json ? `${JSON.stringify(proof, undefined, 2)}\n` : `${proofLines(proof).join("\n")}\n`,
    );
    await announceChanges(options, before, after);
  },
});

/** Values as a file of flags has them: `null` leaves the setting out. */
function patchOf(given: Readonly<Record<string, string>>): ServePatch["set"] {
  return Object.fromEntries(
    Object.entries(given).map(([name, text]) => {
      const isSwitch = text === "true" || text === "false";
      return [name, text === "null" ? null : isSwitch ? text === "true" : text];
    }),
  );
}

interface CallSelection {
  readonly spans: readonly string[] | undefined;
  readonly firstTokenMs: number;
  readonly gapMs: number;
  readonly score: number;
}

async function recordedCalls(
  { spans, firstTokenMs, gapMs, score }: CallSelection,
  isWanted: (finding: { readonly kind: string; readonly cause: string }) => boolean,
): Promise<readonly RecordedCall[]> {
  const calls: RecordedCall[] = [];
  for (const path of spans ?? [defaultStoreFolder()])
    for await (const value of readSpanValues(path))
      for (const span of wantedCalls(value, {})) {
        const { findings } = findingsOfSpan(span, { firstTokenMs, gapMs, score });
        calls.push({ span, isOfCluster: findings.some(isWanted) });
      }
  return calls;
}
