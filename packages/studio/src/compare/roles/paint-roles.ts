import { callsOf, type RenderedAnswer } from "../data/render.js";
import { type JsonNode, parseJsonAt } from "./json-tree.js";
import { roleIndex } from "./role.js";

const prose = roleIndex("prose");
const jsonKey = roleIndex("json_key");
const jsonValue = roleIndex("json_value");
const toolArgument = roleIndex("tool_argument");
const structure = roleIndex("structure");

/** Markup of tool calls that text carries; special tokens are known by their ids. */
const markup = /<\/?tool_call>|<\|python_tag\|>|\[\/?TOOL_CALLS\]|<\/?think>/g;

/**
 * The role of every UTF-16 unit of an answer, as an index into `roles`. Outside the message's own content, where the data
 * has it, is structure; JSON objects and arrays are split into keys, values and punctuation; values of a call's
 * arguments are tool arguments, found by their text where the format of calls is not JSON.
 */
export function paintRoles(text: string, answer: RenderedAnswer): Uint8Array {
  const body = text.slice(answer.start, answer.end);
  const paint = new Uint8Array(body.length).fill(prose);
  paintMarkup(paint, body, answer);
  let foundCalls = 0;
  for (const node of findJson(body)) {
    paint.fill(structure, node.start, node.end);
    foundCalls += paintNode(paint, node, answer.mayCallTools, jsonValue);
  }
  if (foundCalls === 0) paintCallsByText(paint, body, answer);
  return paint;
}

function paintMarkup(paint: Uint8Array, body: string, { message }: RenderedAnswer): void {
  if (message !== undefined) {
    paint.fill(structure);
    let from = 0;
    for (const part of [message["reasoning_content"], message.content]) {
      if (typeof part !== "string" || part.trim() === "") continue;
      const at = body.indexOf(part.trim(), from);
      if (at === -1) continue;
      from = at + part.trim().length;
      paint.fill(prose, at, from);
    }
  }
  for (const { index, 0: tag } of body.matchAll(markup)) paint.fill(structure, index, index + tag.length);
}

/** Objects anywhere, lists where they begin a line: "[1]" within a sentence is a citation. */
function* findJson(body: string): Generator<JsonNode> {
  const opening = /[{[]/g;
  for (let match = opening.exec(body); match !== null; match = opening.exec(body)) {
    const { index } = match;
    const isList = match[0] === "[";
    if (isList && !/(?:^|[\n>\]])[ \t]*$/.test(body.slice(Math.max(0, index - 80), index))) continue;
    const node = parseJsonAt(body, index);
    if (
      node === undefined ||
      (node.kind === "object" ? node.members : node.kind === "array" ? node.items : []).length === 0
    )
      continue;
    yield node;
    opening.lastIndex = node.end;
  }
}

/** Returns how many calls the node holds. */
function paintNode(paint: Uint8Array, node: JsonNode, mayCall: boolean, valueRole: number): number {
  let calls = 0;
  switch (node.kind) {
    case "scalar":
      paint.fill(valueRole, node.start, node.end);
      return 0;
    case "array":
      for (const item of node.items) calls += paintNode(paint, item, mayCall, valueRole);
      return calls;
    case "object": {
      const isCall =
        mayCall && node.members.some(({ key, value }) => key === "name" && value.kind === "scalar");
      for (const { key, keyStart, keyEnd, value } of node.members) {
        paint.fill(jsonKey, keyStart, keyEnd);
        const isArguments =
          isCall && (key === "arguments" || key === "parameters") && value.kind === "object";
        if (isArguments) calls++;
        calls += paintNode(paint, value, mayCall && !isArguments, isArguments ? toolArgument : valueRole);
      }
      return calls;
    }
  }
}

function paintCallsByText(paint: Uint8Array, body: string, answer: RenderedAnswer): void {
  let from = 0;
  for (const call of callsOf(answer)) {
    for (const value of scalarsOf(call.function.arguments)) {
      const quoted = JSON.stringify(value);
      const written = [quoted.startsWith('"') ? quoted.slice(1, -1) : quoted, String(value)];
      for (const form of written) {
        const at = form === "" ? -1 : body.indexOf(form, from);
        if (at === -1) continue;
        from = at + form.length;
        paint.fill(toolArgument, at, from);
        break;
      }
    }
  }
}

function scalarsOf(value: unknown): (string | number | boolean | null)[] {
  if (Array.isArray(value)) return value.flatMap(scalarsOf);
  if (typeof value === "object" && value !== null) return Object.values(value).flatMap(scalarsOf);
  return typeof value === "string" ||
    typeof value === "number" ||
    typeof value === "boolean" ||
    value === null
    ? [value]
    : [];
}
