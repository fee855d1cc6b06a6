// Every format that `octavo quantize` makes: what octavo-mini loses in it, and how fast matrices of a usual size are in it.
// Before anything is timed, each artifact must load and say something like the original.
import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { defaultThreadCount } from "@octavo/kernels";
import { defaultModelFolder } from "./cpu/models/model-file.js";
import { type Artifact, makeArtifact, writeConversations } from "./formats/artifacts.js";
import { type Format, formats } from "./formats/formats.js";
import { measureQuality, type Quality } from "./formats/quality.js";
import { measureSpeeds, type Speed } from "./formats/speed.js";
import { wideModel } from "./formats/wide-model.js";
import { currentCommit, resultsFolder, thisMachine, today } from "./support/results.js";
import { embeddedModel } from "./support/served-model.js";

const { values } = parseArgs({
  options: {
    formats: { type: "string" },
    count: { type: "string", default: "200" },
    seed: { type: "string", default: "formats" },
    rounds: { type: "string", default: "3" },
    threads: { type: "string", default: String(defaultThreadCount()) },
    "model-folder": { type: "string", default: defaultModelFolder() },
  },
});
const folder = join(values["model-folder"], "formats");
const say = (text: string): void => {
  process.stderr.write(`${text}\n`);
};

async function artifactsOf(
  source: string,
  chosen: readonly Format[],
  calibration?: string,
): Promise<Artifact[]> {
  const made: Artifact[] = [];
  for (const format of chosen) {
    say(`${format.name} of ${source}`);
    made.push(await makeArtifact(source, format, folder, calibration));
  }
  return made;
}

interface Row {
  readonly name: string;
  readonly weightBytes: number;
  readonly quality: Quality;
  readonly speed: Speed;
}

const wanted = values.formats?.split(",").map((name) => name.trim().toLowerCase());
const chosen = formats.filter(({ name }) => wanted?.includes(name.toLowerCase()) ?? true);
mkdirSync(folder, { recursive: true });
const calibration = join(folder, "calibration.jsonl");
const heldOut = join(folder, "held-out.jsonl");
writeConversations(calibration, "train", 400, "calibration");
writeConversations(heldOut, "heldout", 100, values.seed);

const qualities: Quality[] = [];
for (const [index, artifact] of (await artifactsOf(embeddedModel, chosen, calibration)).entries()) {
  const quality = await measureQuality(artifact.path, {
    dataPath: heldOut,
    count: Number(values.count),
    seed: values.seed,
  });
  assert.ok(
    quality.kl < 5,
    `${chosen[index]?.name} says nothing like the original: ${quality.kl} nats a token`,
  );
  say(
    `${chosen[index]?.name}: KL ${quality.kl.toFixed(4)}, exact JSON ${quality.exactJson}, calls ${quality.exactCalls}`,
  );
  qualities.push(quality);
}

const wide = await artifactsOf(wideModel(folder), chosen);
const speeds = await measureSpeeds(wide, {
  threads: Number(values.threads),
  rounds: Number(values.rounds),
  vocabSize: 4096,
  contextLength: 8192,
  onRound: (round) => say(`round ${round + 1} of ${values.rounds}`),
});

const rows = chosen.map(({ name }, index): Row => {
  const artifact = wide[index]!;
  return { name, weightBytes: artifact.weightBytes, quality: qualities[index]!, speed: speeds[index]! };
});
const result = {
  benchmark: "formats",
  machine: thisMachine(),
  commit: currentCommit(),
  date: today(),
  cases: rows,
};
writeFileSync(`${resultsFolder}formats.json`, `${JSON.stringify(result, null, 2)}\n`);
for (const { name, weightBytes, quality, speed } of rows) {
  say(
    `${name.padEnd(14)} ${(weightBytes / 1e6).toFixed(0).padStart(5)} MB  KL ${quality.kl.toFixed(4)}  ` +
      `JSON ${(100 * quality.exactJson).toFixed(1)} %  calls ${(100 * quality.exactCalls).toFixed(1)} %  ` +
      `prefill ${speed.prefill.toFixed(0)}  decode ${speed.decode1.toFixed(1)} / ${speed.decode8.toFixed(1)} tokens/s  ` +
      `memory ${speed.peakMemoryRatio.toFixed(2)}x`,
  );
}
