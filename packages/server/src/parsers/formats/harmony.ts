import type { Machine, MachineContext, ToolFormat } from "../machine.js";
import type { EventSink } from "../output-events.js";
import type { Input, Waiting } from "../shared/input.js";
import { readCallArguments } from "../shared/call-arguments.js";
import { nextPiece, takeText, untilTag } from "../shared/tags.js";

const start = "<|start|>";
const channelTag = "<|channel|>";
const constrain = "<|constrain|>";
const message = "<|message|>";
const end = "<|end|>";
const call = "<|call|>";
const done = "<|return|>";
const bodyEnds = [end, call, done, start, channelTag];
const maxHeaderLength = 1024;

/**
 * gpt-oss' messages: a header (channel, recipient, type of content), `<|message|>`, a body and its end. The channel `analysis` is
 * reasoning, `final` and a `commentary` without recipient are content, a recipient `functions.NAME` is a call with the body
 * as its arguments. Format: OpenAI's "Harmony response format" guide.
 */
const machine: Machine = function* (context) {
  const { input, sink } = context;
  const toContent = (text: string): void => sink.content(text);
  // the prompt ends in `<|start|>assistant`, so that an answer begins inside a header
  const lead = (yield* takeText(input, channelTag))
    ? channelTag
    : (yield* takeText(input, " to="))
      ? " to="
      : "";
  input.unread(lead);
  let isHeader = lead !== "";
  for (;;) {
    if (!isHeader) {
      const tag = yield* untilTag(input, [start, channelTag], toContent);
      if (tag === undefined) return;
      input.unread(tag);
    }
    isHeader = yield* readMessage(context);
  }
};

/** Everything a header consists of; the type of content may stand without its tag. */
const headerParts =
  /<\|(?:start|message)\|>|(?<=<\|start\|>)assistant|<\|channel\|>\s*(?:(?:analysis|commentary|final)\b)?|(?:^|\s|(?<=>))to=[^\s<]+|<\|constrain\|>|\bjson\b/g;

/** One message; returns whether another one's header follows at once. */
function* readMessage({ input, sink }: MachineContext): Waiting<boolean> {
  let raw = "";
  let header = "";
  while (!header.endsWith(message)) {
    const piece = yield* nextPiece(input, [start, channelTag, constrain, message, end, call, done]);
    const isBroken = piece === "" || piece === end || piece === call || piece === done;
    if (isBroken || raw.length > maxHeaderLength) {
      sink.content(raw + piece);
      return false;
    }
    raw += piece;
    header += piece;
  }
  const channel = /<\|channel\|>\s*(\w+)/.exec(header)?.[1] ?? "final";
  const recipient = /(?:^|\s|>)to=([^\s<]+)/.exec(header)?.[1];
  const unknown = header.replace(headerParts, "").trim();
  if (unknown !== "") sink.ignore(unknown);
  let tag: string | undefined;
  if (recipient !== undefined && recipient !== "assistant" && recipient !== "user") {
    sink.beginCall(recipient.replace(/^functions\.(?=.)/, ""));
    tag = yield* readCallArguments(input, sink, bodyEnds);
    if (tag === undefined) tag = yield* untilTag(input, bodyEnds, (text) => sink.content(text));
  } else {
    tag = channel === "analysis" ? yield* readReasoning(input, sink) : yield* readContent(input, sink);
  }
  if (tag !== start && tag !== channelTag) return false;
  input.unread(tag);
  return true;
}

function* readReasoning(input: Input, sink: EventSink): Waiting<string | undefined> {
  if (sink.hasReasoning) sink.reasoning("\n");
  sink.beginReasoning(input.offset);
  const tag = yield* untilTag(input, bodyEnds, (text) => sink.reasoning(text));
  sink.endReasoning(input.offset - (tag?.length ?? 0));
  return tag;
}

function* readContent(input: Input, sink: EventSink): Waiting<string | undefined> {
  if (sink.hasContent) sink.content("\n");
  return yield* untilTag(input, bodyEnds, (text) => sink.content(text));
}

export const harmony: ToolFormat = {
  name: "openai",
  markers: [start, channelTag, constrain, message, end, call, done],
  machine,
};
