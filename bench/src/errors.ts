// Ten servers set up wrongly: whether the error feed proposes the setting that rights each, whether replay accepts it, and whether it
// accepts a patch that rights nothing. `--only TEXT...`, `--pairs N` (0: proposals alone), `--wrong N` (patches per plant), `--wrong-pairs N`,
// `--seeds N...`: the right patches are replayed with the first, the wrong ones with each.
// `--journal FILE` keeps what was judged; the next run goes on from there.
import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { misconfigurations } from "./planted-misconfigurations/plants.js";
import { type JudgedPlant, judgeMisconfiguration } from "./planted-misconfigurations/judge-plant.js";
import { type BenchCase, report } from "./support/results.js";

const { values: flags } = parseArgs({
  options: {
    only: { type: "string", multiple: true, default: [""] },
    pairs: { type: "string", default: "6" },
    wrong: { type: "string", default: "2" },
    "wrong-pairs": { type: "string", default: "3" },
    seeds: { type: "string", multiple: true, default: ["1"] },
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
for (const { plant, seed } of flags.seeds.flatMap((one) =>
  planted.map((own) => ({ plant: own, seed: Number(one) })),
)) {
  const known = done.find((line) => line.name === plant.name && line.seed === seed);
  if (known !== undefined) {
    judged.push(known);
    continue;
  }
  const folder = await mkdtemp(join(tmpdir(), "octavo-errors-"));
  try {
    const one = await judgeMisconfiguration(plant, folder, {
      seed,
      pairs: String(seed) === flags.seeds[0] ? Number(flags.pairs) : 0,
      wrongPairs: Number(flags["wrong-pairs"]),
      wrong: Number(flags.wrong),
    });
    judged.push(one);
    const line = `${JSON.stringify({ seed, ...one })}\n`;
    process.stderr.write(line);
    if (journal !== undefined) appendFileSync(journal, line);
  } finally {
    await rm(folder, { recursive: true, force: true });
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
  return {
    name: "patches that right nothing, accepted by replay",
    unit: `of ${trials.length}`,
    octavo: trials.filter(({ verdict }) => verdict === "accepted").length,
    target: { atMost: 0 },
    details: { trials },
  };
}
