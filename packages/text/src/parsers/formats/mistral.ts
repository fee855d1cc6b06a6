import type { OutputMachine, MachineContext, ToolFormat } from "../machine.js";
import { takeSpace, type Waiting } from "../shared/input.js";
import { readCallArguments } from "../shared/call-arguments.js";
import { jsonArrayLayout, readJsonCalls } from "../shared/json-calls.js";
import { nextPiece, untilTag } from "../shared/tags.js";

const start = "[TOOL_CALLS]";
const idTag = "[CALL_ID]";
const argumentsTag = "[ARGS]";

/**
 * `[TOOL_CALLS][{"name": ..., "arguments": {...}}, ...]` (tokenizers before v11), or `[TOOL_CALLS]name{...}` once per call
 * (v11), with `[CALL_ID]id` and `[ARGS]` before the arguments (v13). Format: mistral-common's documentation of instruct
 * tokenizers.
 */
const machine: OutputMachine = function* (context) {
  const { input, sink } = context;
  const toContent = (text: string): void => sink.content(text);
  let tag = yield* untilTag(input, [start], toContent);
  while (tag === start) {
    const space = yield* takeSpace(input);
    const unit = yield* input.peek();
    if (unit === "[" || unit === "{") {
      input.unread(space);
      tag = yield* readJsonCalls(context, start, [start], []);
    } else tag = yield* readNamedCall(context, start + space);
    if (tag !== start) tag = yield* untilTag(input, [start], toContent);
  }
};

function* readNamedCall({ input, sink }: MachineContext, opening: string): Waiting<string | undefined> {
  let raw = opening;
  let name = "";
  let id: string | undefined;
  while (raw.length < 1024) {
    const piece = yield* nextPiece(input, [start, idTag, argumentsTag]);
    if (piece === "" || piece === start) {
      sink.content(raw);
      return piece === "" ? undefined : start;
    }
    raw += piece;
    if (piece === idTag) id = "";
    else if (piece === argumentsTag || piece === "{") {
      if (!/^[\p{L}\p{N}_.:/-]+$/u.test(name.trim())) break;
      if (piece === "{") input.unread("{");
      sink.beginCall(name.trim(), id?.trim() === "" ? undefined : id?.trim());
      return yield* readCallArguments(input, sink, [start]);
    } else if (id === undefined) name += piece;
    else id += piece;
  }
  sink.content(raw);
  return undefined;
}

export const mistralFormat: ToolFormat = {
  name: "mistral",
  markers: [start, idTag, argumentsTag],
  machine,
  layout: jsonArrayLayout(start, start),
  callIds: "nine-characters",
};
