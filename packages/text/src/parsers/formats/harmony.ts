import type { GrammarSpec } from "../../structured/grammar.js";
import {
  anyNumberOf,
  atMostOne,
  eitherOf,
  inSequence,
  literalSpec,
  regexSpec,
} from "../shared/grammar-specs.js";
import type { OutputMachine, MachineContext, ToolFormat } from "../machine.js";
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
const machine: OutputMachine = function* (context) {
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

/** The known parts of a header; the content type may appear without its tag. */
const headerParts =
  /<\|(?:start|message)\|>|(?<=<\|start\|>)assistant|<\|channel\|>\s*(?:(?:analysis|commentary|final)\b)?|(?:^|\s|(?<=>))to=[^\s<]+|<\|constrain\|>|\bjson\b/g;

/** Reads one message; returns whether the header of another follows immediately. */
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

const markers = [start, channelTag, constrain, message, end, call, done];

/** A message's body: any text without markup, whether as special tokens or as plain characters. */
const body: GrammarSpec = { kind: "schema_text", schema: { type: "string" }, without: markers };
const nextMessage = literalSpec(`${end}${start}assistant`);
const contentType = atMostOne(inSequence(regexSpec(" ?"), literalSpec(constrain), regexSpec("\\w{0,32}")));

/** A message without a recipient up to its body, in one of these channels. */
function heading(channels: string): GrammarSpec {
  return inSequence(literalSpec(channelTag), regexSpec(`(?:${channels})`), contentType, literalSpec(message));
}

const reasoned = anyNumberOf(inSequence(heading("analysis"), body, nextMessage));
const freeMessage = inSequence(heading("analysis|commentary|final"), body);

/** The recipient may precede or follow the channel. */
function callHeading(name: string): readonly GrammarSpec[] {
  const channel = regexSpec("(?:commentary|analysis)");
  const recipient = literalSpec(` to=functions.${name}`);
  return [
    eitherOf(
      inSequence(literalSpec(channelTag), channel, recipient),
      inSequence(recipient, literalSpec(channelTag), channel),
    ),
    eitherOf(inSequence(regexSpec(" ?"), literalSpec(`${constrain}json`)), regexSpec("(?: json)?")),
    literalSpec(message),
  ];
}

/** Any messages whose only calls are these. */
function answerWith(calls: GrammarSpec, mustCall: boolean): GrammarSpec {
  const ended = inSequence(calls, atMostOne(literalSpec(call)));
  if (mustCall) return inSequence(reasoned, ended);
  const others = inSequence(eitherOf(body, freeMessage), anyNumberOf(inSequence(nextMessage, freeMessage)));
  return eitherOf(inSequence(others, atMostOne(inSequence(nextMessage, ended))), ended);
}

export const harmonyFormat: ToolFormat = {
  name: "openai",
  markers,
  machine,
  reasoning: {
    name: "openai_gptoss",
    startTags: [`${channelTag}analysis${message}`],
    endTags: [end],
    beginsOpen: false,
  },
  layout: {
    begin: callHeading,
    end: "",
    separator: `${call}${start}assistant`,
    answer: answerWith,
  },
  content: (content) => eitherOf(content, inSequence(reasoned, heading("final"), content)),
};
