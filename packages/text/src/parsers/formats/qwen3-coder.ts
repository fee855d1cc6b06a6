import { anyNumberOf, inSequence, literalSpec, regexSpec } from "../shared/grammar-specs.js";
import type { OutputMachine, MachineContext, ToolFormat } from "../machine.js";
import { takeSpace, type Waiting } from "../shared/input.js";
import { readUntilTag, takeText, untilTag, untilTagPassingSpace } from "../shared/tags.js";
import { valueKind } from "../shared/tool-schemas.js";
import { ArgumentsWriter, readTypedValue } from "../shared/typed-parameters.js";

const callStart = "<tool_call>";
const callEnd = "</tool_call>";
const functionStart = "<function=";
const functionEnd = "</function>";
const parameterStart = "<parameter=";
const parameterEnd = "</parameter>";
const maxNameLength = 512;

/**
 * `<tool_call><function=name><parameter=key>value</parameter>...</function></tool_call>`, values as plain text typed by the
 * tool's schema. Format: the chat template of Qwen/Qwen3-Coder. Models sometimes omit `<tool_call>`.
 */
const machine: OutputMachine = function* (context) {
  const { input, sink } = context;
  const toContent = (text: string): void => sink.content(text);
  const starts = [callStart, functionStart];
  let tag = yield* untilTag(input, starts, toContent);
  while (tag !== undefined) {
    let opening: string = tag;
    if (tag === callStart) {
      opening += yield* takeSpace(input);
      const { text, tag: next } = yield* readUntilTag(input, [functionStart], functionStart.length);
      opening += text + (next ?? "");
      tag = next;
    }
    if (tag === functionStart) yield* readFunction(context, opening);
    else toContent(opening);
    tag = yield* untilTag(input, starts, toContent);
  }
};

function* readFunction({ input, sink, schemas }: MachineContext, opening: string): Waiting {
  const { text: name, tag } = yield* readUntilTag(input, [functionEnd, callEnd], maxNameLength, ">");
  if (tag !== ">" || name.trim() === "") {
    sink.content(opening + name + (tag ?? ""));
    return;
  }
  sink.beginCall(name.trim());
  const writer = new ArgumentsWriter(sink);
  const problem = yield* readParameters({ input, sink, schemas }, name.trim(), writer);
  writer.end();
  sink.endCall(problem);
}

/** Reads to the end of the function; returns the problem, if any. Text between parameters is content. */
function* readParameters(
  { input, sink, schemas }: MachineContext,
  name: string,
  writer: ArgumentsWriter,
): Waiting<string | undefined> {
  const ends = [functionEnd, callEnd];
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
    const key = text.trim();
    writer.key(key);
    tag = yield* readTypedValue(input, writer, {
      kind: valueKind(schemas, name, key),
      endTags: [parameterEnd, parameterStart, ...ends],
      trimsLineBreaks: true,
    });
    if (tag !== parameterEnd) problem ??= `the parameter ${JSON.stringify(key.slice(0, 64))} is not closed`;
    else tag = yield* untilTagPassingSpace(input, [parameterStart, ...ends], toContent);
  }
  if (tag === undefined) return problem ?? "the call is not closed";
  if (tag === functionEnd) {
    yield* takeSpace(input);
    yield* takeText(input, callEnd);
  }
  return problem;
}

export const qwen3CoderFormat: ToolFormat = {
  name: "qwen3_coder",
  markers: [callStart, callEnd],
  machine,
  layout: {
    begin: (name) => [literalSpec(`${callStart}\n${functionStart}${name}>\n`)],
    end: `${functionEnd}\n${callEnd}`,
    separator: "\n",
    trigger: callStart,
    bareTrigger: functionStart,
    notation: {
      before: (key) => `${parameterStart}${key}>\n`,
      after: `\n${parameterEnd}\n`,
      separator: "",
      textEnds: [parameterEnd, parameterStart, functionEnd, callEnd],
      any: anyNumberOf(
        inSequence(
          literalSpec(parameterStart),
          regexSpec("[\\w.-]{1,64}"),
          literalSpec(">\n"),
          { kind: "any_text", until: parameterEnd },
          literalSpec("\n"),
        ),
      ),
    },
  },
};
