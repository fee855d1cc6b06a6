import type { ChatCustomTool, ChatTool } from "@octavo/protocol";
import type { ArgumentNotation } from "@octavo/text/parsers/shared/listed-arguments";
import type { GrammarSpec } from "@octavo/text/structured/grammar";

/** The one argument of a custom tool, where models are told of it as of a function. */
export const inputName = "input";

/** A function; `lark` is the grammar of the text that a custom tool takes. */
export type CallableTool = ChatTool & { readonly lark?: string };

/** A custom tool as chat templates describe it: a function of one text. */
export function asFunction(tool: ChatTool | ChatCustomTool): ChatTool {
  if (tool.type === "function") return tool;
  const { name, description, format } = tool.custom;
  const input = { type: "string", description: inputDescription(format) };
  return {
    type: "function",
    function: {
      name,
      ...(description ? { description } : {}),
      parameters: { type: "object", properties: { [inputName]: input }, required: [inputName] },
    },
  };
}

/** A tool as its calls are held to it: a format of a custom tool's holds always, as in OpenAI's API. */
export function callableTool(tool: ChatTool | ChatCustomTool): CallableTool {
  const shown = asFunction(tool);
  if (tool.type === "function" || tool.custom.format?.type !== "grammar") return shown;
  const { syntax, definition } = tool.custom.format.grammar;
  const input = { type: "string", ...(syntax === "regex" && { pattern: `^(?:${definition})$` }) };
  const parameters = {
    ...shown.function.parameters,
    properties: { [inputName]: input },
    additionalProperties: false,
  };
  return {
    ...shown,
    function: { ...shown.function, parameters, strict: true },
    ...(syntax === "lark" && { lark: definition }),
  };
}

/** The arguments of a call whose text follows a Lark grammar. */
export function larkArguments(source: string, notation: ArgumentNotation | undefined): GrammarSpec {
  const quoted = inOrder(literal('"'), { kind: "grammar", source, inString: true }, literal('"'));
  if (notation === undefined) {
    const opening: GrammarSpec = { kind: "regex", pattern: `\\{ ?"${inputName}": ?` };
    return inOrder(opening, quoted, literal("}"));
  }
  const { before, after, textEnds, textQuote = "" } = notation;
  const plain: GrammarSpec | undefined = textEnds && { kind: "grammar", source, without: textEnds };
  return inOrder(
    literal(before(inputName, "text")),
    plain === undefined ? quoted : inOrder(literal(textQuote), plain, literal(textQuote)),
    literal(after),
  );
}

function inputDescription(format: ChatCustomTool["custom"]["format"]): string {
  if (format?.type !== "grammar") return "Any text.";
  const { syntax, definition } = format.grammar;
  return syntax === "regex"
    ? `Text that matches the regular expression ${definition}`
    : `Text of the language of this Lark grammar:\n${definition}`;
}

function literal(text: string): GrammarSpec {
  return { kind: "literal", text };
}

function inOrder(...parts: readonly GrammarSpec[]): GrammarSpec {
  return { kind: "sequence", parts };
}
