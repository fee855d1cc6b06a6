// Ten servers set up wrongly: whether the error feed proposes the setting that rights each, whether replay accepts it, and whether it
// accepts a patch that rights nothing, with the same pairs and looks. `--only TEXT...`, `--pairs N` (at each of three looks), `--seeds N...`,
// `--wrong N` (patches per plant and seed), `--right N` (seeds with which the right patches are replayed; with `--wrong 0 --right 0`: proposals
// alone), `--at-once N`: plants that are judged beside each other, which disturb each other's times. `--journal FILE` keeps what was judged;
// the next run goes on from there. `--until TIME` begins no plant after it.
import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { clopperPearson } from "@octavo/statistics";
import { misconfigurations } from "./planted-misconfigurations/plants.js";
import { type JudgedPlant, judgeMisconfiguration } from "./planted-misconfigurations/judge-plant.js";
import { type BenchCase, report } from "./support/results.js";

const { values: flags } = parseArgs({
  options: {
    only: { type: "string", multiple: true, default: [""] },
    pairs: { type: "string", default: "6" },
    wrong: { type: "string", default: "2" },
    right: { type: "string", default: "1" },
    seeds: { type: "string", multiple: true, default: ["1"] },
    "at-once": { type: "string", default: "1" },
    until: { type: "string" },
    journal: { type: "string" },
  },
});

interface JournalLine extends JudgedPlant {
  readonly seed: number;
}

const { journal } = flags;
const done =
  journal === undefined || !existsSync(journal)
    ? []
    : readFileSync(journal, "utf8")
        .split("\n")
        .filter((line) => line !== "")
        .map((line) => JSON.parse(line) as JournalLine);
const judged: JudgedPlant[] = [];
const planted = misconfigurations.filter(({ name }) => flags.only.some((part) => name.includes(part)));
const waiting = flags.seeds.flatMap((seed, index) =>
  planted.map((plant) => ({ plant, seed: Number(seed), right: index < Number(flags.right) })),
);
const endMs = flags.until === undefined ? Infinity : Date.parse(flags.until);
await Promise.all(Array.from({ length: Number(flags["at-once"]) }, judgeWaiting));

async function judgeWaiting(): Promise<void> {
  for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
    const { plant, seed, right } = next;
    const known = done.find((line) => line.name === plant.name && line.seed === seed);
    if (known !== undefined) judged.push(known);
    if (known !== undefined || Date.now() > endMs) continue;
    const folder = await mkdtemp(join(tmpdir(), "octavo-errors-"));
    try {
      const wanted = { seed, pairs: Number(flags.pairs), wrong: Number(flags.wrong), right };
      const one = await judgeMisconfiguration(plant, folder, wanted);
      judged.push(one);
      const line = `${JSON.stringify({ seed, ...one })}\n`;
      process.stderr.write(line);
      if (journal !== undefined) appendFileSync(journal, line);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  }
}

const count = judged.length;
const tried = judged.filter(({ proof }) => proof !== undefined);
const trials = judged.flatMap(({ name, wrong }) => wrong.map((one) => ({ plant: name, ...one })));
report("errors", [
  {
    name: "the proposed patch is the right one",
    unit: `of ${count}`,
    octavo: judged.filter(({ isRight }) => isRight).length,
    target: { atLeast: Math.ceil(0.8 * count) },
    details: { plants: judged.map(({ name, proposed, isRight }) => ({ name, proposed, isRight })) },
  },
  ...(tried.length > 0 ? [acceptedCase()] : []),
  ...(trials.length > 0 ? [wrongCase()] : []),
]);

function acceptedCase(): BenchCase {
  return {
    name: "the right patch is accepted by replay",
    unit: `of ${tried.length}`,
    octavo: tried.filter(({ proof }) => proof?.verdict === "accepted").length,
    details: { proofs: tried.map(({ name, proof }) => ({ name, proof })) },
  };
}

function wrongCase(): BenchCase {
  const accepted = trials.filter(({ verdict }) => verdict === "accepted").length;
  return {
    name: "patches that right nothing, accepted by replay",
    unit: `of ${trials.length}`,
    octavo: accepted,
    target: { atMost: 0 },
    // one-sided at 95 %
    details: {
      upperBound: clopperPearson(accepted, trials.length, 0.9)[1],
      atOnce: flags["at-once"],
      trials,
    },
  };
}
