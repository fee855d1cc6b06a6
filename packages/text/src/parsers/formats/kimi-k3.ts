import type { MachineContext, ToolFormat } from "../machine.js";
import type { Waiting } from "../shared/input.js";
import { sectionedCalls } from "../shared/sectioned-calls.js";
import { readUntilTag, untilTagPassingSpace } from "../shared/tags.js";
import { ArgumentsWriter, readTypedValue } from "../shared/typed-parameters.js";

const open = (element: string): string => `<|open|>${element}`;
const close = (element: string): string => `<|close|>${element}<|sep|>`;
const headEnd = "<|sep|>";
const sectionStart = open("tools") + headEnd;
const sectionEnd = close("tools");
const callStart = open("call ");
const callEnd = close("call");
const argumentStart = open("argument ");
const argumentEnd = close("argument");
const maxHeadLength = 1024;

function attribute(head: string, name: string): string {
  const value = new RegExp(`(?:^|\\s)${name}="([^"]*)"`).exec(head)?.[1] ?? "";
  return value.replaceAll("&quot;", '"').replaceAll("&amp;", "&");
}

function* readCall({ input, sink }: MachineContext): Waiting {
  const { text, tag } = yield* readUntilTag(input, [headEnd, callEnd, sectionEnd], maxHeadLength);
  const name = attribute(text, "tool");
  if (tag !== headEnd || name === "") {
    sink.content(callStart + text + (tag ?? ""));
    return;
  }
  sink.beginCall(name);
  const writer = new ArgumentsWriter(sink);
  const problem = yield* readArgumentElements(input, writer, (stray) => sink.ignore(stray));
  writer.end();
  sink.endCall(problem);
}

function* readArgumentElements(
  input: MachineContext["input"],
  writer: ArgumentsWriter,
  ignore: (text: string) => void,
): Waiting<string | undefined> {
  const tags = [argumentStart, callEnd, sectionEnd];
  for (;;) {
    const tag = yield* untilTagPassingSpace(input, tags, ignore);
    if (tag === sectionEnd) input.unread(tag);
    if (tag !== argumentStart) return tag === callEnd ? undefined : "the call is not closed";
    const { text, tag: end } = yield* readUntilTag(input, [headEnd], maxHeadLength);
    if (end === undefined) {
      ignore(text);
      return "an argument's name is not closed";
    }
    const key = attribute(text, "key");
    writer.key(key);
    const kind = attribute(text, "type") === "string" ? "text" : "json";
    const endTags = [argumentEnd, callEnd];
    if ((yield* readTypedValue(input, writer, { kind, endTags, trimsLineBreaks: false })) !== argumentEnd)
      return `the argument ${JSON.stringify(key.slice(0, 64))} is not closed`;
  }
}

/**
 * `<|open|>tools<|sep|>`, per call `<|open|>call tool="name" index="1"<|sep|>` and its arguments, each in an element that says
 * its type; strings as plain text, other values as JSON. Forced calls cannot be written so: the grammar would have to know a
 * value's type before it begins. Format: vLLM 0.33's parser for Kimi K3.
 */
export const kimiK3Format: ToolFormat = {
  name: "kimi_k3",
  markers: ["<|open|>", "<|close|>", headEnd],
  callStarts: [sectionStart],
  machine: sectionedCalls({ sectionStart, sectionEnd, callStart, needsSection: true }, readCall),
};
