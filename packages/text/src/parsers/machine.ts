import type { GrammarSpec } from "../structured/grammar.js";
import type { EventSink } from "./output-events.js";
import type { Input, Waiting } from "./shared/input.js";
import type { ArgumentNotation } from "./shared/listed-arguments.js";
import type { ToolSchemas } from "./shared/tool-schemas.js";

/** What a format's machine works on. */
export interface MachineContext {
  readonly input: Input;
  readonly sink: EventSink;
  /** For formats that write values without their types. */
  readonly schemas: ToolSchemas;
}

/** Parses a whole output: straight-line code that yields where it needs more text. */
export type OutputMachine = (context: MachineContext) => Waiting;

/** How constrained answers must write calls. */
export interface CallLayout {
  /** Around all calls of an answer. */
  readonly open?: string;
  readonly close?: string;
  /** What precedes the arguments of a call, and what follows them. */
  readonly begin: (name: string) => readonly GrammarSpec[];
  readonly end: string;
  readonly separator: string;
  /** Text that begins calls and nothing else (`open`, where there is one): once it appears, a call must follow. */
  readonly trigger?: string;
  /** Text that begins a call when the model omits the opening markup; must occur in `begin`. */
  readonly bareTrigger?: string;
  /** How arguments are written, where they are not one JSON object. */
  readonly notation?: ArgumentNotation;
  /** Where calls make up the whole answer: a regular expression for how answers begin that are or contain calls. */
  readonly beginsAnswer?: string;
  /** The whole answer around the calls, where free text has a form too. Without `mustCall`, any answer without other calls. */
  readonly answer?: (calls: GrammarSpec, mustCall: boolean) => GrammarSpec;
}

export interface ReasoningFormat {
  /** vLLM's `--reasoning-parser` name. */
  readonly name: string;
  readonly startTags: readonly string[];
  readonly endTags: readonly string[];
  /** Answers begin inside reasoning even without a start tag. */
  readonly beginsOpen: boolean;
  /** Markup around the answer, which content leaves out. No tag may be a prefix of another. */
  readonly answerTags?: readonly string[];
  /** Reasoning stays in the content, behind this text. */
  readonly keptBehind?: string;
}

export interface ToolFormat {
  /** vLLM's `--tool-call-parser` name. */
  readonly name: string;
  /** Markup that may be special tokens of the vocabulary, whose text must not be skipped. */
  readonly markers: readonly string[];
  readonly machine: OutputMachine;
  /** The machine reads reasoning and content between these tags too, so it is used without tools as well. */
  readonly reasoning?: ReasoningFormat;
  /** Markup that begins calls and ends unclosed reasoning; left out where it is `layout.trigger` or there is none. */
  readonly callStarts?: readonly string[];
  /** Absent where calls of the format cannot be constrained. */
  readonly layout?: CallLayout;
  /** Wraps constrained content in the markup that the format requires around content. */
  readonly content?: (content: GrammarSpec) => GrammarSpec;
  /** Mistral's templates accept only call ids of nine letters and digits. */
  readonly callIds?: "nine-characters";
}
