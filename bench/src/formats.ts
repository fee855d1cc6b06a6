// Every format that `octavo quantize` makes: what octavo-mini loses in it, and how fast matrices of a usual size are in it. Quality
// needs no quiet machine and speed does, so that each can be measured alone (`--only`); what a run gives is merged into the results.
// Measuring quality checks the answers first: an artifact that says nothing like the original ends the run.
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { defaultThreadCount } from "@octavo/kernels";
import { OctavoError } from "@octavo/protocol";
import { defaultModelFolder } from "./cpu/models/model-file.js";
import { type Artifact, makeArtifact, writeConversations } from "./formats/artifacts.js";
import { type Format, formats } from "./formats/formats.js";
import { measureQuality } from "./formats/quality.js";
import { type FormatCase, type MeasuredParts, readFormats, saveFormats } from "./formats/results-file.js";
import { measureSpeeds, paces } from "./formats/speed.js";
import { wideModel } from "./formats/wide-model.js";
import { resultsFolder, thisRun } from "./support/results.js";
import { embeddedModel } from "./support/served-model.js";

const parts = ["artifacts", "quality", "speed"] as const;
type Part = (typeof parts)[number];

const { values } = parseArgs({
  options: {
    formats: { type: "string" },
    only: { type: "string" },
    missing: { type: "boolean", default: false },
    count: { type: "string", default: "200" },
    seed: { type: "string", default: "formats" },
    rounds: { type: "string", default: "3" },
    threads: { type: "string", default: String(defaultThreadCount()) },
    "model-folder": { type: "string", default: defaultModelFolder() },
  },
});
const only = parts.find((part) => part === values.only);
if (values.only !== undefined && only === undefined)
  throw new OctavoError("invalid_option", `--only takes ${parts.join(", ")}, not ${values.only}`);

const folder = join(values["model-folder"], "formats");
const calibrationFile = join(folder, "calibration.jsonl");
const resultsPath = `${resultsFolder}formats.json`;
const names = formats.map(({ name }) => name);
const recorded = (name: string): FormatCase | undefined =>
  readFormats(resultsPath).find((one) => one.name === name);
const run = thisRun();
const say = (text: string): void => {
  process.stderr.write(`${text}\n`);
};

/** Those of `--formats`, with `--missing` without those whose part is recorded. */
function chosenFor(part: Part): readonly Format[] {
  const wanted = values.formats?.split(",").map((name) => name.trim().toLowerCase());
  const unknown = wanted?.find((name) => !names.some((known) => known.toLowerCase() === name));
  if (unknown !== undefined)
    throw new OctavoError("invalid_option", `--formats takes ${names.join(", ")}, not ${unknown}`);
  return formats.filter(
    ({ name }) =>
      (wanted?.includes(name.toLowerCase()) ?? true) &&
      !(values.missing && part !== "artifacts" && recorded(name)?.[part] !== undefined),
  );
}

async function artifactOf(source: string, format: Format, calibration?: string): Promise<Artifact> {
  say(`${format.name} of ${source}`);
  return await makeArtifact(source, format, folder, calibration);
}

/** Quantises the model whose speed is measured, and records what that took. */
async function wideArtifactOf(wide: string, format: Format): Promise<Artifact> {
  const artifact = await artifactOf(wide, format);
  const { making } = artifact;
  if (making !== undefined) save([{ name: format.name, making }]);
  return artifact;
}

function save(measured: readonly MeasuredParts[]): void {
  saveFormats(resultsPath, run, measured, names);
}

async function qualities(): Promise<void> {
  const heldOut = join(folder, "held-out.jsonl");
  writeConversations(heldOut, "heldout", 100, values.seed);
  for (const format of chosenFor("quality")) {
    const { name } = format;
    const { path } = await artifactOf(embeddedModel, format, calibrationFile);
    const quality = await measureQuality(path, {
      dataPath: heldOut,
      count: Number(values.count),
      seed: values.seed,
    });
    assert.ok(quality.kl < 5, `${name} says nothing like the original: ${quality.kl} nats a token`);
    save([{ name, quality }]);
    say(`${name}: KL ${quality.kl.toFixed(4)}, exact JSON ${quality.exactJson}, calls ${quality.exactCalls}`);
  }
}

async function speeds(): Promise<void> {
  const missing = chosenFor("speed");
  if (missing.length === 0) return;
  // Everything is held against the first, which is measured in every run.
  const [first, ...others] = formats;
  const chosen = [first!, ...others.filter((format) => missing.includes(format))];
  for (const { name } of chosen) {
    if (recorded(name)?.quality === undefined)
      say(`${name} is timed though its answers were not checked: its quality has not been measured`);
  }
  const artifacts: Artifact[] = [];
  const wide = wideModel(folder);
  for (const format of chosen) artifacts.push(await wideArtifactOf(wide, format));
  await measureSpeeds(artifacts, {
    threads: Number(values.threads),
    rounds: Number(values.rounds),
    vocabSize: 4096,
    contextLength: 8192,
    onRound(done, all) {
      save(chosen.map(({ name }, index) => ({ name, speed: all[index]! })));
      say(`round ${done} of ${values.rounds}`);
    },
  });
}

mkdirSync(folder, { recursive: true });
writeConversations(calibrationFile, "train", 400, "calibration");
if (only === "artifacts") {
  const wide = wideModel(folder);
  for (const format of chosenFor("artifacts")) {
    await artifactOf(embeddedModel, format, calibrationFile);
    await wideArtifactOf(wide, format);
  }
} else {
  if (only !== "speed") await qualities();
  if (only !== "quality") await speeds();
}
for (const { name, quality, speed, making } of readFormats(resultsPath)) {
  const cells = [
    name.padEnd(14),
    ...(quality === undefined
      ? []
      : [
          `KL ${quality.kl.toFixed(4)}`,
          `JSON ${(100 * quality.exactJson).toFixed(1)} %`,
          `calls ${(100 * quality.exactCalls).toFixed(1)} %`,
        ]),
    ...(speed === undefined
      ? []
      : [
          `${(speed.weightBytes / 1e6).toFixed(0).padStart(5)} MB`,
          ...paces.map(
            (pace) => `${pace} ${speed.tokensPerSecond[pace].toFixed(1)} (${speed.ratio[pace].toFixed(2)}x)`,
          ),
          `memory ${speed.peakMemoryRatio.toFixed(2)}x`,
          ...(speed.isMet === false ? ["MISSED"] : []),
        ]),
    ...(making === undefined
      ? []
      : [`made in ${making.seconds.toFixed(0)} s and ${(making.peakBytes / 1e9).toFixed(2)} GB`]),
  ];
  say(cells.join("  "));
}
