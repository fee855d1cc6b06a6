import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { OctavoError } from "@octavo/protocol/errors";
import type { PeerAnswer } from "../answers/near-tie.js";
import { runMeasured } from "../run/measured-process.js";
import type { Contender, MeasureContext } from "./contender.js";
import { type PeerSetting, tuned } from "./tuned.js";
import { measureWith } from "./worker.js";

/** Compiled code lies in dist/, which holds no Python. */
const script = fileURLToPath(new URL("../../../src/cpu/workers/openvino_worker.py", import.meta.url));

/** Plugin properties; keys and values are 8-bit by default on CPUs. */
const settings: readonly PeerSetting<Readonly<Record<string, string>>>[] = [
  { name: "defaults", value: {} },
  { name: "f16 KV", value: { KV_CACHE_PRECISION: "f16" } },
  { name: "activations in groups of 128", value: { DYNAMIC_QUANTIZATION_GROUP_SIZE: "128" } },
];

/** OpenVINO GenAI's continuous batching, which imports GGUF files, from a Python that has `openvino_genai`. */
export function openvino(python: string, isTuned: boolean): Contender {
  return tuned({
    name: "openvino",
    settings: isTuned ? settings : settings.slice(0, 1),
    supports: ({ kind }) => ["prefill", "decode", "first-token", "memory"].includes(kind),
    measure: (job, context, peerOptions) =>
      measureWith({ command: python, script }, job, context, { peerOptions }),
  });
}

/** Its version. Throws `invalid_option` where that Python does not have it. */
export function openvinoVersion(python: string): string {
  try {
    return execFileSync(python, ["-c", "import openvino_genai; print(openvino_genai.__version__)"], {
      encoding: "utf8",
    }).trim();
  } catch (cause) {
    throw new OctavoError("invalid_option", `${python} does not import openvino_genai`, {
      param: "openvino",
      cause,
    });
  }
}

/** A greedy continuation; it tells no probabilities. */
export async function openvinoAnswer(
  python: string,
  { model, threads }: Pick<MeasureContext, "model" | "threads">,
): Promise<PeerAnswer> {
  const task = { answer: true, modelPath: model.path, vocabSize: model.shape.vocabSize, threads };
  const { lines } = await runMeasured({ command: python, args: [script, JSON.stringify(task)] });
  const answer: Pick<PeerAnswer, "prompt" | "greedy"> = JSON.parse(lines.at(-1) ?? "{}");
  return { ...answer, top: [] };
}
