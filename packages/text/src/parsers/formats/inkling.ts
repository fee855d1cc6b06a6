import { literalSpec } from "../shared/grammar-specs.js";
import type { OutputMachine, MachineContext, ToolFormat } from "../machine.js";
import type { Waiting } from "../shared/input.js";
import { readJsonCalls } from "../shared/json-calls.js";
import { readUntilTag, untilTag } from "../shared/tags.js";

const message = "<|message_model|>";
const text = "<|content_text|>";
const thinking = "<|content_thinking|>";
const call = "<|content_invoke_tool_json|>";
const callText = "<|content_invoke_tool_text|>";
const error = "<|content_tool_error|>";
const end = "<|end_message|>";
const endSampling = "<|content_model_end_sampling|>";
const markers = [message, text, thinking, call, callText, error, end, endSampling];
const maxHeaderLength = 256;

/**
 * Blocks, each behind the tag of its kind: reasoning, text, or a call as `{"name": ..., "args": {...}}`. The prompt ends in
 * `<|message_model|>`, behind which a tool's name may stand. Format: vLLM 0.33's parser for Inkling.
 */
const machine: OutputMachine = function* (context) {
  const { input, sink } = context;
  for (;;) {
    const { text: header, tag } = yield* readUntilTag(input, markers, maxHeaderLength);
    // what no block follows, or is no tool's name, is text
    const isText = tag === undefined || tag === end || tag === endSampling || !/^[\w.:-]*$/.test(header);
    if (isText) sink.content(header);
    else if (header !== "") sink.ignore(header);
    if (tag === undefined && header.length < maxHeaderLength) return;
    if (tag !== end && tag !== endSampling && tag !== message) yield* readBlock(context, tag ?? text);
  }
};

function* readBlock(context: MachineContext, kind: string): Waiting {
  const { input, sink } = context;
  if (kind === call) {
    yield* readJsonCalls(context, call, [], [end, endSampling]);
    return;
  }
  const isReasoning = kind === thinking;
  if (isReasoning) sink.beginReasoning(input.offset);
  const last = yield* untilTag(input, markers, (piece) =>
    isReasoning ? sink.reasoning(piece) : sink.content(piece),
  );
  if (isReasoning) sink.endReasoning(input.offset - (last?.length ?? 0));
  // a block that is not closed ends where the next begins
  if (last !== undefined && last !== end && last !== endSampling) input.unread(last);
}

export const inklingFormat: ToolFormat = {
  name: "inkling",
  markers,
  machine,
  reasoning: { name: "inkling", startTags: [thinking], endTags: [end], beginsOpen: false },
  layout: {
    begin: (name) => [literalSpec(`${call}{"name": ${JSON.stringify(name)}, "args": `)],
    end: `}${end}`,
    separator: message,
    trigger: call,
  },
};
