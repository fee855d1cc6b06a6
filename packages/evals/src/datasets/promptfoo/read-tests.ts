import { isRecord } from "@octavo/protocol";
import { quoted } from "../place.js";
import { isKnownType } from "./assertion-types.js";
import type { ConfigFiles } from "./config-files.js";
import type { Variables } from "./fill-template.js";

/** A test of the configuration, with `defaultTest` and its scenario laid under it. */
export interface PromptfooTest {
  /** Where it stands, such as `tests[3]`. */
  readonly at: string;
  readonly description: string | undefined;
  readonly variables: Variables;
  readonly assertions: readonly AssertionEntry[];
  readonly options: Variables;
  readonly metadata: Variables;
  readonly threshold: unknown;
}

export interface AssertionEntry {
  readonly at: string;
  readonly value: unknown;
}

/** All tests of a configuration: `tests` (inline or in files), then `scenarios`. */
export async function readTests(config: Variables, files: ConfigFiles): Promise<PromptfooTest[]> {
  const given = config["defaultTest"];
  const defaultTest = isReference(given) ? await files.readReference(given, "defaultTest") : (given ?? {});
  const base = await readTest(defaultTest, "defaultTest", files);
  const tests = await readList(config["tests"], "tests", files);
  const scenarios = await readScenarios(config["scenarios"], files);
  const read = [...tests, ...scenarios].map((test) => overlay(base, test));
  // promptfoo runs prompts that need no variables without any test
  return read.length === 0 ? [{ ...base, at: "prompts" }] : read;
}

function overlay(base: PromptfooTest, test: PromptfooTest): PromptfooTest {
  return {
    at: test.at,
    description: test.description ?? base.description,
    variables: { ...base.variables, ...test.variables },
    assertions: [...base.assertions, ...test.assertions],
    options: { ...base.options, ...test.options },
    metadata: { ...base.metadata, ...test.metadata },
    threshold: test.threshold ?? base.threshold,
  };
}

async function readList(value: unknown, at: string, files: ConfigFiles): Promise<PromptfooTest[]> {
  if (value === undefined || value === null) return [];
  if (isReference(value)) return readReferenced(value, at, files);
  if (!Array.isArray(value)) throw files.fail(at, `must be a list of tests, but is ${quoted(value)}`);
  const tests: PromptfooTest[] = [];
  for (const [index, test] of value.entries()) {
    const here = `${at}[${index}]`;
    if (isReference(test)) tests.push(...(await readReferenced(test, here, files)));
    else tests.push(await readTest(test, here, files));
  }
  return tests;
}

async function readReferenced(reference: string, at: string, files: ConfigFiles): Promise<PromptfooTest[]> {
  const content = await files.readReference(reference, at);
  if (reference.toLowerCase().endsWith(".csv") && Array.isArray(content)) {
    return content.map((row: unknown, index) => readCsvTest(row, `${at} row ${index + 1}`));
  }
  return readList(Array.isArray(content) ? content : [content], at, files);
}

async function readTest(value: unknown, at: string, files: ConfigFiles): Promise<PromptfooTest> {
  if (!isRecord(value)) throw files.fail(at, `must be a test, but is ${quoted(value)}`);
  const { vars, assert, options, metadata, description, threshold } = value;
  const variables: [string, unknown][] = [];
  const given = isReference(vars) ? await files.readReference(vars, `${at}.vars`) : (vars ?? {});
  if (!isRecord(given)) throw files.fail(`${at}.vars`, `must be an object, but is ${quoted(given)}`);
  for (const [name, one] of Object.entries(given)) {
    variables.push([name, isReference(one) ? await files.readReference(one, `${at}.vars.${name}`) : one]);
  }
  if (assert !== undefined && assert !== null && !Array.isArray(assert)) {
    throw files.fail(`${at}.assert`, `must be a list of assertions, but is ${quoted(assert)}`);
  }
  return {
    at,
    description: typeof description === "string" ? description : undefined,
    variables: Object.fromEntries(variables),
    assertions: ((assert ?? []) as readonly unknown[]).map((one, index) => ({
      at: `${at}.assert[${index}]`,
      value: one,
    })),
    options: isRecord(options) ? options : {},
    metadata: isRecord(metadata) ? metadata : {},
    threshold,
  };
}

/** A row: columns are variables, but for those whose names begin with two underscores. */
function readCsvTest(row: unknown, at: string): PromptfooTest {
  const columns = Object.entries(isRecord(row) ? row : {});
  const special = (name: string): string | undefined => {
    const value = columns.find(([column]) => column === name)?.[1];
    return typeof value === "string" && value !== "" ? value : undefined;
  };
  const expected = columns.filter(([column, value]) => /^__expected\d*$/.test(column) && value !== "");
  const threshold = special("__threshold");
  return {
    at,
    description: special("__description"),
    variables: Object.fromEntries(columns.filter(([column]) => !column.startsWith("__"))),
    assertions: expected.map(([column, value]) => ({
      at: `${at}.${column}`,
      value: parseExpected(String(value)),
    })),
    options: { prefix: special("__prefix"), suffix: special("__suffix") },
    metadata: Object.fromEntries(
      columns
        .filter(([column]) => column.startsWith("__metadata:"))
        .map(([column, value]) => [column.slice("__metadata:".length), value]),
    ),
    threshold: threshold === undefined ? undefined : Number(threshold),
  };
}

const codePrefixes: Readonly<Record<string, string>> = {
  fn: "javascript",
  eval: "javascript",
  grade: "llm-rubric",
};

/** `type(threshold): value` in one cell; anything else is the text that is expected. */
function parseExpected(cell: string): unknown {
  const match = /^(not-)?([a-z][a-z-]*)(?:\(([\d.]+)\))?(?::\s*([\s\S]*))?$/.exec(cell);
  const type = codePrefixes[match?.[2] ?? ""] ?? match?.[2];
  if (match === null || type === undefined || !isKnownType(type)) return { type: "equals", value: cell };
  const [, not = "", , threshold, value] = match;
  const isList = /-(any|all)$/.test(type);
  return {
    type: `${not}${type}`,
    ...(value !== undefined && { value: isList ? value.split(",").map((one) => one.trim()) : value }),
    ...(threshold !== undefined && { threshold: Number(threshold) }),
  };
}

/** Each data set of a scenario with each of its tests. */
async function readScenarios(value: unknown, files: ConfigFiles): Promise<PromptfooTest[]> {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) throw files.fail("scenarios", `must be a list, but is ${quoted(value)}`);
  const read: PromptfooTest[] = [];
  for (const [index, given] of value.entries()) {
    const at = `scenarios[${index}]`;
    const scenario = isReference(given) ? await files.readReference(given, at) : given;
    if (!isRecord(scenario)) throw files.fail(at, `must be a scenario, but is ${quoted(scenario)}`);
    const data = await readList(scenario["config"], `${at}.config`, files);
    const tests = await readList(scenario["tests"], `${at}.tests`, files);
    for (const [number, set] of data.entries()) {
      for (const test of tests) read.push({ ...overlay(set, test), at: `${test.at} of config[${number}]` });
    }
  }
  return read;
}

export function isReference(value: unknown): value is string {
  return typeof value === "string" && value.startsWith("file://");
}
