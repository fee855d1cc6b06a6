import { isRecord } from "@octavo/protocol";
import type { MachineContext, ToolFormat } from "../machine.js";
import type { Waiting } from "../shared/input.js";
import { sectionedCalls } from "../shared/sectioned-calls.js";
import { readUntilTag } from "../shared/tags.js";
import { schemaKind } from "../shared/tool-schemas.js";
import { typedJson } from "../shared/typed-parameters.js";

/** Before every tag. */
const mark = "]<]minimax[>[";
const sectionStart = `${mark}<tool_call>`;
const sectionEnd = `${mark}</tool_call>`;
const callStart = `${mark}<invoke name=`;
const callEnd = `${mark}</invoke>`;
const maxNameLength = 512;
/** Characters of one call's arguments, which are converted when the call is complete. */
const maxCallLength = 2 ** 20;
const maxDepth = 64;

/** A value's text, or its named elements. */
type Element = string | readonly (readonly [name: string, value: Element])[];

function* readCall({ input, sink, schemas }: MachineContext): Waiting {
  const head = yield* readUntilTag(input, [callEnd, sectionEnd], maxNameLength, ">");
  const name = head.text.trim().replace(/^(["'])(.*)\1$/, "$2");
  if (head.tag !== ">" || name === "") {
    sink.content(callStart + head.text + (head.tag ?? ""));
    return;
  }
  sink.beginCall(name);
  const { text, tag } = yield* readUntilTag(input, [callEnd, sectionEnd], maxCallLength);
  if (tag === sectionEnd) input.unread(tag);
  const { elements, problem } = readElements(text);
  const properties = schemas.get(name) ?? new Map<string, unknown>();
  sink.arguments(JSON.stringify(objectOf(elements, (key) => properties.get(key))));
  if (problem !== undefined) sink.ignore(text);
  sink.endCall(problem ?? (tag === callEnd ? undefined : "the call is not closed"));
}

/** The elements up to the first that is malformed. */
function readElements(text: string): { readonly elements: [string, Element][]; readonly problem?: string } {
  const root: [string, Element][] = [];
  const isOpen: { readonly name: string; readonly children: [string, Element][]; text: string }[] = [];
  // each piece is what follows a mark: a tag and the text behind it
  const [lead = "", ...pieces] = text.split(mark);
  if (lead.trim() !== "") return { elements: root, problem: "text stands outside the arguments" };
  for (const piece of pieces) {
    const [, slash, name, rest] = /^<(\/?)([^>]+)>([^]*)$/.exec(piece) ?? [];
    const top = isOpen.at(-1);
    if (name === undefined || rest === undefined) return { elements: root, problem: "a tag is not closed" };
    if (slash === "") {
      if (isOpen.length >= maxDepth)
        return { elements: root, problem: `the arguments are nested deeper than ${maxDepth} levels` };
      isOpen.push({ name, children: [], text: rest });
      continue;
    }
    if (top?.name !== name)
      return { elements: root, problem: `the argument ${JSON.stringify(name.slice(0, 64))} was not opened` };
    isOpen.pop();
    if (top.children.length > 0 && top.text.trim() !== "") top.children.push(["$text", top.text]);
    const parent = isOpen.at(-1);
    (parent?.children ?? root).push([name, top.children.length > 0 ? top.children : top.text]);
    if (parent !== undefined) parent.text += rest;
  }
  const [unclosed] = isOpen;
  if (unclosed === undefined) return { elements: root };
  return {
    elements: root,
    problem: `the argument ${JSON.stringify(unclosed.name.slice(0, 64))} is not closed`,
  };
}

/** Names that repeat collect their values in a list. */
function objectOf(elements: Exclude<Element, string>, schemaOf: (key: string) => unknown): object {
  const values = new Map<string, unknown[]>();
  for (const [key, element] of elements) {
    const value = valueOf(element, schemaOf(key));
    const list = values.get(key);
    if (list === undefined) values.set(key, [value]);
    else list.push(value);
  }
  return Object.fromEntries([...values].map(([key, list]) => [key, list.length === 1 ? list[0] : list]));
}

function valueOf(element: Element, schema: unknown): unknown {
  const container = containerOf(schema, 0);
  if (typeof element !== "string") {
    if (container?.["type"] === "array") return element.map(([, item]) => valueOf(item, container["items"]));
    const properties = container?.["properties"];
    return objectOf(element, (key) =>
      isRecord(properties) && Object.hasOwn(properties, key)
        ? properties[key]
        : container?.["additionalProperties"],
    );
  }
  const kind = isRecord(schema) ? schemaKind(schema) : "text";
  // the template writes empty lists and objects as empty elements
  if (container !== undefined && kind === "json" && element.trim() === "")
    return container["type"] === "array" ? [] : {};
  return kind === "text" ? element : (JSON.parse(typedJson(element, kind === "json")) as unknown);
}

/** The first list or object that a schema allows, with its `type` one of the two. */
function containerOf(schema: unknown, depth: number): Readonly<Record<string, unknown>> | undefined {
  if (!isRecord(schema) || depth > 4) return undefined;
  const types = [schema["type"]].flat();
  for (const type of ["array", "object"]) if (types.includes(type)) return { ...schema, type };
  if (schema["type"] === undefined && schema["items"] !== undefined) return { ...schema, type: "array" };
  if (schema["type"] === undefined && schema["properties"] !== undefined)
    return { ...schema, type: "object" };
  const options = [schema["anyOf"], schema["oneOf"]].flatMap(
    (list) => (Array.isArray(list) ? list : []) as unknown[],
  );
  for (const option of options) {
    const found = containerOf(option, depth + 1);
    if (found !== undefined) return found;
  }
  return undefined;
}

/**
 * `<invoke name="name"><key>value</key></invoke>` in a section, each tag behind a mark of its own; lists and objects as nested
 * elements, whose types the schema says. Such nesting cannot be held to a schema, so that forced calls are written as JSON.
 * Format: vLLM 0.33's parser for MiniMax M3.
 */
export const minimaxM3Format: ToolFormat = {
  name: "minimax_m3",
  markers: [sectionStart, sectionEnd, mark],
  callStarts: [sectionStart],
  machine: sectionedCalls({ sectionStart, sectionEnd, callStart, needsSection: true }, readCall),
};
