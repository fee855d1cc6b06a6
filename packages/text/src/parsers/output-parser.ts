import type { OutputMachine } from "./machine.js";
import { EventSink, type OutputEvent, type TextSpan } from "./output-events.js";
import { type PromptReasoning, readReasoning, type ReasoningFormat } from "./reasoning/reasoning-format.js";
import { Input, type Waiting } from "./shared/input.js";
import { untilTag } from "./shared/tags.js";
import type { ToolSchemas } from "./shared/tool-schemas.js";

export interface OutputParserOptions {
  /** Reads calls and content; undefined takes everything after reasoning as content. */
  readonly machine: OutputMachine | undefined;
  readonly reasoning: ReasoningFormat | undefined;
  readonly promptReasoning: PromptReasoning;
  readonly schemas: ToolSchemas;
}

/**
 * Turns one sequence's text into events as it comes. It reads the text once, unit by unit, so that the same text gives the
 * same events however it was cut; what it holds back is a possible tag, white space, or one value whose type or call is not
 * known yet. All text arrives in some event, except markup and white space beside it.
 */
export class OutputParser {
  readonly #input = new Input();
  readonly #sink = new EventSink();
  readonly #steps: Waiting;

  constructor(options: OutputParserOptions) {
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

  /** Where reasoning stood in the text that was read. */
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
    yield* readReasoning(context, options.reasoning, options.promptReasoning);
  yield* (options.machine ?? plain)(context);
}

const plain: OutputMachine = function* ({ input, sink }) {
  yield* untilTag(input, [], (text) => sink.content(text));
};
