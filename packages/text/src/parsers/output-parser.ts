import type { OutputMachine, ReasoningFormat } from "./machine.js";
import { EventSink, type OutputEvent, type TextSpan } from "./output-events.js";
import { type PromptReasoning, readReasoning } from "./reasoning/reasoning-format.js";
import { Input, type Waiting } from "./shared/input.js";
import { untilTag } from "./shared/tags.js";
import type { ToolSchemas } from "./shared/tool-schemas.js";

interface OutputParserOptions {
  /** Reads calls and content; undefined takes everything after reasoning as content. */
  readonly machine: OutputMachine | undefined;
  readonly reasoning: ReasoningFormat | undefined;
  readonly promptReasoning: PromptReasoning;
  /** Markup that ends unclosed reasoning, since a call begins with it. */
  readonly callStarts?: readonly string[];
  readonly schemas: ToolSchemas;
}

/**
 * Parses one sequence's text into events as it streams. It reads the text once, unit by unit, so the events do not depend on
 * chunk borders; it holds back only a possible tag, white space, or one value whose type or call is not known yet. All text
 * appears in some event, except markup and white space next to it.
 */
export class OutputParser {
  readonly #input = new Input();
  readonly #sink: EventSink;
  readonly #steps: Waiting;

  constructor(options: OutputParserOptions) {
    this.#sink = new EventSink(options.reasoning?.answerTags);
    this.#steps = run(options, this.#input, this.#sink);
  }

  push(text: string): readonly OutputEvent[] {
    this.#input.push(text);
    this.#steps.next();
    return this.#sink.take();
  }

  /** After the last text. */
  finish(): readonly OutputEvent[] {
    this.#input.end();
    this.#steps.next();
    this.#sink.finish();
    return this.#sink.take();
  }

  /** Positions of reasoning in the text read so far. */
  get reasoningSpans(): readonly TextSpan[] {
    return this.#sink.reasoningSpans;
  }

  get numCalls(): number {
    return this.#sink.numCalls;
  }
}

function* run(options: OutputParserOptions, input: Input, sink: EventSink): Waiting {
  const context = { input, sink, schemas: options.schemas };
  if (options.reasoning !== undefined)
    yield* readReasoning(context, options.reasoning, options.promptReasoning, options.callStarts ?? []);
  yield* (options.machine ?? plain)(context);
}

const plain: OutputMachine = function* ({ input, sink }) {
  yield* untilTag(input, [], (text) => sink.content(text));
};
