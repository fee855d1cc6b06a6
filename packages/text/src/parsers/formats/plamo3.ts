import { literalSpec } from "../shared/grammar-specs.js";
import type { MachineContext, ToolFormat } from "../machine.js";
import { readCallArguments } from "../shared/call-arguments.js";
import { takeSpace, type Waiting } from "../shared/input.js";
import { closeMarkup } from "../shared/json-calls.js";
import { sectionedCalls } from "../shared/sectioned-calls.js";
import { readUntilTag, takeText } from "../shared/tags.js";

const tag = (name: string): string => `<|plamo:${name}:plamo|>`;
const sectionStart = tag("begin_tool_requests");
const sectionEnd = tag("end_tool_requests");
const callStart = tag("begin_tool_request") + tag("begin_tool_name");
const nameEnd = tag("end_tool_name");
const argumentsStart = `${tag("begin_tool_arguments")}<|plamo:constrain|>json<|plamo:msg|>`;
const argumentsEnd = tag("end_tool_arguments");
const callEnd = tag("end_tool_request");
const maxNameLength = 512;

function* readCall({ input, sink }: MachineContext): Waiting {
  const { text, tag: end } = yield* readUntilTag(input, [nameEnd, callEnd], maxNameLength);
  const name = text.trim();
  const space = end === nameEnd ? yield* takeSpace(input) : "";
  if (name === "" || !(yield* takeText(input, argumentsStart))) {
    sink.content(callStart + text + (end ?? "") + space);
    return;
  }
  sink.beginCall(name);
  const ends = [argumentsEnd, callEnd];
  const last =
    (yield* readCallArguments(input, sink, ends)) ?? (yield* closeMarkup({ input, sink }, ends, ends));
  if (last !== argumentsEnd) return;
  yield* takeSpace(input);
  yield* takeText(input, callEnd);
}

/** Between section tags, per call: the name and JSON arguments in tags of their own. Format: vLLM 0.33's parser for PLaMo 3. */
export const plamo3Format: ToolFormat = {
  name: "plamo3",
  markers: [
    ...["begin_tool_requests", "end_tool_requests", "begin_tool_request", "end_tool_request"].map(tag),
    ...["begin_tool_name", "end_tool_name", "begin_tool_arguments", "end_tool_arguments"].map(tag),
    "<|plamo:constrain|>",
    "<|plamo:msg|>",
    "<|plamo:begin_",
    "<|plamo:end_",
    ":plamo|>",
  ],
  machine: sectionedCalls({ sectionStart, sectionEnd, callStart, needsSection: true }, readCall),
  layout: {
    open: sectionStart,
    close: sectionEnd,
    begin: (name) => [literalSpec(callStart + name + nameEnd + argumentsStart)],
    end: argumentsEnd + callEnd,
    separator: "",
    trigger: sectionStart,
  },
};
