import { existsSync } from "node:fs";
import { authoredEvaluatorText, writeEvaluator } from "@octavo/optimize";
import { OctavoError } from "@octavo/protocol/errors";
import { option } from "@octavo/protocol/options";
import { defineCommand } from "../command.js";
import { authoringRows, improveByLabels, readMaterial, writerDesk } from "../eval/authoring.js";
import { interruptible } from "../interruptible.js";
import { writeTextOf } from "../output/files.js";

/** `octavo eval author "answers must never promise refunds"`: an evaluator from a sentence, held against labels. */
export default defineCommand({
  arguments: { "<statement>": "what must hold of answers, in a sentence" },
  options: {
    out: option.text("--out <file>", "evaluator file to write", { isRequired: true }),
    as: option.text("--as <name>", "its name", { defaultText: "the statement's first words" }),
    ...authoringRows,
  },
  async run(flags, statement: string) {
    const { out, as } = flags;
    if (existsSync(out))
      throw new OctavoError(
        "invalid_option",
        `--out: ${out} is there already: octavo eval improve ${out} makes a new version of it`,
        {
          param: "out",
        },
      );
    await interruptible(async (signal) => {
      const material = await readMaterial(flags, out, signal);
      const desk = writerDesk(flags, signal);
      const { evaluator, warnings } = await writeEvaluator(desk, {
        statement,
        as,
        answers: material.samples.map(({ answer }) => answer.text),
      });
      for (const warning of warnings) process.stderr.write(`octavo: ${warning}\n`);
      // before anyone labels: what was written is not lost
      await writeTextOf("out", out, authoredEvaluatorText(evaluator));
      await improveByLabels(evaluator, material, { param: "out", path: out }, { flags, desk, signal });
    });
  },
});
