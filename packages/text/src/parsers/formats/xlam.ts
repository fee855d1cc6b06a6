import type { OutputMachine, ToolFormat } from "../machine.js";
import { takeSpace } from "../shared/input.js";
import { jsonArrayLayout, readJsonCalls, taggedJsonCalls } from "../shared/json-calls.js";

const startTags = ["<tool_call>", "[TOOL_CALLS]", "```json"];
const endTags = ["</tool_call>"];

/**
 * `[{"name": ..., "arguments": {...}}, ...]` as the answer, or behind one of several tags. Format: the model cards of
 * Salesforce's xLAM 2 models.
 */
const machine: OutputMachine = function* (context) {
  const { input, sink } = context;
  const lead = yield* takeSpace(input);
  if ((yield* input.peek()) !== "[") sink.content(lead);
  else input.unread((yield* readJsonCalls(context, lead, startTags, endTags)) ?? "");
  yield* taggedJsonCalls(startTags, endTags)(context);
};

export const xlamFormat: ToolFormat = {
  name: "xlam",
  markers: [],
  callStarts: ["<tool_call>", "[TOOL_CALLS]"],
  machine,
  layout: {
    ...jsonArrayLayout(""),
    beginsAnswer: "(?:\\[|[\\s\\S]*(?:<tool_call>|\\[TOOL_CALLS\\]|```json))",
  },
};
