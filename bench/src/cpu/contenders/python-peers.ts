import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { OctavoError } from "@octavo/protocol/errors";
import type { PeerAnswer } from "../answers/near-tie.js";
import { configFolderOf } from "../models/config-folder.js";
import { runMeasured } from "../run/measured-process.js";
import type { Contender, MeasuredModel } from "./contender.js";
import { type PeerSetting, tuned } from "./tuned.js";
import { measureWith } from "./worker.js";

interface PythonPeer {
  readonly name: "openvino" | "transformers" | "vllm";
  readonly module: string;
  readonly settings: readonly PeerSetting<Readonly<Record<string, unknown>>>[];
  /** What it is given to load. */
  pathOf(modelPath: string): string;
}

export const openvino: PythonPeer = {
  name: "openvino",
  module: "openvino_genai",
  // Properties of the CPU plugin. Keys and values are 8-bit by default.
  settings: [
    { name: "defaults", value: {} },
    { name: "f16 KV", value: { KV_CACHE_PRECISION: "f16" } },
    { name: "activations in groups of 128", value: { DYNAMIC_QUANTIZATION_GROUP_SIZE: "128" } },
  ],
  pathOf: (path) => path,
};

/** It reads no GGUF on CPUs: it gets the shapes alone and draws random weights itself, so that its answers cannot be checked. */
export const vllm: PythonPeer = {
  name: "vllm",
  module: "vllm",
  settings: [
    { name: "defaults", value: {} },
    { name: "eager", value: { enforce_eager: true } },
  ],
  pathOf: configFolderOf,
};

/** On GPUs; random weights, as vLLM's. */
export const transformers: PythonPeer = {
  name: "transformers",
  module: "transformers",
  settings: [{ name: "defaults", value: {} }],
  pathOf: configFolderOf,
};

/** A peer in Python, from an interpreter that has its module. */
export function pythonPeer(peer: PythonPeer, python: string, isTuned: boolean): Contender {
  return tuned({
    name: peer.name,
    settings: isTuned ? peer.settings : peer.settings.slice(0, 1),
    supports: ({ kind }) => ["prefill", "decode", "first-token", "memory"].includes(kind),
    measure: (job, context, peerOptions) =>
      measureWith(
        { command: python, script: scriptOf(peer) },
        job,
        { ...context, model: { ...context.model, path: peer.pathOf(context.model.path) } },
        { peerOptions },
      ),
  });
}

/** Compiled code lies in dist/, which holds no Python. */
function scriptOf({ name }: PythonPeer): string {
  return fileURLToPath(new URL(`../../../src/cpu/workers/${name}_worker.py`, import.meta.url));
}

/** Its version. Throws `invalid_option` where that interpreter does not have it. */
export function pythonPeerVersion({ name, module }: PythonPeer, python: string): string {
  try {
    const script = `import importlib.metadata as m; print(m.packages_distributions()["${module}"][0], m.version(m.packages_distributions()["${module}"][0]))`;
    return execFileSync(python, ["-c", script], {
      encoding: "utf8",
      stdio: ["ignore", "pipe", "pipe"],
    }).trim();
  } catch (cause) {
    throw new OctavoError("invalid_option", `${python} does not have ${module}`, { param: name, cause });
  }
}

/** A greedy continuation by OpenVINO; it tells no probabilities. */
export async function openvinoAnswer(
  python: string,
  model: MeasuredModel,
  threads: number,
): Promise<PeerAnswer> {
  const task = { answer: true, modelPath: model.path, vocabSize: model.shape.vocabSize, threads };
  const { lines } = await runMeasured({
    command: python,
    args: [scriptOf(openvino), JSON.stringify(task)],
  });
  const answer: Pick<PeerAnswer, "prompt" | "greedy"> = JSON.parse(lines.at(-1) ?? "{}");
  return { ...answer, top: [] };
}
