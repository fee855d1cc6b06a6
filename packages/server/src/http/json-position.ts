/** Where JSON text stops being JSON. Line and column count from 1, offset from 0, in UTF-16 units. */
export interface JsonProblem {
  readonly offset: number;
  readonly line: number;
  readonly column: number;
  /** What was wrong there, e.g. `expected ',' or '}'`. */
  readonly message: string;
}

const scalarPattern = /(?:-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)(?![\w.+-])/y;

type Expectation = "value" | "valueOrEnd" | "key" | "keyOrEnd" | "colon" | "commaOrEnd" | "end";

const wanted: Readonly<Record<Expectation, string>> = {
  value: "expected a value",
  valueOrEnd: "expected a value or ']'",
  key: "expected a key in double quotes",
  keyOrEnd: "expected a key in double quotes or '}'",
  colon: "expected ':'",
  commaOrEnd: "expected ',' or the end of the list or object",
  end: "expected nothing after the value",
};

/**
 * Finds the first error of text that JSON.parse refused (its own messages give positions only sometimes,
 * and differ between Node versions). Undefined when the text is JSON after all.
 */
export function findJsonProblem(text: string): JsonProblem | undefined {
  const stack: ("{" | "[")[] = [];
  let expects: Expectation = "value";
  let offset = 0;
  const afterValue = (): Expectation => (stack.length === 0 ? "end" : "commaOrEnd");
  for (;;) {
    offset = skipWhitespace(text, offset);
    const character = text.charAt(offset);
    const isValue = expects === "value" || expects === "valueOrEnd";
    const top = stack.at(-1);
    let end = offset + 1;
    if (character === '"') {
      const isKey: boolean = expects === "key" || expects === "keyOrEnd";
      if (!isKey && !isValue) break;
      const string = scanString(text, offset);
      if (!string.isComplete) return problemAt(text, string.end, "expected a string to go on");
      end = string.end;
      expects = isKey ? "colon" : afterValue();
    } else if (character === "{" || character === "[") {
      if (!isValue) break;
      stack.push(character);
      expects = character === "{" ? "keyOrEnd" : "valueOrEnd";
    } else if (character === "}" || character === "]") {
      const closes = character === "}" ? "{" : "[";
      const mayEnd = expects === "commaOrEnd" || expects === (character === "}" ? "keyOrEnd" : "valueOrEnd");
      if (top !== closes || !mayEnd) break;
      stack.pop();
      expects = afterValue();
    } else if (character === ",") {
      if (expects !== "commaOrEnd") break;
      expects = top === "{" ? "key" : "value";
    } else if (character === ":") {
      if (expects !== "colon") break;
      expects = "value";
    } else {
      scalarPattern.lastIndex = offset;
      if (!isValue || !scalarPattern.test(text)) break;
      end = scalarPattern.lastIndex;
      expects = afterValue();
    }
    offset = end;
  }
  return offset === text.length && expects === "end" ? undefined : problemAt(text, offset, wanted[expects]);
}

function problemAt(text: string, offset: number, expectation: string): JsonProblem {
  const before = text.slice(0, offset);
  const line = before.split("\n").length;
  const column = offset - before.lastIndexOf("\n");
  const codePoint = text.codePointAt(offset);
  const found =
    codePoint === undefined ? "the end of the text" : JSON.stringify(String.fromCodePoint(codePoint));
  return { offset, line, column, message: `${expectation}, found ${found}` };
}

function skipWhitespace(text: string, start: number): number {
  let offset = start;
  for (;;) {
    const code = text.charCodeAt(offset);
    if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return offset;
    offset++;
  }
}

/** From the opening quote to just after the closing one, or to the first invalid character. */
function scanString(text: string, start: number): { readonly end: number; readonly isComplete: boolean } {
  const escape = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y;
  let offset = start + 1;
  for (;;) {
    const code = text.charCodeAt(offset);
    if (code === 0x22) return { end: offset + 1, isComplete: true };
    if (Number.isNaN(code) || code < 0x20) return { end: offset, isComplete: false };
    if (code !== 0x5c) {
      offset++;
      continue;
    }
    escape.lastIndex = offset;
    if (!escape.test(text)) return { end: offset + 1, isComplete: false };
    offset = escape.lastIndex;
  }
}
