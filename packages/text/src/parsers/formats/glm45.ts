import { anyNumberOf, inSequence, literalSpec, regexSpec } from "../shared/grammar-specs.js";
import type { CallLayout, MachineContext, OutputMachine, ToolFormat } from "../machine.js";
import type { Waiting } from "../shared/input.js";
import { sectionedCalls } from "../shared/sectioned-calls.js";
import { readUntilTag, untilTag, untilTagPassingSpace } from "../shared/tags.js";
import { valueKind } from "../shared/tool-schemas.js";
import { ArgumentsWriter, readTypedValue } from "../shared/typed-parameters.js";

interface PairTags {
  readonly callStart: string;
  readonly callEnd: string;
  readonly keyStart: string;
  readonly keyEnd: string;
  /** Left out where the end of the key begins the value. */
  readonly valueStart?: string;
  readonly valueEnd: string;
}

/** Written behind names by Hunyuan 3. */
const nameEnd = "<tool_sep>";
const maxNameLength = 512;

function machineOf(tags: PairTags): OutputMachine {
  return function* (context) {
    const { input, sink } = context;
    while ((yield* untilTag(input, [tags.callStart], (text) => sink.content(text))) !== undefined)
      yield* readCall(context, tags);
  };
}

function* readCall(context: MachineContext, tags: PairTags): Waiting {
  const { input, sink } = context;
  const { text, tag } = yield* readUntilTag(input, [tags.keyStart, tags.callEnd], maxNameLength);
  const name = text.replace(nameEnd, "").trim();
  if (tag === undefined || name === "" || /\s/.test(name)) {
    sink.content(tags.callStart + text + (tag ?? ""));
    return;
  }
  sink.beginCall(name);
  const writer = new ArgumentsWriter(sink);
  const problem = yield* readPairs(context, tags, name, writer, tag);
  writer.end();
  sink.endCall(problem);
}

function* readPairs(
  { input, sink, schemas }: MachineContext,
  { callEnd, keyStart, keyEnd, valueStart, valueEnd }: PairTags,
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
      close === keyEnd && valueStart !== undefined
        ? yield* untilTagPassingSpace(input, [valueStart, keyStart, callEnd], toContent)
        : close;
    if (opening !== (valueStart ?? keyEnd)) {
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

function layoutOf({ callStart, callEnd, keyStart, keyEnd, valueStart, valueEnd }: PairTags): CallLayout {
  const keyClose = valueStart === undefined ? keyEnd : `${keyEnd}\n${valueStart}`;
  return {
    begin: (name) => [literalSpec(`${callStart}${name}\n`)],
    end: callEnd,
    separator: "\n",
    trigger: callStart,
    notation: {
      before: (key) => `${keyStart}${key}${keyClose}`,
      after: `${valueEnd}\n`,
      separator: "",
      textEnds: [valueEnd, callEnd],
      any: anyNumberOf(
        inSequence(
          literalSpec(keyStart),
          regexSpec("[\\w.-]{1,64}"),
          literalSpec(keyClose),
          { kind: "any_text", until: valueEnd },
          literalSpec("\n"),
        ),
      ),
    },
  };
}

const glmTags: PairTags = {
  callStart: "<tool_call>",
  callEnd: "</tool_call>",
  keyStart: "<arg_key>",
  keyEnd: "</arg_key>",
  valueStart: "<arg_value>",
  valueEnd: "</arg_value>",
};

/**
 * `<tool_call>name`, then `<arg_key>key</arg_key><arg_value>value</arg_value>` per argument, `</tool_call>`; strings as plain
 * text, other values as JSON; the tool's schema says which. Format: the chat template of zai-org/GLM-4.5.
 */
export const glm45Format: ToolFormat = {
  name: "glm45",
  markers: Object.values(glmTags),
  machine: machineOf(glmTags),
  layout: layoutOf(glmTags),
};

const solarTags: PairTags = {
  callStart: "<|tool_call:start|>",
  callEnd: "<|tool_call:end|>",
  keyStart: "<|tool_arg:start|>",
  keyEnd: "<|tool_arg:value|>",
  valueEnd: "<|tool_arg:end|>",
};

/** As GLM's, with other tags. Format: the chat template of upstage/Solar-Open-2. */
export const solarOpen2Format: ToolFormat = {
  name: "solar_open2",
  markers: Object.values(solarTags),
  machine: machineOf(solarTags),
  layout: layoutOf(solarTags),
};

const section = { sectionStart: "<tool_calls>", sectionEnd: "</tool_calls>" } as const;

/** As GLM's, all calls of an answer between `<tool_calls>` and `</tool_calls>`. Format: the chat template of tencent/Hy3-preview. */
export const hyV3Format: ToolFormat = {
  name: "hy_v3",
  markers: [...glm45Format.markers, ...Object.values(section), nameEnd],
  machine: sectionedCalls(
    { ...section, callStart: glmTags.callStart, needsSection: true },
    (context: MachineContext) => readCall(context, glmTags),
  ),
  layout: {
    ...layoutOf(glmTags),
    open: `${section.sectionStart}\n`,
    close: `\n${section.sectionEnd}`,
    begin: (name) => [literalSpec(`${glmTags.callStart}${name}${nameEnd}\n`)],
    trigger: section.sectionStart,
  },
};
