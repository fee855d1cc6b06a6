import { anyNumberOf, inSequence, literalSpec, regexSpec } from "../shared/grammar-specs.js";
import type { CallLayout, MachineContext, OutputMachine, ToolFormat } from "../machine.js";
import { takeSpace, type Waiting } from "../shared/input.js";
import { readJsonCalls } from "../shared/json-calls.js";
import { sectionedCalls } from "../shared/sectioned-calls.js";
import { readUntilTag, untilTag, untilTagPassingSpace } from "../shared/tags.js";
import { valueKind } from "../shared/tool-schemas.js";
import { ArgumentsWriter, readTypedValue } from "../shared/typed-parameters.js";

interface PairTags {
  readonly callStart: string;
  readonly callEnd: string;
  /** Behind names, where the template writes it. */
  readonly nameEnd?: string;
  readonly keyStart: string;
  readonly keyEnd: string;
  /** Around the value's type, which some templates write between key and value. */
  readonly typeStart?: string;
  readonly typeEnd?: string;
  /** Left out where the end of the key begins the value. */
  readonly valueStart?: string;
  readonly valueEnd: string;
  /** A call may be a JSON object in place of a name and pairs. */
  readonly readsJson?: boolean;
}

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
  const space = yield* takeSpace(input);
  if (tags.readsJson === true && (yield* input.peek()) === "{") {
    yield* readJsonCalls(context, tags.callStart + space, [], [tags.callEnd]);
    return;
  }
  input.unread(space);
  const { text, tag } = yield* readUntilTag(input, [tags.keyStart, tags.callEnd], maxNameLength);
  const name = text.replace(tags.nameEnd ?? "", "").trim();
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
  { callEnd, keyStart, keyEnd, typeStart, typeEnd, valueStart, valueEnd }: PairTags,
  name: string,
  writer: ArgumentsWriter,
  first: string,
): Waiting<string | undefined> {
  const toContent = (text: string): void => sink.content(text);
  let tag: string | undefined = first;
  while (tag === keyStart) {
    const { text, tag: close } = yield* readUntilTag(input, [keyEnd, callEnd], maxNameLength);
    const key = text.trim();
    let opening: string | undefined = close;
    if (close === keyEnd && valueStart !== undefined) {
      const openings = [valueStart, keyStart, callEnd];
      opening = yield* untilTagPassingSpace(input, [...openings, ...[typeStart ?? []].flat()], toContent);
      if (opening !== undefined && opening === typeStart && typeEnd !== undefined) {
        const { text: type } = yield* readUntilTag(input, [typeEnd], maxNameLength);
        if (!/^[\w[\], ]*$/.test(type)) sink.ignore(type);
        opening = yield* untilTagPassingSpace(input, openings, toContent);
      }
    }
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

function layoutOf(tags: PairTags): CallLayout {
  const { callStart, callEnd, nameEnd = "", keyStart, keyEnd, valueStart, valueEnd } = tags;
  const keyClose = valueStart === undefined ? keyEnd : `${keyEnd}\n${valueStart}`;
  return {
    begin: (name) => [literalSpec(`${callStart}${name}${nameEnd}\n`)],
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

const glmTags = {
  callStart: "<tool_call>",
  callEnd: "</tool_call>",
  keyStart: "<arg_key>",
  keyEnd: "</arg_key>",
  valueStart: "<arg_value>",
  valueEnd: "</arg_value>",
} satisfies PairTags;

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

const solarTags = {
  callStart: "<|tool_call:start|>",
  callEnd: "<|tool_call:end|>",
  keyStart: "<|tool_arg:start|>",
  keyEnd: "<|tool_arg:value|>",
  valueEnd: "<|tool_arg:end|>",
} satisfies PairTags;

/** As GLM's, with other tags. Format: the chat template of upstage/Solar-Open-2. */
export const solarOpen2Format: ToolFormat = {
  name: "solar_open2",
  markers: Object.values(solarTags),
  machine: machineOf(solarTags),
  layout: layoutOf(solarTags),
};

/** All calls of an answer between two tags. */
function sectionFormat(
  name: string,
  tags: PairTags,
  [sectionStart, sectionEnd]: readonly [start: string, end: string],
): ToolFormat {
  const section = { sectionStart, sectionEnd, callStart: tags.callStart, needsSection: true };
  const markers = Object.values(tags).filter((tag) => typeof tag === "string");
  return {
    name,
    markers: [...markers, sectionStart, sectionEnd],
    machine: sectionedCalls(section, (context: MachineContext) => readCall(context, tags)),
    layout: {
      ...layoutOf(tags),
      open: `${sectionStart}\n`,
      close: `\n${sectionEnd}`,
      trigger: sectionStart,
    },
  };
}

/**
 * As GLM's, all calls of an answer between `<tool_calls>` and `</tool_calls>`; Hunyuan 3 ends names with a tag too. `suffix`: what
 * a checkpoint's tags end in, such as `:6124c78e`. Format: the chat template of tencent/Hy3-preview.
 */
export function hunyuanFormat(name: "hy_v3" | "hy_v4", suffix = ""): ToolFormat {
  const suffixed = (tag: string): string => tag.replace(">", `${suffix}>`);
  const entries = Object.entries(glmTags).map(([key, tag]) => [key, suffixed(tag)]);
  const tags = Object.fromEntries(entries) as Record<keyof typeof glmTags, string>;
  const section = [suffixed("<tool_calls>"), suffixed("</tool_calls>")] as const;
  return sectionFormat(name, name === "hy_v3" ? { ...tags, nameEnd: suffixed("<tool_sep>") } : tags, section);
}

/** With types at times, or calls as JSON objects, as the template was asked for. Format: vLLM 0.33's parser for IFM's K2 Horizon. */
export const k2HorizonFormat = sectionFormat(
  "k2_horizon",
  {
    callStart: "<ifm|tool_call>",
    callEnd: "</ifm|tool_call>",
    keyStart: "<ifm|arg_key>",
    keyEnd: "</ifm|arg_key>",
    typeStart: "<ifm|arg_type>",
    typeEnd: "</ifm|arg_type>",
    valueStart: "<ifm|arg_value>",
    valueEnd: "</ifm|arg_value>",
    readsJson: true,
  },
  ["<ifm|tool_calls>", "</ifm|tool_calls>"],
);
