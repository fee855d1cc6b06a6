import { basename } from "node:path";
import { isRecord } from "@octavo/protocol";
import type { EvalCase } from "../../cases/eval-case.js";
import type { EvaluatorSpec } from "../../evaluators/evaluator.js";
import type { Dataset } from "../dataset.js";
import { quoted } from "../place.js";
import { AssertionCollector, type UnsupportedAssertion } from "./assertion-collector.js";
import { ConfigFiles } from "./config-files.js";
import { combinations, fillTemplate, TemplateProblem, type Variables } from "./fill-template.js";
import { promptMessages, type PromptfooPrompt, readPrompts } from "./read-prompts.js";
import { type PromptfooTest, readTests } from "./read-tests.js";

/** A promptfoo configuration as cases and evaluators. */
export interface PromptfooImport {
  readonly description: string | undefined;
  /** A case for each prompt, test and combination of its variables' values. */
  readonly dataset: Dataset;
  /** Each scores only the cases whose test asserts it: those carry its tag. */
  readonly evaluators: readonly EvaluatorSpec[];
  /** Weights other than 1 that assertions set, by evaluator. */
  readonly weights: Readonly<Record<string, number>>;
  readonly unsupported: readonly UnsupportedAssertion[];
  /** What else is not taken over, or may surprise. */
  readonly warnings: readonly string[];
  /** As the configuration names them; a run names its own targets. */
  readonly providers: readonly string[];
}

/**
 * Reads promptfooconfig.yaml (or .json) of promptfoo 0.123: prompts, tests inline and in files, defaultTest, scenarios,
 * variables and assertions. Files are read in the configuration's folder only; code is never run. What has no counterpart
 * is reported.
 * @throws OctavoError `dataset_invalid` that names the file and the field
 */
export async function importPromptfoo(path: string): Promise<PromptfooImport> {
  const files = new ConfigFiles(path);
  const config = await files.readConfig();
  if (!isRecord(config)) throw files.fail("the configuration", `must be an object, but is ${quoted(config)}`);
  const prompts = await readPrompts(config["prompts"], files);
  const tests = await readTests(config, files);
  const collector = new AssertionCollector(
    isRecord(config["assertionTemplates"]) ? config["assertionTemplates"] : {},
  );
  const warnings = new Set<string>();
  const cases: EvalCase[] = [];
  for (const [testIndex, test] of tests.entries()) {
    for (const [promptIndex, prompt] of prompts.entries()) {
      const id = `prompt-${promptIndex + 1}/test-${testIndex + 1}`;
      cases.push(...testCases(id, prompt, test, { files, collector, warnings }));
    }
    warnOfTest(test, warnings);
  }
  const name = basename(path);
  const { evaluators, weights, unsupported } = collector;
  return {
    description: typeof config["description"] === "string" ? config["description"] : undefined,
    dataset: {
      name,
      size: cases.length,
      async *cases() {
        yield* cases;
      },
    },
    evaluators,
    weights,
    unsupported,
    warnings: [...warnings],
    providers: providerNames(config["providers"] ?? config["targets"]),
  };
}

interface Surroundings {
  readonly files: ConfigFiles;
  readonly collector: AssertionCollector;
  readonly warnings: Set<string>;
}

function testCases(
  id: string,
  prompt: PromptfooPrompt,
  test: PromptfooTest,
  { files, collector, warnings }: Surroundings,
): EvalCase[] {
  try {
    const sets =
      test.options["disableVarExpansion"] === true ? [test.variables] : combinations(test.variables);
    return sets.map((set, index) => {
      const onMissing = (name: string): void => {
        warnings.add(`${test.at}: {{${name}}} has no value and is left out`);
      };
      const variables = resolveVariables(set, onMissing);
      const fill = (text: string): string => fillTemplate(text, variables, onMissing);
      const [prefix, suffix] = [textOption(test, "prefix"), textOption(test, "suffix")];
      const messages = promptMessages(prompt, fill, { prefix, suffix }, files, prompt.label);
      const { tags, outputs } = collector.collect(test.assertions, fill);
      const { context } = variables;
      return {
        id: sets.length > 1 ? `${id}/${index + 1}` : id,
        messages,
        tools: [],
        context: typeof context === "string" ? context : undefined,
        expected: outputs === undefined ? {} : { outputs },
        parameters: {},
        tenant: undefined,
        cluster: undefined,
        tags,
        metadata: {
          ...test.metadata,
          prompt: prompt.label,
          variables: set,
          ...(test.description !== undefined && { description: test.description }),
        },
      };
    });
  } catch (error) {
    if (error instanceof TemplateProblem) throw files.fail(test.at, error.message, error);
    throw error;
  }
}

/** Variables may use others. */
function resolveVariables(set: Variables, onMissing: (name: string) => void): Variables {
  return Object.fromEntries(
    Object.entries(set).map(([name, value]) => [
      name,
      typeof value === "string" && value.includes("{{") ? fillTemplate(value, set, onMissing) : value,
    ]),
  );
}

function textOption(test: PromptfooTest, name: string): string {
  const value = test.options[name];
  return typeof value === "string" ? value : "";
}

/** Options that change answers or verdicts and are not taken over. */
const foreignOptions = ["transform", "transformVars", "postprocess", "provider", "rubricPrompt"];

function warnOfTest(test: PromptfooTest, warnings: Set<string>): void {
  if (test.threshold !== undefined) {
    warnings.add(`${test.at}.threshold is not taken over: state it in eval.yaml`);
  }
  for (const name of foreignOptions) {
    if (test.options[name] !== undefined) warnings.add(`${test.at}.options.${name} is not taken over`);
  }
}

function providerNames(value: unknown): string[] {
  const list = Array.isArray(value) ? value : value === undefined ? [] : [value];
  return list.flatMap((one: unknown) => {
    if (typeof one === "string") return [one];
    if (!isRecord(one)) return [];
    return typeof one["id"] === "string" ? [one["id"]] : Object.keys(one);
  });
}
