import { OctavoError, parseWith } from "@octavo/protocol";
import type { z } from "zod";
import type { Search } from "../search/search.js";

/** A row of the table: a way of proposing candidates. Scoring, budget, journal and the final judgement are the search's. */
export interface Optimizer {
  /** As configuration files name it. */
  readonly name: string;
  readonly description: string;
  /** What it follows. */
  readonly paper: string;
  readonly options: z.ZodType;
  /**
   * @param options what `options` has not yet parsed
   * @throws OctavoError `invalid_option` for options that are wrong
   */
  prepare(options: unknown): PreparedOptimizer;
  readonly needsTeacher: boolean;
  /** Whether it looks for examples, which then need a file. */
  findsExamples(options: unknown): boolean;
}

/** Proposes until it has no more to propose, or the search's budget ends it. */
export type PreparedOptimizer = (search: Search) => Promise<void>;

interface OptimizerDefinition<Options extends z.ZodType> {
  readonly name: string;
  readonly description: string;
  readonly paper: string;
  readonly options: Options;
  /** Default: yes. */
  readonly needsTeacher?: boolean;
  /** Default: no. */
  readonly findsExamples?: (options: z.output<Options>) => boolean;
  run(search: Search, options: z.output<Options>): Promise<void>;
}

export function defineOptimizer<Options extends z.ZodType>(
  definition: OptimizerDefinition<Options>,
): Optimizer {
  const { name, description, paper, options: schema } = definition;
  return {
    name,
    description,
    paper,
    options: schema,
    needsTeacher: definition.needsTeacher ?? true,
    prepare(raw) {
      const options = optionsOf(name, schema, raw) as z.output<Options>;
      return (search) => definition.run(search, options);
    },
    findsExamples: (raw) =>
      definition.findsExamples?.(optionsOf(name, schema, raw) as z.output<Options>) ?? false,
  };
}

function optionsOf(name: string, schema: z.ZodType, raw: unknown): unknown {
  try {
    return parseWith(schema, raw);
  } catch (thrown) {
    const error = OctavoError.from(thrown);
    const message = error.message.replace(/^the request body/, "options");
    throw new OctavoError("invalid_option", `${name}: ${message}`, { param: "optimizer", cause: error });
  }
}
