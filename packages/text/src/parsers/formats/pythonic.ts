import { anyNumberOf, inSequence, literalSpec, regexSpec } from "../shared/grammar-specs.js";
import type { CallLayout, OutputMachine, MachineContext, ToolFormat } from "../machine.js";
import { type Input, takeSpace, type Waiting } from "../shared/input.js";
import { readCommaSeparated } from "../shared/comma-separated.js";
import { escapeText } from "../shared/json-text.js";
import { pythonLiteral, pythonName } from "../shared/python-literal.js";
import { takeText, untilTag } from "../shared/tags.js";

/**
 * `[name(key=value, ...), ...]` as the beginning of the answer, values in Python's notation. Format: Meta's Llama 3.2 and 4
 * prompt formats ("zero-shot function calling"), also ToolACE. Llama 4 may put it between `<|python_start|>` and
 * `<|python_end|>`. A bracket without a call is content.
 */
function pythonicMachine(start: string | undefined, end: string | undefined): OutputMachine {
  return function* (context) {
    const { input, sink } = context;
    let held = yield* takeSpace(input);
    if (start !== undefined && (yield* takeText(input, start))) held += start + (yield* takeSpace(input));
    if (yield* takeText(input, "[")) yield* readCalls(context, `${held}[`, { isList: true });
    else sink.content(held);
    if (end !== undefined && sink.numCalls > 0) {
      yield* takeSpace(input);
      yield* takeText(input, end);
    }
    for (let unit = yield* input.next(); unit !== ""; unit = yield* input.next()) sink.content(unit);
  };
}

/** Calls between tags, anywhere in the answer: in a list, or one behind the other. */
function taggedPythonicMachine(start: string, end: string): OutputMachine {
  return function* (context) {
    const { input, sink } = context;
    const toContent = (text: string): void => sink.content(text);
    while ((yield* untilTag(input, [start], toContent)) !== undefined) {
      const space = yield* takeSpace(input);
      const isList = yield* takeText(input, "[");
      yield* readCalls(context, start + space + (isList ? "[" : ""), { isList, end });
      yield* takeSpace(input);
      yield* takeText(input, end);
    }
  };
}

interface PythonicCalls {
  /** Whether a bracket closes the calls. */
  readonly isList: boolean;
  readonly end?: string;
}

function* readCalls(context: MachineContext, opening: string, calls: PythonicCalls): Waiting {
  const { input, sink } = context;
  const ends = calls.end === undefined ? [] : [calls.end];
  let held = opening;
  for (;;) {
    held += yield* takeSpace(input);
    const name = yield* pythonName(input);
    const begins = name !== "" && (yield* takeText(input, "(")) && (yield* beginsArguments(input, name));
    if (!begins) {
      sink.content(held + name);
      return;
    }
    held = "";
    sink.beginCall(name);
    const problem = yield* readArguments(input, (text) => sink.arguments(text));
    if (problem !== undefined) {
      input.unread((yield* untilTag(input, ends, (text) => sink.arguments(text))) ?? "");
      sink.endCall(`the arguments are not valid: ${problem}`);
      return;
    }
    sink.endCall();
    yield* takeSpace(input);
    if (calls.isList && (yield* takeText(input, "]"))) return;
    if (!(yield* takeText(input, ",")) && calls.isList) return;
    yield* takeSpace(input);
    if (calls.isList && (yield* takeText(input, "]"))) return;
    if (!calls.isList && !(yield* beginsName(input))) return;
  }
}

function* beginsName(input: Input): Waiting<boolean> {
  const name = yield* pythonName(input);
  input.unread(name);
  return name !== "";
}

/** After `name(`: a call continues with `)` or `key=`. Otherwise the parenthesis is unread and nothing is consumed. */
function* beginsArguments(input: Input, name: string): Waiting<boolean> {
  const space = yield* takeSpace(input);
  const unit = yield* input.peek();
  if (unit === ")") {
    input.unread(space);
    return true;
  }
  const key = yield* pythonName(input);
  const more = yield* takeSpace(input);
  const isCall = key !== "" && name !== "" && (yield* input.peek()) === "=";
  input.unread(`${isCall ? "" : "("}${space}${key}${more}`);
  return isCall;
}

function readArguments(input: Input, onJson: (text: string) => void): Waiting<string | undefined> {
  function* readArgument(lead: string): Waiting<string | undefined> {
    const key = yield* pythonName(input);
    yield* takeSpace(input);
    if (key === "" || !(yield* takeText(input, "="))) {
      onJson(key);
      return "an argument has no name";
    }
    onJson(`${lead}"${escapeText(key)}": `);
    return yield* pythonLiteral(input, onJson);
  }
  const brackets = { close: ")", json: "{}" } as const;
  return readCommaSeparated(
    input,
    onJson,
    brackets,
    readArgument,
    () => "an argument is not followed by , or )",
  );
}

/** Constrained values are JSON, which the machine reads as well as Python. */
function pythonicLayout(open: string, close = "]", separator = ", "): CallLayout {
  return {
    open,
    close,
    begin: (name) => [literalSpec(`${name}(`)],
    end: ")",
    separator,
    notation: {
      before: (key) => `${key}=`,
      after: "",
      separator: ", ",
      any: anyNumberOf(
        inSequence(regexSpec("[A-Za-z_]\\w{0,63}="), { kind: "json_schema", schema: true }),
        ", ",
      ),
    },
  };
}

export const pythonicFormat: ToolFormat = {
  name: "pythonic",
  markers: [],
  machine: pythonicMachine(undefined, undefined),
  layout: { ...pythonicLayout("["), beginsAnswer: "\\[" },
};

export const llama4PythonicFormat: ToolFormat = {
  name: "llama4_pythonic",
  markers: ["<|python_start|>", "<|python_end|>"],
  machine: pythonicMachine("<|python_start|>", "<|python_end|>"),
  layout: { ...pythonicLayout("<|python_start|>["), beginsAnswer: "(?:\\[|<\\|python_start\\|>)" },
};

/** `<|tool_call_start|>[name(key=value), ...]<|tool_call_end|>`. Format: the chat template of LiquidAI/LFM2. */
export const lfm2Format: ToolFormat = {
  name: "lfm2",
  markers: ["<|tool_call_start|>", "<|tool_call_end|>"],
  machine: taggedPythonicMachine("<|tool_call_start|>", "<|tool_call_end|>"),
  layout: {
    ...pythonicLayout("<|tool_call_start|>[", "]<|tool_call_end|>"),
    trigger: "<|tool_call_start|>",
  },
};

/** `<function_calls>`, a call per line, `</function_calls>`. Format: the chat template of allenai/Olmo-3-7B-Instruct. */
export const olmo3Format: ToolFormat = {
  name: "olmo3",
  markers: ["<function_calls>", "</function_calls>"],
  machine: taggedPythonicMachine("<function_calls>", "</function_calls>"),
  layout: {
    ...pythonicLayout("<function_calls>", "</function_calls>", "\n"),
    trigger: "<function_calls>",
  },
};
