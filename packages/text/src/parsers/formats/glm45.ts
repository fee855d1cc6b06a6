import { anyNumberOf, inSequence, literalSpec, regexSpec } from "../shared/grammar-specs.js";
import type { OutputMachine, MachineContext, ToolFormat } from "../machine.js";
import type { Waiting } from "../shared/input.js";
import { sectionedCalls } from "../shared/sectioned-calls.js";
import { readUntilTag, untilTag, untilTagPassingSpace } from "../shared/tags.js";
import { valueKind } from "../shared/tool-schemas.js";
import { ArgumentsWriter, readTypedValue } from "../shared/typed-parameters.js";

const callStart = "<tool_call>";
const callEnd = "</tool_call>";
const keyStart = "<arg_key>";
const keyEnd = "</arg_key>";
const valueStart = "<arg_value>";
const valueEnd = "</arg_value>";
/** Written behind names by Hunyuan 3. */
const nameEnd = "<tool_sep>";
const maxNameLength = 512;

/**
 * `<tool_call>name`, then `<arg_key>key</arg_key><arg_value>value</arg_value>` per argument, `</tool_call>`; strings as plain
 * text, other values as JSON; the tool's schema says which. Format: the chat template of zai-org/GLM-4.5.
 */
const machine: OutputMachine = function* (context) {
  const { input, sink } = context;
  while ((yield* untilTag(input, [callStart], (text) => sink.content(text))) !== undefined)
    yield* readCall(context);
};

function* readCall(context: MachineContext): Waiting {
  const { input, sink } = context;
  const { text, tag } = yield* readUntilTag(input, [keyStart, callEnd], maxNameLength);
  const name = text.replace(nameEnd, "").trim();
  if (tag === undefined || name === "" || /\s/.test(name)) {
    sink.content(callStart + text + (tag ?? ""));
    return;
  }
  sink.beginCall(name);
  const writer = new ArgumentsWriter(sink);
  const problem = yield* readPairs(context, name, writer, tag);
  writer.end();
  sink.endCall(problem);
}

function* readPairs(
  { input, sink, schemas }: MachineContext,
  name: string,
  writer: ArgumentsWriter,
  first: string,
): Waiting<string | undefined> {
  const toContent = (text: string): void => sink.content(text);
  let tag: string | undefined = first;
  while (tag === keyStart) {
    const { text, tag: close } = yield* readUntilTag(input, [keyEnd, callEnd], maxNameLength);
    const key = text.trim();
    const opening: string | undefined =
      close === keyEnd
        ? yield* untilTagPassingSpace(input, [valueStart, keyStart, callEnd], toContent)
        : close;
    if (opening !== valueStart) {
      toContent(keyStart + text);
      return `the argument ${JSON.stringify(key.slice(0, 64))} has no value`;
    }
    writer.key(key);
    const kind = valueKind(schemas, name, key);
    const endTags = [valueEnd, callEnd];
    if ((yield* readTypedValue(input, writer, { kind, endTags, trimsLineBreaks: false })) !== valueEnd)
      return `the argument ${JSON.stringify(key.slice(0, 64))} is not closed`;
    tag = yield* untilTagPassingSpace(input, [keyStart, callEnd], toContent);
  }
  return tag === undefined ? "the call is not closed" : undefined;
}

export const glm45Format = {
  name: "glm45",
  markers: [callStart, callEnd, keyStart, keyEnd, valueStart, valueEnd],
  machine,
  layout: {
    begin: (name) => [literalSpec(`${callStart}${name}\n`)],
    end: callEnd,
    separator: "\n",
    trigger: callStart,
    notation: {
      before: (key) => `${keyStart}${key}${keyEnd}\n${valueStart}`,
      after: `${valueEnd}\n`,
      separator: "",
      textEnds: [valueEnd, callEnd],
      any: anyNumberOf(
        inSequence(
          literalSpec(keyStart),
          regexSpec("[\\w.-]{1,64}"),
          literalSpec(`${keyEnd}\n${valueStart}`),
          { kind: "any_text", until: valueEnd },
          literalSpec("\n"),
        ),
      ),
    },
  },
} satisfies ToolFormat;

const callsStart = "<tool_calls>";
const callsEnd = "</tool_calls>";

/** As GLM's, all calls of an answer between `<tool_calls>` and `</tool_calls>`. Format: the chat template of tencent/Hy3-preview. */
export const hyV3Format: ToolFormat = {
  name: "hy_v3",
  markers: [...glm45Format.markers, callsStart, callsEnd, nameEnd],
  machine: sectionedCalls(
    { sectionStart: callsStart, sectionEnd: callsEnd, callStart, needsSection: true },
    readCall,
  ),
  layout: {
    ...glm45Format.layout,
    open: `${callsStart}\n`,
    close: `\n${callsEnd}`,
    begin: (name) => [literalSpec(`${callStart}${name}${nameEnd}\n`)],
    trigger: callsStart,
  },
};
