import type { CallLayout, MachineContext, OutputMachine } from "../machine.js";
import { anyNumberOf, inSequence, literalSpec, regexSpec } from "./grammar-specs.js";
import { takeSpace, type Waiting } from "./input.js";
import { sectionedCalls } from "./sectioned-calls.js";
import { readUntilTag, takeText, untilTag, untilTagPassingSpace } from "./tags.js";
import { type ToolSchemas, valueKind } from "./tool-schemas.js";
import { ArgumentsWriter, readTypedValue } from "./typed-parameters.js";

/** The tags of formats that write each argument between tags of its own; the tool's schema says its type. */
export interface ParameterTags {
  /** Around one call, or around all calls of an answer; empty where there is no such markup. */
  readonly open: string;
  readonly close: string;
  readonly isSection?: boolean;
  /** Around each call of a section, in addition to the function's own tags. */
  readonly call?: { readonly start: string; readonly end: string; readonly separator: string };
  /** What precedes a name; the name ends with `>`, and may be in quotes. */
  readonly functionStart: string;
  readonly functionEnd: string;
  readonly parameterStart: string;
  readonly parameterEnd: string;
  /** Around names. */
  readonly quote: "" | '"';
  /** Parameters say `string="true"` or `string="false"` after their name. */
  readonly marksStrings?: boolean;
  /** Markup around a value at times, in which nothing but its end is markup. */
  readonly verbatim?: { readonly start: string; readonly end: string };
  /** One line break after the start tag of a value and one before its end tag belong to the markup. */
  readonly trimsLineBreaks: boolean;
}

const maxNameLength = 512;

export function taggedParameterCalls(tags: ParameterTags): OutputMachine {
  const { open, close, call, functionStart } = tags;
  if (tags.isSection !== true) return singleCalls(tags);
  const section = { sectionStart: open, sectionEnd: close, callStart: call?.start ?? functionStart };
  return sectionedCalls({ ...section, needsSection: true }, function* (context) {
    const { input, sink } = context;
    if (call !== undefined) {
      const { text, tag } = yield* readUntilTag(input, [functionStart, call.end], maxNameLength);
      if (tag !== functionStart) return sink.content(call.start + text + (tag ?? ""));
    }
    yield* readFunction(context, tags, functionStart);
    if (call === undefined) return;
    yield* takeSpace(input);
    if (yield* takeText(input, call.end)) yield* takeText(input, call.separator);
  });
}

/** Each call between `open` and `close`, which models sometimes omit. */
function singleCalls(tags: ParameterTags): OutputMachine {
  const { open, close, functionStart } = tags;
  const starts = open === "" ? [functionStart] : [open, functionStart];
  return function* (context) {
    const { input, sink } = context;
    const toContent = (text: string): void => sink.content(text);
    let tag = yield* untilTag(input, starts, toContent);
    while (tag !== undefined) {
      let opening: string = tag;
      if (tag === open) {
        opening += yield* takeSpace(input);
        const { text, tag: next } = yield* readUntilTag(input, [functionStart], functionStart.length);
        opening += text + (next ?? "");
        tag = next;
      }
      if (tag !== functionStart) toContent(opening);
      else if ((yield* readFunction(context, tags, opening)) && close !== "") {
        yield* takeSpace(input);
        yield* takeText(input, close);
      }
      tag = yield* untilTag(input, starts, toContent);
    }
  };
}

/** What ends a function. */
function endsOf({ functionEnd, close }: ParameterTags): readonly string[] {
  return close === "" ? [functionEnd] : [functionEnd, close];
}

/** Whether the function's own end tag ended it. */
export function* readFunction(
  context: MachineContext,
  tags: ParameterTags,
  opening: string,
): Waiting<boolean> {
  const { input, sink } = context;
  const { text, tag } = yield* readUntilTag(input, endsOf(tags), maxNameLength, ">");
  const { name } = readHead(text);
  if (tag !== ">" || name === "") {
    sink.content(opening + text + (tag ?? ""));
    return false;
  }
  sink.beginCall(name);
  const writer = new ArgumentsWriter(sink);
  const { problem, end } = yield* readParameters(context, tags, name, writer);
  writer.end();
  sink.endCall(problem);
  return end === tags.functionEnd;
}

