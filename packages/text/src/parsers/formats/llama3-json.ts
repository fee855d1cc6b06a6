import { literalSpec } from "../shared/grammar-specs.js";
import type { MachineContext, OutputMachine, ToolFormat } from "../machine.js";
import { type Input, takeSpace, type Waiting } from "../shared/input.js";
import { callBeginning, readJsonCall } from "../shared/json-call.js";
import { JsonScanner } from "../shared/json-scanner.js";
import { nextPiece, takeText, untilTag } from "../shared/tags.js";

const pythonTag = "<|python_tag|>";

/**
 * `{"name": ..., "parameters": {...}}` as the answer, behind `<|python_tag|>` or in the middle of text; several are separated
 * by `;`. Format: Meta's Llama 3.1 prompt format ("JSON based tool calling"). Any other JSON is content.
 */
const machine: OutputMachine = function* (context) {
  const { input, sink } = context;
  let lead = yield* takeSpace(input);
  for (;;) {
    if (yield* takeText(input, pythonTag)) lead += pythonTag + (yield* takeSpace(input));
    if ((yield* input.peek()) !== "{") sink.content(lead);
    else if (yield* readObject(context, lead)) {
      lead = yield* takeSeparators(input);
      continue;
    }
    lead = "";
    const next = yield* untilTag(input, [pythonTag], (text) => sink.content(text), "{");
    if (next === undefined) return;
    input.unread(next);
  }
};

/** Reads a call. Any other object is content, calls inside it too; the result is then false. */
function* readObject({ input, sink }: MachineContext, lead: string): Waiting<boolean> {
  const result = yield* readJsonCall(input, sink, { endTags: [pythonTag], isBare: true });
  if (result.tag !== undefined) input.unread(result.tag);
  if (result.isCall) return true;
  sink.content(lead + result.raw);
  const scanner = new JsonScanner();
  let isInside = result.raw.split("").every((unit) => scanner.push(unit) === "inside");
  while (isInside && scanner.problem === undefined) {
    const piece = scanner.isInString ? yield* input.next() : yield* nextPiece(input, [pythonTag]);
    if (piece.length !== 1) {
      input.unread(piece);
      return false;
    }
    isInside = scanner.push(piece) === "inside";
    sink.content(piece);
  }
  return false;
}

function* takeSeparators(input: Input): Waiting<string> {
  const before = yield* takeSpace(input);
  if (!(yield* takeText(input, ";"))) return before;
  return yield* takeSpace(input);
}

export const llama3JsonFormat: ToolFormat = {
  name: "llama3_json",
  markers: [pythonTag],
  callStarts: [pythonTag],
  machine,
  layout: {
    begin: (name) => [literalSpec(`{"name": ${JSON.stringify(name)}, "parameters": `)],
    end: "}",
    separator: "; ",
    beginsAnswer: `(?:\\{|<\\|python_tag\\|>|[\\s\\S]*${callBeginning})`,
  },
};
