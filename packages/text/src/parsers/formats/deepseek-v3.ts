import { literalSpec } from "../shared/grammar-specs.js";
import type { MachineContext, ToolFormat } from "../machine.js";
import { readCallArguments } from "../shared/call-arguments.js";
import type { Waiting } from "../shared/input.js";
import { closeMarkup } from "../shared/json-calls.js";
import { sectionedCalls } from "../shared/sectioned-calls.js";
import { nextPiece } from "../shared/tags.js";

const sectionStart = "<｜tool▁calls▁begin｜>";
const sectionEnd = "<｜tool▁calls▁end｜>";
const callStart = "<｜tool▁call▁begin｜>";
const callEnd = "<｜tool▁call▁end｜>";
const separator = "<｜tool▁sep｜>";
const maxHeadLength = 1024;

/**
 * Between section tags, per call: `function`, separator, name, a line break and the arguments in a json fence (V3, R1), or
 * name, separator, arguments (V3.1). Both are read, whichever was chosen. Format: the chat templates of deepseek-ai/DeepSeek-V3,
 * DeepSeek-R1 and DeepSeek-V3.1.
 */
const machine = sectionedCalls({ sectionStart, sectionEnd, callStart }, readCall);

function* readCall({ input, sink }: MachineContext): Waiting {
  let raw = "";
  let type = "";
  let name = "";
  let hasType = false;
  while (raw.length < maxHeadLength) {
    const piece = yield* nextPiece(input, [separator, callEnd]);
    if (piece === "" || piece === callEnd) {
      sink.content(callStart + raw + piece);
      return;
    }
    raw += piece;
    if (piece === separator) hasType = true;
    else if (piece === "{" && hasType) {
      const written = name.replace(/```(?:json)?\s*$/, "").trim();
      input.unread("{");
      if (written !== "" && type.trim() !== "function") sink.ignore(type);
      sink.beginCall(written === "" ? type.trim() : written);
      if ((yield* readCallArguments(input, sink, [callEnd])) === undefined)
        yield* closeMarkup({ input, sink }, [callEnd], [callEnd]);
      return;
    } else if (hasType) name += piece;
    else type += piece;
  }
  sink.content(callStart + raw);
}

const markers = [sectionStart, sectionEnd, callStart, callEnd, separator];

const section = { open: sectionStart, close: sectionEnd, trigger: sectionStart } as const;

export const deepseekV3Format: ToolFormat = {
  name: "deepseek_v3",
  markers,
  machine,
  layout: {
    ...section,
    begin: (name) => [literalSpec(`${callStart}function${separator}${name}\n\`\`\`json\n`)],
    end: `\n\`\`\`${callEnd}`,
    separator: "\n",
  },
};

export const deepseekV31Format: ToolFormat = {
  name: "deepseek_v31",
  markers,
  machine,
  layout: {
    ...section,
    begin: (name) => [literalSpec(callStart + name + separator)],
    end: callEnd,
    separator: "",
  },
};
