import type { CaseMessage, EvalCase, JsonSchema, ToolDefinition } from "@octavo/evals";
import { asRecord } from "@octavo/protocol";

/** A text that may be changed: the prompt, the description of a tool or of one of its parameters, or one of the schema. */
export interface TunedPart {
  /** `prompt`, `tool:NAME`, `tool:NAME:/properties/city`, `schema:/properties/total`. */
  readonly id: string;
  readonly text: string;
}

/** A worked example that stands before the question. */
export interface Shot {
  /** The training case that it is made from; undefined if the file already had it. */
  readonly caseId?: string;
  readonly input: string;
  readonly output: string;
  /** Why the output is right; stands before it. */
  readonly reasoning?: string;
}

/** One setting of everything that may be changed. */
export interface Candidate {
  /** By the id of the part. */
  readonly texts: Readonly<Record<string, string>>;
  readonly shots: readonly Shot[];
}

/** The candidate with another text for one part. */
export function withText(candidate: Candidate, part: string, text: string): Candidate {
  return { ...candidate, texts: { ...candidate.texts, [part]: text } };
}

/** Equal for candidates that ask the same. */
export function candidateKey({ texts, shots }: Candidate): string {
  const sorted = Object.entries(texts).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return JSON.stringify([sorted, shots.map(({ input, output, reasoning }) => [input, output, reasoning])]);
}

/** Stands in a prompt that is the user's turn for what the user says. */
const inputPlace = "{{input}}";

/**
 * The case as a candidate asks it. A prompt with `{{input}}` becomes the last user message; any other the system message, in
 * place of the case's own. Examples come between the two.
 */
export function applyCandidate({ texts, shots }: Candidate, evalCase: EvalCase): EvalCase {
  const { prompt } = texts;
  const isTemplate = prompt?.includes(inputPlace) === true;
  const given = evalCase.messages;
  const numLeading = given.findIndex(({ role }) => role !== "system" && role !== "developer");
  const leading = given.slice(0, Math.max(0, numLeading));
  const rest = given.slice(Math.max(0, numLeading));
  const asked = (input: string): string => (isTemplate ? prompt.replace(inputPlace, () => input) : input);
  const lastUser = rest.findLastIndex(({ role }) => role === "user");
  const messages: readonly CaseMessage[] = [
    ...(prompt === undefined || isTemplate ? leading : [{ role: "system", content: prompt } as const]),
    ...shots.flatMap(({ input, output, reasoning }): readonly CaseMessage[] => [
      { role: "user", content: asked(input) },
      { role: "assistant", content: reasoning === undefined ? output : `${reasoning}\n${output}` },
    ]),
    ...rest.map((message, index) =>
      index === lastUser ? { ...message, content: asked(message.content ?? "") } : message,
    ),
  ];
  const format = asRecord(evalCase.parameters.responseFormat);
  const jsonSchema = asRecord(format["json_schema"]);
  return {
    ...evalCase,
    messages,
    tools: evalCase.tools.map((tool) => describedTool(tool, texts)),
    ...(jsonSchema["schema"] === undefined
      ? {}
      : {
          parameters: {
            ...evalCase.parameters,
            responseFormat: {
              ...format,
              json_schema: {
                ...jsonSchema,
                schema: described(asRecord(jsonSchema["schema"]), "schema:", texts),
              },
            },
          },
        }),
  };
}

/** A tool with the descriptions that a candidate has for it and its parameters. */
export function describedTool(tool: ToolDefinition, texts: Readonly<Record<string, string>>): ToolDefinition {
  const { name, parameters } = tool.function;
  const description = texts[`tool:${name}`];
  return {
    ...tool,
    function: {
      ...tool.function,
      ...(description === undefined ? {} : { description }),
      ...(parameters === undefined ? {} : { parameters: described(parameters, `tool:${name}:`, texts) }),
    },
  };
}

/** A schema with those of its descriptions that `texts` has under `prefix` and their place. */
export function described(
  schema: JsonSchema,
  prefix: string,
  texts: Readonly<Record<string, string>>,
): JsonSchema {
  const walk = (value: unknown, place: string): unknown => {
    if (Array.isArray(value)) return value.map((one, index) => walk(one, `${place}/${index}`));
    if (typeof value !== "object" || value === null) return value;
    const text = texts[`${prefix}${place}`];
    return Object.fromEntries(
      Object.entries(value).map(([key, one]) =>
        key === "description" && typeof one === "string"
          ? [key, text ?? one]
          : [key, walk(one, `${place}/${key.replaceAll("~", "~0").replaceAll("/", "~1")}`)],
      ),
    );
  };
  return walk(schema, "") as JsonSchema;
}

/** Every description of a schema as a part. */
export function descriptionsOf(schema: unknown, prefix: string): readonly TunedPart[] {
  const parts: TunedPart[] = [];
  const walk = (value: unknown, place: string): void => {
    if (typeof value !== "object" || value === null) return;
    for (const [key, one] of Object.entries(value)) {
      if (key === "description" && typeof one === "string")
        parts.push({ id: `${prefix}${place}`, text: one });
      else walk(one, `${place}/${key.replaceAll("~", "~0").replaceAll("/", "~1")}`);
    }
  };
  walk(schema, "");
  return parts;
}

/** What a person reads of a case's question. */
export function questionText({ messages }: EvalCase): string {
  return messages
    .filter(({ role }) => role !== "system" && role !== "developer")
    .map(({ role, content }) => (role === "user" ? (content ?? "") : `${role}: ${content ?? ""}`))
    .join("\n");
}
