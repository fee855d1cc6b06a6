import { literalSpec } from "../shared/grammar-specs.js";
import type { OutputMachine, ToolFormat } from "../machine.js";
import { takeSpace, type Waiting } from "../shared/input.js";
import { readJsonCall } from "../shared/json-call.js";
import { takeText, untilTag } from "../shared/tags.js";

const pythonTag = "<|python_tag|>";

/**
 * `{"name": ..., "parameters": {...}}` as the whole answer, or behind `<|python_tag|>`; several are separated by `;`. Format:
 * Meta's Llama 3.1 prompt format ("JSON based tool calling"). Any other JSON is content, as is an object in the middle of text.
 */
const machine: OutputMachine = function* ({ input, sink }) {
  const toContent = (text: string): void => sink.content(text);
  let lead = yield* takeSpace(input);
  for (;;) {
    const tag = (yield* takeText(input, pythonTag)) ? pythonTag : "";
    const space = tag === "" ? "" : yield* takeSpace(input);
    let isCall = (yield* input.peek()) === "{";
    if (isCall) {
      const result = yield* readJsonCall(input, sink, { endTags: [pythonTag], isBare: true });
      isCall = result.isCall;
      if (!result.isCall) toContent(lead + tag + space + result.raw);
      if (result.tag !== undefined) input.unread(result.tag);
    } else toContent(lead + tag + space);
    if (isCall) {
      lead = yield* takeSeparators(input);
      continue;
    }
    const next = yield* untilTag(input, [pythonTag], toContent);
    if (next === undefined) return;
    input.unread(next);
    lead = "";
  }
};

function* takeSeparators(input: Parameters<OutputMachine>[0]["input"]): Waiting<string> {
  const before = yield* takeSpace(input);
  if (!(yield* takeText(input, ";"))) return before;
  return yield* takeSpace(input);
}

export const llama3JsonFormat: ToolFormat = {
  name: "llama3_json",
  markers: [pythonTag],
  machine,
  layout: {
    begin: (name) => [literalSpec(`{"name": ${JSON.stringify(name)}, "parameters": `)],
    end: "}",
    separator: "; ",
    beginsAnswer: "(?:\\{|<\\|python_tag\\|>)",
  },
};
