import type { CaseSource, JsonRecord, TaskTool, TaskCall } from "../task.js";
import type { ToolPlan } from "./catalog.js";
import { type ParameterKind, type ParameterPlan, drawParameter } from "./parameters.js";
import { writeJson } from "../json.js";

export function describeTool(plan: ToolPlan): TaskTool {
  const properties = Object.fromEntries(
    plan.parameters.map((parameter) => [parameter.name, parameterSchema(parameter)]),
  );
  return {
    type: "function",
    function: {
      name: plan.name,
      description: plan.description,
      parameters: {
        type: "object",
        properties,
        required: plan.parameters.map((parameter) => parameter.name),
      },
    },
  };
}

const schemaTypes: Partial<Record<ParameterKind, string>> = {
  integer: "integer",
  small: "integer",
  price: "number",
  boolean: "boolean",
};

function parameterSchema({ kind, options }: ParameterPlan): JsonRecord {
  const type = schemaTypes[kind] ?? "string";
  return kind === "enum" ? { type, enum: options ?? [] } : { type };
}

export function drawValues(plans: readonly ParameterPlan[], source: CaseSource): JsonRecord {
  return Object.fromEntries(plans.map((plan) => [plan.name, drawParameter(plan, source)]));
}

/** Puts the values into a template's `{name}` places. */
export function fill(template: string, values: JsonRecord): string {
  return template.replace(/\{(\w+)\}/g, (place, name: string) => {
    const value = values[name];
    return value === undefined ? place : typeof value === "string" ? value : writeJson(value);
  });
}

export function markup(call: TaskCall): string {
  return `<tool_call>\n${writeJson({ name: call.name, arguments: call.arguments })}\n</tool_call>`;
}

const verbs = [
  "add",
  "archive",
  "assign",
  "check",
  "close",
  "copy",
  "delete",
  "export",
  "fetch",
  "find",
  "get",
  "import",
  "list",
  "lock",
  "merge",
  "move",
  "open",
  "print",
  "remove",
  "rename",
  "reset",
  "run",
  "save",
  "scan",
  "send",
  "share",
  "start",
  "stop",
  "sync",
  "update",
];

/** A tool that no catalog has, so that the schema in the prompt and not memory decides the call. */
export function inventTool(source: CaseSource): ToolPlan {
  const { random, pools } = source;
  const verb = random.pick(verbs);
  const thing = random.chance(0.5) ? random.pick(pools.nouns) : pools.word(random);
  const names = pools.distinct(random.int(1, 4), () =>
    random.chance(0.5)
      ? random.pick(pools.nouns)
      : random.chance(0.7)
        ? pools.word(random)
        : `${pools.word(random)}_${random.pick(["id", "name", "count", "code"])}`,
  );
  const parameters = names.map((name): ParameterPlan => {
    const kind = random.pick([
      "word",
      "word",
      "code",
      "integer",
      "price",
      "boolean",
      "enum",
      "person",
      "city",
      "date",
      "phrase",
    ] as const);
    return kind === "enum"
      ? { name, kind, options: pools.distinct(3, () => pools.word(random)) }
      : { name, kind };
  });
  const said = (separator: string, link: string) =>
    parameters.map(({ name }) => `${name.replaceAll("_", " ")}${link}{${name}}`).join(separator);
  const result = random.pick(["id", "state", "total"] as const);
  return {
    name: `${verb}_${thing}`,
    description: random.pick([
      `${capital(verb)} a ${thing}`,
      `${capital(verb)} the ${thing}`,
      `Use this to ${verb} a ${thing}`,
    ]),
    parameters,
    requests: [
      `${capital(verb)} the ${thing} with ${said(" and ", " ")}.`,
      `Please ${verb} a ${thing}: ${said(", ", " is ")}.`,
      `I want to ${verb} the ${thing} where ${said(" and ", " is ")}.`,
      `Call ${verb}_${thing} with ${said(", ", " = ")}.`,
      `Can you ${verb} the ${thing}? Use ${said(", ", ": ")}.`,
    ],
    results: [{ name: result, kind: result === "id" ? "code" : result === "total" ? "integer" : "word" }],
    answer: `Done. The ${result} is {${result}}.`,
  };
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
