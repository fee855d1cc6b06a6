// Ten servers set up wrongly: whether the error feed proposes the setting that rights each, whether replay accepts it, and whether it
// accepts a patch that rights nothing. `--only TEXT...`, `--pairs N` (0: proposals alone), `--wrong N` (patches per plant), `--seed N`.
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
    seed: { type: "string", default: "1" },
  },
});

const judged: JudgedPlant[] = [];
for (const plant of misconfigurations.filter(({ name }) => flags.only.some((part) => name.includes(part)))) {
  const folder = await mkdtemp(join(tmpdir(), "octavo-errors-"));
  try {
    const one = await judgeMisconfiguration(plant, folder, {
      seed: Number(flags.seed),
      pairs: Number(flags.pairs),
      wrong: Number(flags.pairs) === 0 ? 0 : Number(flags.wrong),
    });
    judged.push(one);
    process.stderr.write(`${JSON.stringify(one)}\n`);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
const count = judged.length;
const isProven = Number(flags.pairs) > 0;
report("errors", [
  {
    name: "the proposed patch is the right one",
    unit: `of ${count}`,
    octavo: judged.filter(({ isRight }) => isRight).length,
    target: { atLeast: Math.ceil(0.8 * count) },
    details: { plants: judged.map(({ name, proposed, isRight }) => ({ name, proposed, isRight })) },
  },
  ...(isProven ? proofCases() : []),
]);

function proofCases(): readonly BenchCase[] {
  const trials = judged.flatMap(({ wrong }) => wrong);
  return [
    {
      name: "the right patch is accepted by replay",
      unit: `of ${count}`,
      octavo: judged.filter(({ proof }) => proof?.verdict === "accepted").length,
      details: { proofs: judged.map(({ name, proof }) => ({ name, proof })) },
    },
    {
      name: "patches that right nothing, accepted by replay",
      unit: `of ${trials.length}`,
      octavo: trials.filter(({ verdict }) => verdict === "accepted").length,
      target: { atMost: 0 },
      details: { trials },
    },
  ];
}
