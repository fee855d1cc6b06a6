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

/** Reads an output to its end: straight-line code that waits wherever the text has not come yet. */
export type OutputMachine = (context: MachineContext) => Waiting;

/** How calls are written: what constrained answers are held to. */
export interface CallLayout {
  /** Around all calls of an answer. */
  readonly open?: string;
  readonly close?: string;
  /** What stands before the arguments of a call, and behind them. */
  readonly begin: (name: string) => readonly GrammarSpec[];
  readonly end: string;
  readonly separator: string;
  /** What calls begin with (`open`, where there is one) and nothing else does: where it appears, a call must follow. */
  readonly trigger?: string;
  /** What a call begins with that leaves out what should stand before it; must be part of what `begin` says. */
  readonly bareTrigger?: string;
  /** How arguments are listed, where they are not one JSON object. */
  readonly notation?: ArgumentNotation;
  /** Calls make up the whole answer, and what begins like this is calls: a regular expression. */
  readonly beginsAnswer?: string;
  /** The answer that holds calls, where what is free beside them has a form too. Without `mustCall`, any answer that makes no other calls. */
  readonly answer?: (calls: GrammarSpec, mustCall: boolean) => GrammarSpec;
}

export interface ToolFormat {
  /** vLLM's `--tool-call-parser` name. */
  readonly name: string;
  /** Markup that may be special tokens of the vocabulary, whose text must not be skipped. */
  readonly markers: readonly string[];
  readonly machine: OutputMachine;
  /** Left out where calls cannot be constrained as the format writes them. */
  readonly layout?: CallLayout;
  /** The answer whose content is this, where content stands in markup. */
  readonly content?: (content: GrammarSpec) => GrammarSpec;
  /** Mistral's templates accept only call ids of nine letters and digits. */
  readonly callIds?: "nine-characters";
}
