import { literalSpec, regexSpec } from "../shared/grammar-specs.js";
import type { MachineContext, ToolFormat } from "../machine.js";
import { readCallArguments } from "../shared/call-arguments.js";
import type { Waiting } from "../shared/input.js";
import { closeMarkup } from "../shared/json-calls.js";
import { sectionedCalls } from "../shared/sectioned-calls.js";
import { readUntilTag } from "../shared/tags.js";

const sectionStart = "<|tool_calls_section_begin|>";
const sectionEnd = "<|tool_calls_section_end|>";
const callStart = "<|tool_call_begin|>";
const argumentsStart = "<|tool_call_argument_begin|>";
const callEnd = "<|tool_call_end|>";
const maxIdLength = 1024;

/**
 * Between section tags, per call: an id `functions.NAME:INDEX`, the arguments' tag, JSON. The id goes back to the client,
 * since later turns must repeat it. Format: moonshotai/Kimi-K2's tool calling guide and chat template.
 */
const machine = sectionedCalls({ sectionStart, sectionEnd, callStart }, readCall);

function* readCall({ input, sink, schemas }: MachineContext): Waiting {
  const { text, tag } = yield* readUntilTag(input, [argumentsStart, callEnd], maxIdLength);
  const id = text.trim();
  const [only] = schemas.size === 1 ? schemas.keys() : [];
  // some finetunes write only the index
  const name =
    /^\d+$/.test(id) && only !== undefined ? only : id.replace(/^functions\./, "").replace(/:\d+$/, "");
  if (tag !== argumentsStart || name === "") {
    sink.content(callStart + text + (tag ?? ""));
    return;
  }
  sink.beginCall(name, id);
  if ((yield* readCallArguments(input, sink, [callEnd])) === undefined)
    yield* closeMarkup({ input, sink }, [callEnd], [callEnd]);
}

export const kimiK2Format: ToolFormat = {
  name: "kimi_k2",
  markers: [sectionStart, sectionEnd, callStart, argumentsStart, callEnd],
  machine,
  layout: {
    open: sectionStart,
    close: sectionEnd,
    begin: (name) => [
      literalSpec(`${callStart}functions.${name}:`),
      regexSpec("[0-9]{1,3}"),
      literalSpec(argumentsStart),
    ],
    end: callEnd,
    separator: "",
    trigger: sectionStart,
  },
};
