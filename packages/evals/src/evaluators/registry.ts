import { definedFields, OctavoError, parseWith } from "@octavo/protocol";
import { nearestName } from "@octavo/protocol/errors";
import { z } from "zod";
import type { JudgeModel } from "../judges/judge.js";
import type {
  EvaluateOptions,
  Evaluator,
  EvaluatorInput,
  EvaluatorSpec,
  OutputKind,
  Sample,
  Score,
} from "./evaluator.js";
import { missingInput, missingTag } from "./inputs.js";

/** What evaluators of a run share. */
export interface EvaluatorServices {
  /** Whom judged evaluators ask. */
  readonly judge?: JudgeModel;
}

/** A row of the table: everything that is known of an evaluator before its options are. */
export interface EvaluatorEntry {
  /** In snake_case, as configuration files name it. */
  readonly name: string;
  readonly description: string;
  /** Read with default options. */
  readonly inputs: readonly EvaluatorInput[];
  readonly output: OutputKind;
  readonly needsJudge: boolean;
  /** A value from this on passes, unless the spec says another. */
  readonly passThreshold: number;
  readonly options: z.ZodType;
  /**
   * @param options what `options` has not yet parsed
   * @throws OctavoError `invalid_option` for options that are wrong
   */
  create(options: unknown, services: EvaluatorServices): Scorer;
}

/** An evaluator's own part; naming, skipping, thresholds and failures are the table's. */
export interface Scorer {
  /** Where the options change what is read. */
  readonly inputs?: readonly EvaluatorInput[];
  readonly fingerprint?: string;
  /** Name of the model that is asked. */
  readonly judge?: string;
  score(sample: Sample, options: EvaluateOptions): ScorerOutcome | Promise<ScorerOutcome>;
}

/** What an evaluator's `score` returns: a measured value, or why there is none. */
export type ScorerOutcome = Measured | Exclude<Score, { status: "scored" }>;

/** A value whose passing is left to the threshold, unless the scorer knows better. */
export interface Measured {
  readonly status: "scored";
  readonly value: number;
  readonly passed?: boolean;
  readonly label?: string;
  readonly reason?: string;
  readonly details?: Readonly<Record<string, unknown>>;
}

/** Options of rows that have none. */
export const noOptions = z.strictObject({});

type EntryDefinition<Options extends z.ZodType> = {
  readonly name: string;
  readonly description: string;
  /** Default: the output alone. */
  readonly inputs?: readonly EvaluatorInput[];
  /** Default: pass or fail. */
  readonly output?: OutputKind;
  readonly needsJudge?: boolean;
  /** Default 0.5, which is that of every pass or fail. */
  readonly passThreshold?: number;
  /** Default: none. */
  readonly options?: Options;
} & (
  | { create(options: z.output<Options>, services: EvaluatorServices): Scorer }
  /** Where options and sample are all that it takes. */
  | { score(sample: Sample, options: z.output<Options>): ScorerOutcome | Promise<ScorerOutcome> }
);

/** A row of the table whose options are parsed before it sees them. */
export function defineEvaluator<Options extends z.ZodType = typeof noOptions>(
  definition: EntryDefinition<Options>,
): EvaluatorEntry {
  const { name, description } = definition;
  const schema = definition.options ?? noOptions;
  const { inputs = ["output"], output = "pass_fail", needsJudge = false, passThreshold = 0.5 } = definition;
  return {
    name,
    description,
    inputs,
    output,
    needsJudge,
    passThreshold,
    options: schema,
    create(raw, services) {
      const options = parseOptions(name, schema, raw) as z.output<Options>;
      return "create" in definition
        ? definition.create(options, services)
        : { score: (sample) => definition.score(sample, options) };
    },
  };
}

const evaluatorSpecSchema = z.strictObject({
  name: z.string(),
  options: z.record(z.string(), z.unknown()).optional(),
  as: z
    .string()
    .regex(/^[\w.:/-]{1,64}$/, "expected 1 to 64 letters, digits and any of `_.:/-`")
    .optional(),
  not: z.boolean().optional(),
  threshold: z.number().min(0).max(1).optional(),
  tags: z.array(z.string()).min(1).optional(),
});

/** Rows by name, from which evaluators are made. */
export class EvaluatorTable {
  readonly #entries = new Map<string, EvaluatorEntry>();

  /** @throws OctavoError `invalid_option` where two rows have one name */
  constructor(entries: readonly EvaluatorEntry[]) {
    for (const entry of entries) {
      if (this.#entries.has(entry.name)) {
        throw new OctavoError(
          "invalid_option",
          `two evaluators are called ${entry.name}: rename one of them`,
        );
      }
      this.#entries.set(entry.name, entry);
    }
  }

