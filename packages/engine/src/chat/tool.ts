import { OctavoError } from "@octavo/protocol/errors";
import type { ChatTool } from "@octavo/protocol";
import type { JsonObject } from "@octavo/text/structured/grammar";
import { checkValue, jsonSchemaOf, type ValueSchema } from "./schema.js";

/** What a tool's function gets beside its arguments. */
export interface ToolContext {
  readonly callId: string;
  readonly signal: AbortSignal | undefined;
}

/** A function that the model may call. */
export interface Tool<Arguments = unknown> {
  readonly name: string;
  /** When to call it: models choose by it. */
  readonly description?: string | undefined;
  /** An object; default one without properties. */
  readonly parameters?: ValueSchema<Arguments> | undefined;
  /** Hold arguments to the schema while they are generated. Default: where the model's format allows it. */
  readonly strict?: boolean | undefined;
  /** What it returns, as JSON or text, goes to the model; without it, `chat` ends with the call. */
  run?(args: Arguments, context: ToolContext): unknown;
}

/** Infers the arguments' type from the schema: `tool({ name, parameters: z.object({ city: z.string() }), run: ({ city }) => ... })`. */
export function tool<Arguments>(definition: Tool<Arguments>): Tool<Arguments> {
  return definition;
}

/** A call that the model made. */
export interface ToolCall {
  readonly id: string;
  readonly name: string;
  /** Parsed; the text itself where it is no JSON. */
  readonly arguments: unknown;
  /** Why the arguments cannot be right. */
  readonly problem?: string | undefined;
}

/** Tools of any type of arguments, or OpenAI's form of them. */
export type ToolInput = (Omit<Tool, "run"> & { run?(args: never, context: ToolContext): unknown }) | ChatTool;

/** Tools as templates and parsers see them, and those that can be run. */
export interface ToolSet {
  readonly wire: readonly ChatTool[];
  readonly runnable: ReadonlyMap<string, Tool>;
}

export async function toolSet(tools: readonly ToolInput[], canBeStrict: boolean): Promise<ToolSet> {
  const runnable = new Map<string, Tool>();
  const wire = await Promise.all(
    tools.map(async (given, index): Promise<ChatTool> => {
      if ("function" in given) return given;
      const each = given as unknown as Tool;
      const param = `tools[${index}]`;
      if (typeof each.name !== "string" || !/^[\w.-]{1,64}$/.test(each.name))
        throw new OctavoError(
          "invalid_option",
          `${param}.name: expected 1 to 64 letters, digits, _, - and .`,
          {
            param: `${param}.name`,
          },
        );
      if (each.run !== undefined) runnable.set(each.name, each);
      const parameters: JsonObject =
        each.parameters === undefined
          ? { type: "object", properties: {} }
          : await jsonSchemaOf(each.parameters, `${param}.parameters`);
      const strict = each.strict ?? canBeStrict;
      const { name, description } = each;
      return {
        type: "function",
        function: {
          name,
          ...(description !== undefined && { description }),
          parameters,
          ...(strict && { strict }),
        },
      };
    }),
  );
  return { wire, runnable };
}

/** What goes back to the model: the result, or what was wrong. Only an abort is thrown. */
export async function runTool(each: Tool, call: ToolCall, signal: AbortSignal | undefined): Promise<string> {
  const checked =
    call.problem !== undefined
      ? { problem: call.problem }
      : await checkValue(each.parameters ?? {}, call.arguments);
  if ("problem" in checked) return JSON.stringify({ error: `invalid arguments: ${checked.problem}` });
  try {
    const result = await each.run?.(checked.value, { callId: call.id, signal });
    return typeof result === "string" ? result : (JSON.stringify(result) ?? "null");
  } catch (thrown) {
    if (signal?.aborted === true) throw thrown;
    return JSON.stringify({ error: thrown instanceof Error ? thrown.message : String(thrown) });
  }
}