/** Reads to the end of the function; returns the problem, if any. Text between parameters is content. */
function* readParameters(
  { input, sink, schemas }: MachineContext,
  tags: ParameterTags,
  tool: string,
  writer: ArgumentsWriter,
): Waiting<{ readonly problem: string | undefined; readonly end: string | undefined }> {
  const { parameterStart, parameterEnd, trimsLineBreaks, verbatim } = tags;
  const ends = endsOf(tags);
  const toContent = (text: string): void => sink.content(text);
  let problem: string | undefined;
  let tag = yield* untilTagPassingSpace(input, [parameterStart, ...ends], toContent);
  while (tag === parameterStart) {
    const { text, tag: close } = yield* readUntilTag(input, ends, maxNameLength, ">");
    tag = close;
    if (close !== ">") {
      problem ??= "a parameter's name is not closed";
      toContent(parameterStart + text);
      break;
    }
    const { name: key, isString } = readHead(text);
    writer.key(key);
    const kind = kindOf(schemas, tool, key, isString);
    const isVerbatim = verbatim !== undefined && (yield* takeText(input, verbatim.start));
    const valueEnd = isVerbatim ? verbatim.end + parameterEnd : parameterEnd;
    const endTags = isVerbatim ? [valueEnd] : [valueEnd, parameterStart, ...ends];
    tag = yield* readTypedValue(input, writer, { kind, endTags, trimsLineBreaks });
    if (tag !== valueEnd) problem ??= `the parameter ${JSON.stringify(key.slice(0, 64))} is not closed`;
    else tag = yield* untilTagPassingSpace(input, [parameterStart, ...ends], toContent);
  }
  return { problem: tag === undefined ? (problem ?? "the call is not closed") : problem, end: tag };
}

/** A name and what its tag says about the value. */
function readHead(text: string): { readonly name: string; readonly isString: boolean | undefined } {
  const [, name = "", mark] = /^\s*["']?(.*?)["']?\s*(?:string="(true|false)"\s*)?$/s.exec(text) ?? [];
  return { name: name.trim(), isString: mark === undefined ? undefined : mark === "true" };
}

/** The schema decides where it rules strings out, as in vLLM. */
function kindOf(
  schemas: ToolSchemas,
  tool: string,
  key: string,
  isString: boolean | undefined,
): "text" | "json" | "either" {
  const kind = valueKind(schemas, tool, key);
  if (isString === undefined) return kind;
  return isString && kind !== "json" ? "text" : "json";
}

export function taggedParameterLayout(tags: ParameterTags): CallLayout {
  const { open, close, isSection = false, call, quote } = tags;
  const { functionStart, functionEnd, parameterStart, parameterEnd, verbatim } = tags;
  const lineBreak = tags.trimsLineBreaks ? "\n" : "";
  const mark = (kind: string): string =>
    tags.marksStrings === true && kind !== "either" ? ` string="${kind === "text"}"` : "";
  const lead = isSection ? (call?.start ?? "") : open && `${open}\n`;
  return {
    ...(isSection ? { open: `${open}\n`, close: `\n${close}` } : { bareTrigger: functionStart }),
    begin: (name) => [literalSpec(`${lead}${functionStart}${quote}${name}${quote}>\n`)],
    end: functionEnd + (isSection ? (call?.end ?? "") : close && `\n${close}`),
    separator: call?.separator ?? "\n",
    trigger: open === "" ? functionStart : open,
    notation: {
      before: (key, kind) => `${parameterStart}${quote}${key}${quote}${mark(kind)}>${lineBreak}`,
      after: `${lineBreak}${parameterEnd}\n`,
      separator: "",
      textEnds: [parameterEnd, parameterStart, functionEnd, close, verbatim?.start ?? ""].filter(
        (tag) => tag !== "",
      ),
      any: anyNumberOf(
        inSequence(
          literalSpec(parameterStart + quote),
          regexSpec("[\\w.-]{1,64}"),
          literalSpec(`${quote}>${lineBreak}`),
          { kind: "any_text", until: parameterEnd },
          literalSpec("\n"),
        ),
      ),
    },
  };
}
