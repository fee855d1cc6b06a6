import { isSpace } from "./input.js";
import { escapeUnit, isJsonScalar } from "./json-text.js";

/** Whether a unit belongs to the value: `last` completes it, `after` follows it (a number ends where something else begins). */
type JsonStep = "inside" | "last" | "after";

const maxDepth = 256;
const maxScalarLength = 1024;

type Expectation = "value" | "value or ]" | "key or }" | "key" | ":" | ", or ]" | ", or }" | "nothing";

/**
 * Scans one JSON value unit by unit: finds its end and its first error. After an error it follows only strings and
 * brackets, so a broken value still ends with its brackets. Memory is bounded by the maximum nesting.
 */
export class JsonScanner {
  #problem: string | undefined;
  #expects: Expectation = "value";
  readonly #open: ("{" | "[")[] = [];
  /** Open brackets, including those beyond `maxDepth` and after an error. */
  #depth = 0;
  #isString = false;
  #isEscaped = false;
  #hexDigits = 0;
  #scalar = "";
  #first = "";
  #isComplete = false;

  /** The first error. */
  get problem(): string | undefined {
    return this.#problem;
  }

  get isInString(): boolean {
    return this.#isString;
  }

  get hasBegun(): boolean {
    return this.#first !== "";
  }

  /** The value's first unit, which determines its type; "" before it was read. */
  get first(): string {
    return this.#first;
  }

  push(unit: string): JsonStep {
    if (this.#isString) return this.#pushInString(unit);
    if (this.#scalar !== "") {
      if (!isSpace(unit) && !'{}[],:"'.includes(unit)) {
        this.#scalar += unit;
        if (this.#scalar.length > maxScalarLength) this.#fail("a number is too long");
        if (this.#problem !== undefined) this.#scalar = this.#scalar.slice(0, 1);
        return "inside";
      }
      this.#endScalar();
      if (this.#depth === 0) return this.#complete("after");
    }
    if (isSpace(unit)) return "inside";
    if (this.#first === "") {
      if ("}],:".includes(unit)) {
        this.#fail("a value is missing");
        return this.#complete("after");
      }
      this.#first = unit;
    }
    return this.#pushStructure(unit);
  }

  /** The output or the surrounding markup has ended. */
  end(): void {
    if (this.#isComplete) return;
    if (this.#scalar !== "") this.#endScalar();
    if (this.#first === "") this.#fail("a value is missing");
    else if (this.#depth > 0 || this.#isString) this.#fail("it ends before it is complete");
    this.#isComplete = true;
  }

  #pushStructure(unit: string): JsonStep {
    switch (unit) {
      case '"':
        if (this.#expects === "key or }" || this.#expects === "key") this.#expects = ":";
        else this.#beginValue(unit);
        this.#isString = true;
        return "inside";
      case "{":
      case "[":
        this.#beginValue(unit);
        this.#depth += 1;
        if (this.#depth > maxDepth) this.#fail(`it is nested deeper than ${maxDepth} levels`);
        if (this.#problem === undefined) {
          this.#open.push(unit);
          this.#expects = unit === "{" ? "key or }" : "value or ]";
        }
        return "inside";
      case "}":
      case "]":
        if (this.#problem === undefined && !this.#expects.endsWith(` ${unit}`)) this.#unexpected(unit);
        this.#depth -= 1;
        this.#open.pop();
        this.#endValue();
        return this.#depth <= 0 ? this.#complete("last") : "inside";
      case ",":
        if (this.#expects === ", or }") this.#expects = "key";
        else if (this.#expects === ", or ]") this.#expects = "value";
        else this.#unexpected(unit);
        return "inside";
      case ":":
        if (this.#expects === ":") this.#expects = "value";
        else this.#unexpected(unit);
        return "inside";
      default:
        this.#beginValue(unit);
        this.#scalar = unit;
        return "inside";
    }
  }

  #pushInString(unit: string): JsonStep {
    if (this.#hexDigits > 0) {
      this.#hexDigits -= 1;
      if (/[0-9a-fA-F]/.test(unit)) return "inside";
      this.#hexDigits = 0;
      this.#fail("a \\u escape needs four hexadecimal digits");
    }
    if (this.#isEscaped) {
      this.#isEscaped = false;
      if (unit === "u") this.#hexDigits = 4;
      else if (!'"\\/bfnrt'.includes(unit)) this.#fail(`\\${escapeUnit(unit)} is not an escape`);
      return "inside";
    }
    if (unit === "\\") this.#isEscaped = true;
    else if (unit === '"') {
      this.#isString = false;
      if (this.#expects !== ":") this.#endValue();
      if (this.#depth === 0) return this.#complete("last");
    } else if (unit < " ") this.#fail("a string holds a raw control character");
    return "inside";
  }

  #beginValue(unit: string): void {
    if (this.#expects !== "value" && this.#expects !== "value or ]") this.#unexpected(unit);
  }

  #endValue(): void {
    const open = this.#open.at(-1);
    this.#expects = open === undefined ? "nothing" : open === "{" ? ", or }" : ", or ]";
  }

  #endScalar(): void {
    if (this.#problem === undefined && !isJsonScalar(this.#scalar))
      this.#fail(`${JSON.stringify(this.#scalar.slice(0, 32))} is not a value`);
    this.#scalar = "";
    this.#endValue();
  }

  #complete(step: JsonStep): JsonStep {
    this.#isComplete = true;
    return step;
  }

  #unexpected(unit: string): void {
    this.#fail(`${JSON.stringify(unit)} stands where ${this.#expects} is expected`);
  }

  #fail(problem: string): void {
    this.#problem ??= problem;
  }
}