  get entries(): readonly EvaluatorEntry[] {
    return [...this.#entries.values()];
  }

  /** By its name, or by the same in the spelling of a class: `EvaluateFunctionCalling`. */
  get(name: string): EvaluatorEntry | undefined {
    return this.#entries.get(name) ?? this.#entries.get(snakeCase(name));
  }

  /** This table with rows of the user's own. */
  with(entries: readonly EvaluatorEntry[]): EvaluatorTable {
    return new EvaluatorTable([...this.entries, ...entries]);
  }

  /**
   * The evaluators that a configuration asks for, in its order; a bare name is a spec without options.
   * @throws OctavoError `invalid_option` that names the spec at fault
   */
  create(specs: readonly unknown[], services: EvaluatorServices = {}): Evaluator[] {
    const made = specs.map((raw, index) => {
      try {
        return this.#make(typeof raw === "string" ? { name: raw } : raw, services);
      } catch (thrown) {
        const error = OctavoError.from(thrown);
        const param = `evaluators[${index}]`;
        throw new OctavoError("invalid_option", `${param}: ${error.message}`, { param, cause: error });
      }
    });
    const names = new Set<string>();
    for (const [index, { name }] of made.entries()) {
      if (names.has(name)) {
        const param = `evaluators[${index}]`;
        throw new OctavoError(
          "invalid_option",
          `${param}: a second evaluator called ${name}: give it another name with \`as\``,
          { param },
        );
      }
      names.add(name);
    }
    return made;
  }

  #make(raw: unknown, services: EvaluatorServices): Evaluator {
    const spec = parseSpec(raw);
    const entry = this.get(spec.name);
    if (entry === undefined) {
      const reason = needsMedia(snakeCase(spec.name));
      if (reason !== undefined) throw new OctavoError("invalid_option", `${spec.name}: ${reason}`);
      const near = this.#nearest(snakeCase(spec.name));
      throw new OctavoError(
        "invalid_option",
        `there is no evaluator ${JSON.stringify(spec.name.slice(0, 64))}${near === undefined ? "" : `; did you mean ${near}?`}`,
      );
    }
    if (entry.needsJudge && services.judge === undefined) {
      throw new OctavoError("invalid_option", `${entry.name} needs a judge: configure one`);
    }
    const scorer = entry.create(spec.options ?? {}, services);
    const inputs = scorer.inputs ?? entry.inputs;
    return {
      name: spec.as ?? entry.name,
      description: entry.description,
      inputs,
      output: entry.output,
      needsJudge: entry.needsJudge,
      spec: { ...spec, name: entry.name },
      ...definedFields({ fingerprint: scorer.fingerprint, judge: scorer.judge }),
      evaluate: (sample, options) => scoreWith(scorer, inputs, spec, entry.passThreshold, sample, options),
    };
  }

  /** A name that shares most of its words with the one that was asked for. */
  #nearest(name: string): string | undefined {
    const words = new Set(
      name
        .toLowerCase()
        .slice(0, 64)
        .split(/[^a-z0-9]+/),
    );
    let best: string | undefined;
    let bestShared = 0;
    for (const candidate of this.#entries.keys()) {
      const own = candidate.split("_");
      const shared = own.filter((word) => words.has(word)).length / Math.max(own.length, words.size);
      if (shared > bestShared) [best, bestShared] = [candidate, shared];
    }
    return best ?? nearestName(name, [...this.#entries.keys()]);
  }
}

/** Why an evaluator of images or sound is not here; undefined for other names. */
function needsMedia(name: string): string | undefined {
  const medium = Object.entries(mediaNames).find(([, pattern]) => pattern.test(name))?.[0];
  return (
    medium &&
    `it judges ${medium}, and cases and targets have text only: judge a description of it with custom_llm_judge`
  );
}

const mediaNames: Readonly<Record<string, RegExp>> = {
  images: /(?:^|_)(?:caption|captions|image|images|ocr|visual)(?:_|$)/,
  sound: /(?:^|_)(?:audio|asr|stt|tts|speech)(?:_|$)/,
};

function snakeCase(name: string): string {
  const parted = name
    .slice(0, 64)
    .replaceAll(/([a-z0-9])([A-Z])/g, "$1_$2")
    .replaceAll(/([A-Z])([A-Z][a-z])/g, "$1_$2");
  return parted.toLowerCase();
}

async function scoreWith(
  scorer: Scorer,
  inputs: readonly EvaluatorInput[],
  spec: EvaluatorSpec,
  passThreshold: number,
  sample: Sample,
  options: EvaluateOptions,
): Promise<Score> {
  const missing = missingTag(spec.tags, sample) ?? missingInput(sample, inputs);
  if (missing !== undefined) return { status: "skipped", reason: missing };
  let outcome: ScorerOutcome;
  try {
    outcome = await scorer.score(sample, options);
  } catch (thrown) {
    if (options.signal.aborted) throw thrown;
    const error = OctavoError.from(thrown);
    return { status: "failed", code: error.code, reason: error.message };
  }
  if (outcome.status !== "scored") return outcome;
  if (!(outcome.value >= 0 && outcome.value <= 1)) {
    return {
      status: "failed",
      code: "internal_error",
      reason: `${outcome.value} is not a score from 0 to 1`,
    };
  }
  const threshold = spec.threshold ?? passThreshold;
  const value = spec.not === true ? 1 - outcome.value : outcome.value;
  const own = spec.threshold === undefined ? outcome.passed : undefined;
  const passed = own === undefined ? value >= threshold : own !== (spec.not === true);
  return { ...outcome, value, passed };
}

function parseSpec(raw: unknown): EvaluatorSpec {
  const { name, options, as, not, threshold, tags } = parseWith(evaluatorSpecSchema, raw);
  return {
    name,
    ...definedFields({ options, as, not, threshold, tags }),
  };
}

function parseOptions<Schema extends z.ZodType>(
  name: string,
  schema: Schema,
  raw: unknown,
): z.output<Schema> {
  try {
    return parseWith(schema, raw);
  } catch (thrown) {
    const error = OctavoError.from(thrown);
    const message = error.message.replace(/^the request body/, "options");
    throw new OctavoError("invalid_option", `${name}: ${message}`, { cause: error });
  }
}
