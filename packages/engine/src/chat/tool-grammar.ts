import { type ChatCompletionRequest, toolNameOf } from "@octavo/protocol";
import type { GrammarSpec, JsonObject } from "@octavo/text/structured/grammar";
import type { CallLayout, ToolFormat } from "@octavo/text/parsers/machine";
import { jsonArrayLayout } from "@octavo/text/parsers/shared/json-calls";
import { listedArguments } from "@octavo/text/parsers/shared/listed-arguments";
import type { ReasoningFormat } from "@octavo/text/parsers/machine";
import type { PromptReasoning } from "@octavo/text/parsers/reasoning/reasoning-format";
import { invalidField, unsupportedField } from "@octavo/protocol/refusal";
import { callableTool, type CallableTool, larkArguments } from "./custom-tools.js";

/** A constraint on the output, and the field that sets it. */
export interface OutputConstraint {
  readonly spec: GrammarSpec;
  readonly param: string;
}

export type ToolChoice = "none" | "auto" | "required" | { readonly named: string };

type ToolFields = Pick<ChatCompletionRequest, "tools" | "tool_choice" | "parallel_tool_calls">;

/** The request's tool choice. Throws `invalid_request` for a choice that its tools cannot satisfy. */
export function toolChoice({ tools, tool_choice: choice }: ToolFields): ToolChoice {
  const numTools = tools?.length ?? 0;
  if (choice === undefined || choice === null || choice === "auto") return numTools === 0 ? "none" : "auto";
  if (choice === "none") return "none";
  if (numTools === 0)
    throw invalidField("tool_choice", "a call can only be asked for together with tools; none are given");
  if (choice === "required") return "required";
  const named = choice.type === "allowed_tools" ? undefined : choice;
  const chosen = choice.type === "allowed_tools" ? choice.allowed_tools.tools : [choice];
  for (const [index, each] of chosen.entries()) {
    const name = nameOf(each);
    if (tools?.some((tool) => tool.type === each.type && toolNameOf(tool) === name) === true) continue;
    const at = named === undefined ? `tool_choice.allowed_tools.tools[${index}]` : "tool_choice";
    const kind = each.type === "custom" ? "custom tool" : "tool";
    throw invalidField(
      `${at}.${each.type}.name`,
      `no ${kind} has the name ${JSON.stringify(name.slice(0, 64))}`,
    );
  }
  return choice.type === "allowed_tools" ? choice.allowed_tools.mode : { named: nameOf(choice) };
}

type NamedTool = Exclude<NonNullable<ToolFields["tool_choice"]>, string | { readonly type: "allowed_tools" }>;

function nameOf(choice: NamedTool): string {
  return choice.type === "custom" ? choice.custom.name : choice.function.name;
}

/** The tools that may be called. */
function callableTools({ tools, tool_choice: choice }: ToolFields): readonly CallableTool[] {
  const all = (tools ?? []).map(callableTool);
  if (typeof choice !== "object" || choice?.type !== "allowed_tools") return all;
  const allowed = new Set(choice.allowed_tools.tools.map(nameOf));
  return all.filter((tool) => allowed.has(tool.function.name));
}

/** The layout for formats that cannot be constrained: a JSON array, as in vLLM. */
const plainLayout: CallLayout = jsonArrayLayout("");

/**
 * Constrains an answer to the tools' names and to arguments that match their schemas. With `auto` only strict tools need it:
 * text stays free, but a call must be of one of the tools; so it is where only some tools are allowed. Undefined if nothing is enforced.
 */
export function toolGrammar(
  fields: ToolFields,
  choice: ToolChoice,
  format: ToolFormat | undefined,
): GrammarSpec | undefined {
  const tools = callableTools(fields);
  if (choice === "none") return undefined;
  const isSingle = fields.parallel_tool_calls === false;
  if (choice === "auto") {
    const strict = tools.findIndex((tool) => tool.function.strict === true);
    const isNarrowed = tools.length < (fields.tools ?? []).length;
    if (strict < 0 && !isNarrowed) return undefined;
    const { trigger, beginsAnswer, answer } = format?.layout ?? {};
    if (format?.layout !== undefined && answer !== undefined)
      return answer(calls(tools, format.layout, isSingle, false), false);
    if (format?.layout !== undefined && trigger !== undefined)
      return guardedCalls(tools, format.layout, trigger, isSingle);
    if (format?.layout !== undefined && beginsAnswer !== undefined) {
      const text: GrammarSpec = {
        kind: "schema_text",
        schema: { type: "string", not: { pattern: `^\\s*${beginsAnswer}` } },
        without: format.markers,
      };
      return {
        kind: "any_of",
        options: [called(format.layout, calls(tools, format.layout, isSingle, false)), text],
      };
    }
    const isCustom = fields.tools?.[strict]?.type === "custom";
    const asked = `tools[${strict}].${isCustom ? "custom.format" : "function.strict"}`;
    const param = isNarrowed ? "tool_choice" : asked;
    const message =
      "this model's calls have no start that could be watched for; set tool_choice to required, or name the tool";
    throw unsupportedField(param, message);
  }
  const layout = format?.layout ?? plainLayout;
  const wanted = choice === "required" ? tools : tools.filter((tool) => tool.function.name === choice.named);
  return called(layout, calls(wanted, layout, isSingle || choice !== "required", true));
}

