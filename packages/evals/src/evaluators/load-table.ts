import { OctavoError } from "@octavo/protocol";
import { z } from "zod";
import type { EvaluatorEntry, EvaluatorTable } from "./registry.js";
import { evaluatorTable } from "./table.js";

const entryShape = z.looseObject({
  name: z.string().regex(/^[a-z][a-z0-9]*(_[a-z0-9]+)*$/, "expected a name in snake_case"),
  description: z.string(),
  inputs: z.array(z.string()),
  output: z.enum(["pass_fail", "score", "choice"]),
  needsJudge: z.boolean(),
  passThreshold: z.number(),
  create: z.custom<EvaluatorEntry["create"]>((value) => typeof value === "function", "expected a function"),
});

/**
 * The table with the rows that modules of the user's own export as `evaluators`, made with `defineEvaluator`.
 * @param modules URLs, such as `file:///home/ada/evaluators.mjs`
 * @throws OctavoError `invalid_option` that names the module at fault
 */
export async function loadEvaluatorTable(modules: readonly string[]): Promise<EvaluatorTable> {
  let table = evaluatorTable;
  for (const module of modules) {
    try {
      const exported = (await import(module)) as Readonly<Record<string, unknown>>;
      const rows = z.array(entryShape).parse(exported["evaluators"]);
      table = table.with(rows as unknown as readonly EvaluatorEntry[]);
    } catch (cause) {
      const { message } = OctavoError.from(cause);
      throw new OctavoError(
        "invalid_option",
        `${module} must export \`evaluators\`, an array of what defineEvaluator() gives: ${message.slice(0, 300)}`,
        { cause },
      );
    }
  }
  return table;
}
