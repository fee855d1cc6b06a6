import type { OutputMachine, MachineContext, ToolFormat } from "../machine.js";
import type { Waiting } from "../shared/input.js";
import { type ParameterTags, readFunction } from "../shared/tagged-parameters.js";
import { readUntilTag, takeText, untilTag, untilTagPassingSpace } from "../shared/tags.js";
import { invokeTags } from "./tagged-parameters.js";

const start = "<|start|>";
const message = "<|message|>";
const end = "<|eom|>";
const endOfTurn = "<|eot|>";
const bodyEnds = [end, endOfTurn, start, message];
const maxHeaderLength = 256;
const tags: ParameterTags = { open: "", close: end, ...invokeTags("atem:") };

/** What may become the header of the next message, where the model leaves out the end of this one. */
const headerTail = /(?:^|\s)(?:t|to|to=[\w.-]*)?$/;
const recipientOf = (header: string): string => /(?:^|\s)to=([^\s<]+)\s*$/.exec(header)?.[1] ?? "";

/** Where messages go by their recipient; any other recipient is a tool. "": no recipient. */
type Recipients = Readonly<Record<string, "reasoning" | "content" | "nowhere">>;

/**
 * Messages: a header with a recipient, `<|message|>`, a body, its end. `to=self` is reasoning, `to=user` content; in bodies to
 * tools, `<atem:invoke name="name"><atem:parameter name="key">value</atem:parameter></atem:invoke>` is a call, and nowhere else.
 * Format: vLLM 0.33's parser for Muse.
 */
function machineOf(recipients: Recipients): OutputMachine {
  return function* (context) {
    const { input, sink } = context;
    const lead = [start, " to=", "to=", message];
    let isHeader = false;
    for (const text of lead) {
      if (!(yield* takeText(input, text))) continue;
      input.unread(text);
      isHeader = true;
      break;
    }
    // without messages, as where special tokens are lost, all of it is content and calls
    let recipient: string | undefined = isHeader
      ? yield* readHeader(context)
      : yield* readCalls(context, true);
    while (recipient !== undefined) {
      const goesTo = Object.hasOwn(recipients, recipient) ? recipients[recipient] : "tool";
      if (goesTo === "reasoning") sink.beginReasoning(input.offset);
      const write = (text: string): void => {
        if (goesTo === "reasoning") sink.reasoning(text);
        else if (goesTo === "content") sink.content(text);
        else sink.ignore(text);
      };
      recipient = goesTo === "tool" ? yield* readCalls(context, false) : yield* readBody(context, write);
      if (goesTo === "reasoning") sink.endReasoning(input.offset);
    }
  };
}

/** The next message's recipient; undefined at the end of the output. */
function* readHeader({ input, sink }: MachineContext): Waiting<string | undefined> {
  for (;;) {
    const { text, tag } = yield* readUntilTag(input, [message, end, endOfTurn], maxHeaderLength);
    if (tag === message) return recipientOf(text);
    if (text.trim() !== "") sink.content(text);
    if (tag === undefined && text.length < maxHeaderLength) return undefined;
  }
}

/** A body of text; returns as `readHeader`. */
function* readBody(context: MachineContext, write: (text: string) => void): Waiting<string | undefined> {
  let held = "";
  const tag = yield* untilTag(context.input, bodyEnds, (text) => {
    held += text;
    const tail = headerTail.exec(held.slice(-maxHeaderLength))?.[0].length ?? 0;
    write(held.slice(0, held.length - tail));
    held = held.slice(held.length - tail);
  });
  if (tag === message) return recipientOf(held);
  write(held);
  return tag === undefined ? undefined : yield* readHeader(context);
}

/** A body of calls; text between them is markup, or content where there are no messages. */
function* readCalls(context: MachineContext, isContent: boolean): Waiting<string | undefined> {
  const { input, sink } = context;
  const markup = ["<atem:function_calls>", "</atem:function_calls>"];
  for (;;) {
    const ends = [tags.functionStart, ...markup, ...bodyEnds];
    const tag = isContent
      ? yield* untilTag(input, ends, (text) => sink.content(text))
      : yield* untilTagPassingSpace(input, ends, (text) => sink.ignore(text));
    if (tag === tags.functionStart) yield* readFunction(context, tags, tag);
    else if (tag === message) return "";
    else if (tag === undefined || bodyEnds.includes(tag))
      return tag === undefined ? undefined : yield* readHeader(context);
  }
}

function formatOf(name: string, recipients: Recipients): ToolFormat {
  return {
    name,
    markers: [start, message, end, endOfTurn],
    callStarts: [],
    machine: machineOf(recipients),
    reasoning: { name, startTags: [`to=self${message}`], endTags: [end], beginsOpen: false },
  };
}

export const museFormat = formatOf("muse", {
  "": "reasoning",
  self: "reasoning",
  user: "content",
  commentary: "content",
  developer: "nowhere",
});

/** As Muse's; what is to nobody goes to the user. */
export const museGlimmerFormat = formatOf("muse_glimmer", {
  "": "content",
  self: "reasoning",
  user: "content",
});