/**
 * Combines a request's own constraint with its tools: required calls override it; with `auto` an answer is either what the
 * constraint allows or calls.
 */
export function withTools(
  own: OutputConstraint | undefined,
  fields: ToolFields,
  choice: ToolChoice,
  format: ToolFormat | undefined,
): OutputConstraint | undefined {
  const layout = format?.layout;
  const held =
    own === undefined || format?.content === undefined ? own : { ...own, spec: format.content(own.spec) };
  if (held !== undefined && (choice === "none" || (choice === "auto" && layout === undefined))) return held;
  if (held === undefined || choice !== "auto" || layout === undefined) {
    const spec = toolGrammar(fields, choice, format);
    return spec === undefined ? undefined : { spec, param: "tools" };
  }
  const made = calls(callableTools(fields), layout, fields.parallel_tool_calls === false, false);
  return { ...held, spec: { kind: "any_of", options: [held.spec, called(layout, made)] } };
}

/** Allows reasoning before the answer: the constraint applies after the end of reasoning. */
export function afterReasoning(
  spec: GrammarSpec,
  reasoning: ReasoningFormat | undefined,
  prompt: PromptReasoning,
): GrammarSpec {
  if (reasoning === undefined || prompt === "closed") return spec;
  const ways = reasoning.endTags.map((tag): GrammarSpec => ({
    kind: "sequence",
    parts: [{ kind: "any_text", until: tag }, { kind: "regex", pattern: "\\n{0,2}" }, spec],
  }));
  const reasoned: GrammarSpec = { kind: "any_of", options: ways };
  if (prompt === "open") return reasoned;
  const started = reasoning.startTags.map((tag): GrammarSpec => ({
    kind: "sequence",
    parts: [literal(tag), reasoned],
  }));
  return { kind: "any_of", options: [spec, ...started] };
}

function guardedCalls(
  tools: readonly CallableTool[],
  layout: CallLayout,
  trigger: string,
  isSingle: boolean,
): GrammarSpec {
  const triggers = layout.bareTrigger === undefined ? [trigger] : [trigger, layout.bareTrigger];
  const tags =
    layout.open === undefined
      ? triggers.flatMap((begin) =>
          tools.map((tool) => ({
            begin,
            content: call(
              tool,
              { ...layout, begin: (name) => withoutLead(layout.begin(name), begin) },
              false,
            ),
            end: "",
          })),
        )
      : [{ begin: layout.open, content: calls(tools, layout, isSingle, false), end: layout.close ?? "" }];
  return { kind: "tagged_text", triggers, tags, ...(isSingle ? { stopAfterFirst: true } : {}) };
}

/** An answer of these calls. */
function called(layout: CallLayout, content: GrammarSpec): GrammarSpec {
  if (layout.answer !== undefined) return layout.answer(content, true);
  if (layout.open === undefined) return content;
  return { kind: "sequence", parts: [literal(layout.open), content, literal(layout.close ?? "")] };
}

function calls(
  tools: readonly CallableTool[],
  layout: CallLayout,
  isSingle: boolean,
  enforcesAll: boolean,
): GrammarSpec {
  const item: GrammarSpec = { kind: "any_of", options: tools.map((tool) => call(tool, layout, enforcesAll)) };
  if (isSingle) return item;
  return { kind: "repeat", item, separator: layout.separator, min: 1 };
}

function call(tool: CallableTool, layout: CallLayout, enforcesAll: boolean): GrammarSpec {
  const enforces = enforcesAll || tool.function.strict === true;
  return {
    kind: "sequence",
    parts: [...layout.begin(tool.function.name), argumentsSpec(tool, layout, enforces), literal(layout.end)],
  };
}

function argumentsSpec(tool: CallableTool, { notation }: CallLayout, enforces: boolean): GrammarSpec {
  if (tool.lark !== undefined) return larkArguments(tool.lark, notation);
  if (notation === undefined)
    return enforces ? { kind: "json_schema", schema: schemaOf(tool) } : { kind: "json_object" };
  return enforces ? listedArguments(tool, schemaOf(tool), notation) : notation.any;
}

/** Arguments are an object, even if the schema does not say so. The schema is JSON: it came in a request's body. */
function schemaOf({ function: { parameters } }: CallableTool): JsonObject {
  return { type: "object", ...(parameters as JsonObject | null | undefined) };
}

/** The parts after the first occurrence of a lead. */
function withoutLead(parts: readonly GrammarSpec[], lead: string): readonly GrammarSpec[] {
  const [first, ...rest] = parts;
  if (first?.kind !== "literal") return parts;
  return [literal(first.text.slice(first.text.indexOf(lead) + lead.length)), ...rest];
}

function literal(text: string): GrammarSpec {
  return { kind: "literal", text };
}
