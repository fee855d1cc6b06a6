import { TokenizerPattern } from "./pattern/pattern.js";
import type { PatternSpecification } from "./specification.js";

/** Replaces every match with fixed content. */
export function createReplacer(pattern: PatternSpecification, content: string): (text: string) => string {
  if ("literal" in pattern) {
    const { literal } = pattern;
    return literal === "" ? (text) => text : (text) => text.replaceAll(literal, () => content);
  }
  const expression = new TokenizerPattern(pattern.regex);
  return (text) => {
    let result = "";
    let end = 0;
    expression.forEachMatch(text, (start, stop) => {
      result += text.slice(end, start) + content;
      end = stop;
    });
    return end === 0 && result === "" ? text : result + text.slice(end);
  };
}
