import type { EventSink } from "./output-events.js";
import type { Input, Waiting } from "./shared/input.js";
import type { ToolSchemas } from "./shared/tool-schemas.js";

/** What a format's machine works on. */
export interface MachineContext {
  readonly input: Input;
  readonly sink: EventSink;
  /** For formats that write values without their types. */
  readonly schemas: ToolSchemas;
}

/** Reads an output to its end: straight-line code that waits wherever the text has not come yet. */
export type Machine = (context: MachineContext) => Waiting;

export interface ToolFormat {
  /** vLLM's `--tool-call-parser` name. */
  readonly name: string;
  /** Markup that may be special tokens of the vocabulary, whose text must not be skipped. */
  readonly markers: readonly string[];
  readonly machine: Machine;
  /** Mistral's templates accept only call ids of nine letters and digits. */
  readonly callIds?: "nine-characters";
}
