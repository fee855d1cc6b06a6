import { OctavoError } from "@octavo/protocol/errors";
import { compileNode, firstSet, type MatchState, type MatchStep } from "./compile-pattern.js";
import { oniguruma } from "../../regex/dialects.js";
import { parseRegex } from "../../regex/parse-regex.js";

/** Step limit for one pass over a text, far above what real patterns need. */
const baseSteps = 10_000_000;
const stepsPerCharacter = 400;

/**
 * A tokenizer's regular expression: Oniguruma's syntax and meaning, matched by a backtracking machine whose work is
 * bounded, so that no text can stall it. Not reentrant: a pass must end before the same pattern starts another.
 */
export class TokenizerPattern {
  readonly source: string;
  readonly #state: MatchState = { text: "", steps: 0, pass: 0 };
  readonly #match: MatchStep;
  readonly #canStart: ((codePoint: number) => boolean) | undefined;

  /** Throws `artifact_unsupported` for syntax outside the supported part. */
  constructor(source: string) {
    this.source = source;
    const node = parseRegex(source, oniguruma);
    this.#match = compileNode(node, (index) => index, this.#state, true);
    const first = firstSet(node);
    this.#canStart = first === undefined ? undefined : (codePoint) => first.has(codePoint);
  }

  /**
   * Every match from left to right, in UTF-16 offsets; an empty match right after the previous one is left out.
   * Throws `invalid_request` when the text makes the pattern backtrack beyond its budget.
   */
  forEachMatch(text: string, onMatch: (start: number, end: number) => void): void {
    const state = this.#state;
    const canStart = this.#canStart;
    const length = text.length;
    state.text = text;
    state.pass++;
    state.steps = baseSteps + stepsPerCharacter * length;
    let lastEnd = -1;
    let index = 0;
    while (index <= length) {
      const codePoint = index < length ? text.codePointAt(index)! : -1;
      const after = index + (codePoint > 0xffff ? 2 : 1);
      if (canStart !== undefined && (codePoint < 0 || !canStart(codePoint))) {
        index = after;
        continue;
      }
      const end = this.#run(index);
      if (end < 0 || (end === index && lastEnd === end)) {
        index = after;
        continue;
      }
      lastEnd = end;
      onMatch(index, end);
      index = end;
    }
    state.text = "";
  }

  #run(index: number): number {
    try {
      return this.#match(index);
    } catch (error) {
      if (error instanceof RangeError) throw tooMuchWork(this.source, error);
      throw error;
    }
  }
}

function tooMuchWork(source: string, cause: RangeError): OctavoError {
  return new OctavoError(
    "invalid_request",
    `The text makes the tokenizer's pattern ${JSON.stringify(source.slice(0, 200))} backtrack too much; shorten its unbroken runs.`,
    { cause },
  );
}
