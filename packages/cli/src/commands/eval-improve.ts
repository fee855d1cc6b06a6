import { exitCodes } from "@octavo/evals";
import { judgeDrift, judgedValues, parseAuthoredEvaluator } from "@octavo/optimize";
import { option } from "@octavo/protocol/options";
import { defineCommand } from "../command.js";
import {
  authoringJudge,
  authoringRows,
  improveByLabels,
  readMaterial,
  writerDesk,
} from "../eval/authoring.js";
import { interruptible } from "../interruptible.js";
import { readTextOf } from "../output/files.js";

/** `octavo eval improve FILE`: a new version of an evaluator, where held-out labels show it to be better. */
export default defineCommand({
  arguments: { "<file>": "evaluator that octavo eval author wrote" },
  options: {
    ...authoringRows,
    drift: option.toggle(
      "--drift",
      "only compare the judge's verdicts with those that the file keeps; exit code 2 says drift",
    ),
  },
  async run(flags, file: string) {
    const current = parseAuthoredEvaluator(file, await readTextOf("file", file));
    await interruptible(async (signal) => {
      const material = await readMaterial(flags, file, signal);
      const judge = authoringJudge(flags);
      const anchored = material.samples.filter(({ case: { id } }) => current.anchors[id] !== undefined);
      const values = await judgedValues(
        current,
        anchored.map((sample) => ({ caseId: sample.case.id, sample })),
        { judge, concurrency: flags.concurrency, signal },
      );
      const drift = judgeDrift(current, values);
      if (flags.drift) {
        process.stdout.write(`${drift.summary}\n`);
        process.exitCode = {
          steady: exitCodes.pass,
          drifted: exitCodes.fail,
          undecided: exitCodes.inconclusive,
        }[drift.verdict];
        return;
      }
      if (drift.verdict === "drifted") process.stderr.write(`octavo: ${drift.summary}\n`);
      // figures and anchors are of today either way
      const desk = writerDesk(flags, signal);
      await improveByLabels(current, material, { param: "file", path: file }, { flags, desk, signal });
    });
  },
});
