import type { CapturedContent } from "../span/llm-span.js";
import { observedAnswerOf } from "./answer.js";
import type { CallKind } from "./call-kind.js";
import { capturedRequest } from "./captured-request.js";
import { ContentBudget } from "./content-budget.js";

/** A request and its answer, as the wire has them. */
export interface WireExchange {
  readonly kind: CallKind;
  readonly request: object;
  readonly answer: unknown;
}

/** How much of a call's content is kept, and what is replaced in it. */
export interface CaptureBounds {
  /** Limit on requests and answers together; the rest is cut. */
  readonly maxCharacters: number;
  readonly redact?: (text: string) => string;
}

/** What the exchanges of one call said, one conversation after the other, within the bounds. Media are named, never copied. */
export function captureContent(
  exchanges: readonly WireExchange[],
  { maxCharacters, redact }: CaptureBounds,
): CapturedContent {
  const budget = new ContentBudget(maxCharacters, redact);
  const captured = exchanges.map(({ kind, request, answer }) => ({
    ...capturedRequest(kind, { ...request }, budget),
    ...observedAnswerOf(kind, answer, budget),
  }));
  return {
    systemInstructions: captured.flatMap(({ systemInstructions }) => systemInstructions),
    inputMessages: captured.flatMap(({ inputMessages }) => inputMessages),
    outputMessages: captured.flatMap(({ outputMessages }) => outputMessages),
    toolDefinitions: captured.flatMap(({ toolDefinitions }) => toolDefinitions),
    prompts: captured.flatMap(({ prompts }) => prompts),
  };
}
